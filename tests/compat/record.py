"""Writes what a version of Privet leaves on a disk, for later versions to read.

    python -m tests.compat.record 0.2.0

Run once for each version that promises it, at its release, and never again: the files are the
promise.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tests.kills.wiretap import HEADER_BYTES, Wiretap

from privet import __version__, keys
from privet.compiler.compile import compile
from privet.runtime import Client, Credentials, Server
from privet.service.control import openapi
from privet.service.control.routes import ROUTES
from privet.service.records import VERSION, JobRun, Records
from privet.suites import Gmw, make_policy

FOLDER = Path(__file__).parent
SIDES = ("client", "server")
POLICY = """\
answers_per_hour = 60
named_only = false

[accepts]
suite = ["gmw"]
linear = ["offline"]

[clients."partner"]
answers_per_hour = 600
accepts = { truncation = ["exact", "one-bit"] }
"""


def model() -> onnx.ModelProto:
    """Four inputs, four ReLUs, two outputs."""
    rng = np.random.default_rng(2)
    weights = {"a": rng.uniform(-1, 1, (4, 4)), "b": rng.uniform(-1, 1, (4, 2))}
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["h"], "first"),
        helper.make_node("Relu", ["h"], ["r"], "relu"),
        helper.make_node("MatMul", ["r", "b"], ["y"], "second"),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])],
        [numpy_helper.from_array(array.astype("<f4"), name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def record(folder: Path) -> None:
    """A compiled program, both halves of a material entry for it, a policy, and an answer."""
    compiled = compile(model(), input_range=(0, 1), name="small")
    compiled.save(folder / "program")
    (folder / "policy.toml").write_text(POLICY)
    sample = np.array([[0.25, 0.5, 0.75, 1.0]])
    with tempfile.TemporaryDirectory(prefix="privet-") as place:
        work = Path(place)
        keys.make(work / "keys", ())
        server, client = (Credentials.from_directory(work / "keys", side) for side in SIDES[::-1])
        with Server(server, state=work / "server") as serving:
            serving.add_saved(folder / "program")
            serving.start()
            host, port = serving.address
            with Client(
                host, port, client, state=work / "client", suite=Gmw(rounds="log")
            ) as evaluator:
                material, other = evaluator.prepare(2)
                answer = evaluator.infer([sample], material=other)
                reply = {
                    "label": evaluator.label,
                    "program": evaluator.program_hash,
                    "material": material,
                    "input": sample.tolist(),
                    "output": answer.outputs["y"].tolist(),
                    "policy": json.loads(make_policy(folder / "policy.toml").text()),
                }
        for side in SIDES:
            ready = folder / side / "ready"
            ready.mkdir(parents=True)
            for path in (work / side / side / "ready").glob(f"{material}.*"):
                shutil.copy(path, ready)
    (folder / "answer.json").write_text(json.dumps(reply) + "\n")


def restore(folder: Path, state: Path, key_folder: Path) -> None:
    """Puts both halves of a recorded entry into `state`, for the certificates in `key_folder`.

    Entries are for a peer by its certificate, and certificates expire: nothing else is touched.
    """
    for side, other in zip(SIDES, SIDES[::-1], strict=True):
        ready = state / side / side / "ready"
        shutil.copytree(folder / side / "ready", ready)
        (path,) = ready.glob("*.json")
        peer = keys.fingerprint(key_folder / f"{other}.pem")
        path.write_text(json.dumps(json.loads(path.read_text()) | {"peer": peer}))


def record_session(folder: Path) -> None:
    """Every frame of a session that uses the entry of `folder`, in `session.json`."""
    answer = json.loads((folder / "answer.json").read_text())
    with tempfile.TemporaryDirectory(prefix="privet-") as place:
        work = Path(place)
        keys.make(work / "keys", ())
        restore(folder, work, work / "keys")
        server, client = (Credentials.from_directory(work / "keys", side) for side in SIDES[::-1])
        tap = Wiretap(work / "keys", kept=1 << 20)
        policy = make_policy(folder / "policy.toml")
        with Server(server, state=work / "server", policy=policy) as serving, tap.listening():
            serving.add_saved(folder / "program")
            serving.start()
            tap.upstream = serving.address[1]
            state = work / "client"
            with Client(
                "localhost", tap.port, client, state=state, suite=Gmw(rounds="log")
            ) as evaluator:
                evaluator.infer([np.array(answer["input"])])
            assert tap.quiet(10.0)
    frames = [
        {"from": frame.sender, "kind": frame.kind, "payload": frame.payload.hex()}
        for frame in tap.frames
    ]
    (folder / "session.json").write_text(json.dumps(frames, indent=0) + "\n")


def record_service(folder: Path) -> None:
    """What a service knows of its jobs: one that is done, one under way, a run and a profile; in
    `service.sql`."""
    program = SimpleNamespace(program_hash="ab" * 32)
    facts = {"client": "cd" * 32, "kind": "request", "samples": 2, "notice": None, "created": 1.8e9}
    facts["version"] = SimpleNamespace(model="digits", number=3, program=program)
    facts["choice"] = SimpleNamespace(label="gmw linear exact")

    def job(id: str, **fields: Any) -> Any:
        document = {"id": id, "kind": "request", "model": "digits", "version": 3, "samples": 2}
        return SimpleNamespace(**facts, id=id, document=lambda: document, **fields)

    with tempfile.TemporaryDirectory(prefix="privet-") as place:
        path = Path(place) / "service.sqlite"
        records = Records(path)
        for id in ("0a", "0b"):
            records.submitted(job(id))
        records.ended(job("0a", ended=1.8e9 + 4, outcome="done", reason=""))
        stream = ("digits/3", "gmw linear exact", 2)
        times = (1.8e9 + 1, 1.8e9 + 3, 1.5)
        records.add_run(JobRun("0a-1", "0a", "on", *stream, "local", (0, 1), *times, 1 << 20, None))
        profile = dict(zip(("model", "suite", "batch"), stream, strict=True))
        rest = {"phase": "on", "cores": 1, "memory": 1 << 20, "seconds": 1.5, "material": 2048}
        records.keep_profile(profile | rest)
        records.close()
        with closing(sqlite3.connect(path)) as base:
            lines = [*base.iterdump(), f"PRAGMA user_version = {VERSION};"]
    (folder / "service.sql").write_text("\n".join(lines) + "\n")


def frame_bytes(frame: dict[str, Any]) -> bytes:
    """A recorded frame as it is on the wire."""
    payload = bytes.fromhex(frame["payload"])
    header = bytes([frame["kind"]]) + len(payload).to_bytes(HEADER_BYTES - 1, "little")
    return header + payload


def record_calls(folder: Path) -> None:
    """The calls of the service, in `openapi.json`."""
    document = openapi.document(ROUTES, __version__)
    (folder / "openapi.json").write_text(json.dumps(document, sort_keys=True) + "\n")


if __name__ == "__main__":
    version = FOLDER / sys.argv[1]
    record(version)
    record_session(version)
    record_calls(version)
    record_service(version)
