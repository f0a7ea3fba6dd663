"""One party of suite `stream` as a process: `python -m privet.runtime.provider JOB.json`.

As `privet.runtime.process`: the job names the party and its files, and the process says what
happens as JSON, one object on each line.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privet import _native
from privet.compiler.compile import PRIVATE_FILE, PUBLIC_FILE
from privet.compiler.executor import encode_input
from privet.compiler.program import Program
from privet.errors import PrivetError
from privet.runtime.acceptor import Acceptor, Service
from privet.runtime.credentials import Credentials
from privet.runtime.process import Processor
from privet.suites import Guard, make_policy
from privet.suites.costs import read_report

Array = npt.NDArray[np.generic]


def _say(event: str, **fields: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def _fail(error: PrivetError) -> None:
    _say("failed", type=type(error).__name__, message=str(error))


def provide_model(job: dict[str, Any]) -> None:
    """Serves one program until standard input closes."""
    folder = Path(job["program"])
    public, private = ((folder / name).read_bytes() for name in (PUBLIC_FILE, PRIVATE_FILE))
    # Whoever starts both parties of `privet.run` has asked for this suite.
    guard = Guard(make_policy(revealed_values=True), job["keys"])
    server = _native.StreamServer(public, private, job["config"], guard)
    processor = Processor()

    def on_event(kind: str, report: str | None) -> None:
        if report is not None:
            cost = read_report(report, by_server=True)[0]
            _say(kind, cost=asdict(replace(cost, cpu_seconds=processor.lap())))

    def session(connection: _native.Connection, _client: str) -> None:
        server.serve(connection, on_event)

    credentials = Credentials.from_directory(job["keys"], "server")
    timeout = job["timeout"]
    acceptor = Acceptor(
        credentials, "127.0.0.1", 0, timeout, session, lambda _peer, error: _fail(error)
    )
    with Service(acceptor) as service:
        service.start()
        processor.lap()
        _say("listening", port=service.address[1])
        sys.stdin.read()


def provide_data(job: dict[str, Any]) -> None:
    """Prepares and runs one inference; the result goes to `job["result"]`."""

    def progress(phase: str, done: int, total: int, step: str) -> None:
        _say("progress", phase=phase, done=done, total=total, next=step)

    credentials = Credentials.from_directory(job["keys"], "client")
    link = _native.Link(job["link"]) if job["link"] else None
    connection = _native.Connection.connect(
        "127.0.0.1", job["port"], credentials.native, "127.0.0.1", job["timeout"], link
    )
    connection.set_timeout(job["timeout"])
    client = _native.StreamClient(connection)
    program = Program.from_public_bytes(client.describe(job["program_hash"]))
    samples = job["samples"]
    plan = _native.StreamPlan(program.to_public_bytes(), job["config"], samples)
    with np.load(job["inputs"]) as inputs:
        encoded = _encode(program, list(inputs.values()), samples)
    payload = [array.astype("<i8").tobytes() for array in encoded]
    processor = Processor()
    offline, made = read_report(client.prepare(plan, progress))
    offline = replace(offline, cpu_seconds=processor.lap())
    revealed, report = client.infer(plan, payload, progress)
    client.close()
    online, steps = read_report(report)
    online = replace(online, cpu_seconds=processor.lap())
    shapes = [program.values[output.value].shape for output in program.outputs]
    shapes = [(samples * first, *rest) for first, *rest in shapes]
    integers = [
        np.frombuffer(each, dtype="<i8").reshape(shape)
        for each, shape in zip(revealed, shapes, strict=True)
    ]
    np.savez(job["result"], *integers)
    layers = [asdict(layer) for layer in (*made, *steps)]
    _say("result", offline=asdict(offline), online=asdict(online), layers=layers)


def _encode(program: Program, inputs: list[Array], samples: int) -> list[Array]:
    """Fixed-point integers of `samples` inputs that lie one after the other."""
    singles = zip(*(np.split(array, samples) for array in inputs), strict=True)
    encoded = [encode_input(program, list(single)) for single in singles]
    return [np.concatenate(each) for each in zip(*encoded, strict=True)]


def main() -> int:
    """Runs the job named on the command line."""
    job = json.loads(Path(sys.argv[1]).read_text())
    try:
        {"server": provide_model, "client": provide_data}[job["role"]](job)
    except PrivetError as error:
        _fail(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
