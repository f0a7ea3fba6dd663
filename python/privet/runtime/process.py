"""One party as a process of its own, for `privet.run`: `python -m privet.runtime.process JOB.json`.

The job names the party and the files it may read; the process prints one JSON object on each line
of standard output. It loads neither the model nor the reference, so that its memory is a party's.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privet import _native
from privet._native import resident_memory
from privet.compiler.compile import PRIVATE_FILE, PUBLIC_FILE
from privet.errors import PrivetError
from privet.runtime.acceptor import Acceptor, PartyService
from privet.runtime.credentials import Credentials
from privet.runtime.dealer import Dealer, Dealt
from privet.runtime.machine import share_one_heap
from privet.runtime.server import Finished, Server
from privet.suites import Guard, Policy, from_json, make_policy
from privet.suites.costs import read_report

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from privet.compiler.program import Program

    Array = npt.NDArray[np.generic]


def _print_event(event: str, **fields: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def _fail(error: PrivetError) -> None:
    _print_event("failed", type=type(error).__name__, message=str(error))


def _progress(phase: str, done: int, total: int, step: str) -> None:
    _print_event("progress", phase=phase, done=done, total=total, next=step)


class Processor:
    """Seconds that this process's threads computed, from one call to the next."""

    def __init__(self) -> None:
        self._before = time.process_time()

    def lap(self) -> float:
        """Seconds since the last call."""
        now = time.process_time()
        self._before, before = now, self._before
        return now - before


def serve(job: dict[str, Any]) -> None:
    """Serves one program until standard input closes."""
    processor = Processor()

    def on_finished(finished: Finished) -> None:
        if finished.error is not None:
            _fail(finished.error)
        elif finished.cost is not None and finished.kind != "kept":
            # What is sent once counts with the preparation that it comes before.
            cost = replace(finished.cost, cpu_seconds=processor.lap())
            _print_event(finished.kind, cost=asdict(cost))

    before = resident_memory()
    credentials = Credentials.from_directory(job["keys"], "server")
    with Server(
        credentials,
        state=job["state"],
        policy=Policy(job["policy"]),
        dealer=job.get("dealer"),
        memory=job["memory"],
        weights=job.get("weights"),
        timeout=job["timeout"],
        on_finished=on_finished,
    ) as server:
        server.add_checked(job["program"], warm=job.get("warm"))
        server.start()
        processor.lap()
        _print_event("listening", port=server.address[1], memory=before)
        sys.stdin.read()


def query(job: dict[str, Any]) -> None:
    """Prepares, unless it is not to, and runs one inference; the result goes to `job["result"]`."""
    import numpy as np

    from privet.runtime.client import Client

    before = resident_memory()
    progress = _progress if job["progress"] else None
    with (
        np.load(job["inputs"]) as inputs,
        Client(
            "127.0.0.1",
            job["port"],
            Credentials.from_directory(job["keys"], "client"),
            state=job["state"],
            suite=from_json(job["suite"]),
            dealer=job.get("dealer"),
            memory=job["memory"],
            link=job["link"],
            timeout=job["timeout"],
            # The directory is gone afterwards.
            keep_base_ots=False,
        ) as client,
    ):
        processor = Processor()
        material = client.prepare(progress=progress)[0] if job["prepared"] else None
        offline_seconds = processor.lap()
        result = client.infer(list(inputs.values()), material=material, progress=progress)
        online = replace(result.online, cpu_seconds=processor.lap())
    offline = replace(result.offline, cpu_seconds=offline_seconds) if result.offline else None
    np.savez(job["result"], *result.integers)
    _print_event(
        "result",
        suite=client.suite.to_json(),
        extension=client.extension,
        memory=before,
        needs=[client.forecast.memory_bytes_client, client.forecast.memory_bytes_server],
        offline=asdict(offline) if offline else None,
        online=asdict(online),
        layers=[asdict(layer) for layer in result.layers],
    )


def deal(job: dict[str, Any]) -> None:
    """Deals until standard input closes."""

    def on_dealt(dealt: Dealt) -> None:
        if dealt.error is not None:
            _fail(dealt.error)
        elif dealt.cost is not None:
            _print_event("dealt", cost=asdict(dealt.cost))

    credentials = Credentials.from_directory(job["keys"], "dealer")
    with Dealer(credentials, timeout=job["timeout"], on_dealt=on_dealt) as dealer:
        dealer.start()
        _print_event("listening", port=dealer.address[1])
        sys.stdin.read()


def provide_model(job: dict[str, Any]) -> None:
    """Suite `stream`: serves one program until standard input closes."""
    folder = Path(job["program"])
    public, private = ((folder / name).read_bytes() for name in (PUBLIC_FILE, PRIVATE_FILE))
    # Whoever starts both parties of `privet.run` has asked for this suite.
    guard = Guard(make_policy(revealed_values=True), job["keys"])
    server = _native.StreamServer(public, private, guard)
    processor = Processor()

    def on_event(kind: str, report: str | None) -> None:
        if report is not None:
            cost = read_report(report, by_server=True)[0]
            _print_event(kind, cost=asdict(replace(cost, cpu_seconds=processor.lap())))

    def session(connection: _native.Connection, _client: str) -> None:
        server.serve(connection, job["config"], on_event)

    credentials = Credentials.from_directory(job["keys"], "server")
    timeout = job["timeout"]
    acceptor = Acceptor(
        credentials, "127.0.0.1", 0, timeout, session, lambda _peer, error: _fail(error)
    )
    with PartyService(acceptor) as service:
        service.start()
        processor.lap()
        _print_event("listening", port=service.address[1])
        sys.stdin.read()


def provide_data(job: dict[str, Any]) -> None:
    """Suite `stream`: prepares and runs one inference; the result goes to `job["result"]`."""
    import numpy as np

    from privet.compiler.program import Program

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
    progress = _progress if job["progress"] else None
    processor = Processor()
    offline, preparing = read_report(client.prepare(plan, progress))
    offline = replace(offline, cpu_seconds=processor.lap())
    revealed, report = client.infer(plan, payload, progress)
    client.close()
    online, steps = read_report(report)
    online = replace(online, cpu_seconds=processor.lap())
    shapes = [program.values[output.value].shape for output in program.outputs]
    shapes = [(samples * shape[0], *shape[1:]) if shape else () for shape in shapes]
    integers = [
        np.frombuffer(buffer, dtype="<i8").reshape(shape)
        for buffer, shape in zip(revealed, shapes, strict=True)
    ]
    np.savez(job["result"], *integers)
    layers = [asdict(layer) for layer in (*preparing, *steps)]
    _print_event("result", offline=asdict(offline), online=asdict(online), layers=layers)


def _encode(program: Program, inputs: list[Array], samples: int) -> list[Array]:
    """Fixed-point integers of `samples` inputs that lie one after the other."""
    import numpy as np

    from privet.compiler.executor import encode_input

    if samples == 1:
        return encode_input(program, inputs)
    singles = zip(*(np.split(array, samples) for array in inputs), strict=True)
    encoded = [encode_input(program, list(single)) for single in singles]
    return [np.concatenate(parts) for parts in zip(*encoded, strict=True)]


STREAMING = {"model-provider": provide_model, "data-provider": provide_data}
ROLES = {"server": serve, "client": query, "dealer": deal, **STREAMING}


def main() -> int:
    """Runs the job named on the command line."""
    job = json.loads(Path(sys.argv[1]).read_text())
    if job["role"] not in STREAMING:
        share_one_heap()
    try:
        ROLES[job["role"]](job)
    except PrivetError as error:
        _fail(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
