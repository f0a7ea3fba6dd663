"""The client of suite `ckks`, a process of the program `privet-ckks`: one inference of a model."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.compiler.compile import PUBLIC_FILE
from privet.compiler.executor import decode_output
from privet.compiler.executor.codec import Inputs, encode_input
from privet.compiler.executor.samples import fill, trim
from privet.compiler.program import Program
from privet.runtime.memory import parse_size
from privet.suites import Ckks, Progress
from privet.suites.ckks import program_path
from privet.suites.ckks.cohort import read_integers, write_reals
from privet.suites.costs import LayerCost, PhaseCost
from privet.suites.spawned import event, party

Array = npt.NDArray[np.generic]

_DEFAULT = Ckks()


@dataclass(frozen=True)
class Endpoint:
    """Where the other party is or this one listens, and what both need to talk.

    `keys` is a directory that `privet keys` wrote; `server_name` the name in the server's
    certificate, if it is not the host's. `memory` limits this party's process (bytes, or such as
    `2GB`), `timeout` is in seconds. A client takes no less noise on results than its `suite` asks
    for.
    A client that has a `socket` finds a relay there, whatever the rest says.
    """

    host: str
    port: int
    keys: Path
    suite: Ckks = _DEFAULT
    server_name: str | None = None
    memory: int | str | None = None
    timeout: float = 120.0
    socket: Path | None = None

    def job(self, role: str, **more: Any) -> dict[str, Any]:
        """A job of the Go program."""
        return {
            "role": role,
            "host": self.host,
            "port": self.port,
            "keys": str(self.keys),
            "scenario": self.suite.scenario,
            "server_name": self.server_name or "",
            "socket": str(self.socket or ""),
            "memory": parse_size(self.memory) or 0,
            "timeout": self.timeout,
            "statistical": self.suite.statistical,
            **more,
        }


@dataclass(frozen=True)
class Prediction:
    """What a client got: outputs by name, of the samples given, and what that cost.

    `plan` is as `privet.suites.plan_ckks` says, `server` the SHA-256 of its certificate.
    """

    program: Program
    outputs: dict[str, Array]
    integers: tuple[Array, ...]
    samples: int
    offline: PhaseCost
    online: PhaseCost
    layers: tuple[LayerCost, ...]
    plan: Mapping[str, Any]
    server: str
    suite: Ckks


def ask(
    endpoint: Endpoint,
    program: Program,
    inputs: Inputs,
    *,
    model: str = "",
    progress: Progress | None = None,
) -> Prediction:
    """One private inference of a program on real inputs, by name or in order; with a batch, up to
    that many samples along the first axis.

    # Errors
    `InputError` before anything is sent if an input does not fit; `LinkError`; `PeerError`.
    """
    named, samples = fill(program, inputs)
    encode_input(program, named)
    with tempfile.TemporaryDirectory(prefix="privet-") as name:
        folder = Path(name)
        write_reals(folder / "inputs.f64", named)
        (folder / PUBLIC_FILE).write_bytes(program.to_public_bytes())
        job = endpoint.job(
            "cohort-client" if endpoint.suite.collective else "client",
            model=model,
            program_hash=program.program_hash,
            members=endpoint.suite.parties,
            program=str(folder),
            inputs=str(folder / "inputs.f64"),
            result=str(folder / "result.f64"),
        )
        with party(folder, job, [program_path()]) as process:
            _tell(progress, "offline", 0)
            offline = event(process, "prepared")["cost"]
            _tell(progress, "online", 0)
            result = {"offline": offline, **event(process, "result")}
        if endpoint.suite.collective:  # its parties agreed on the flooding, each adds its own
            plan = {**result["plan"], "statistical": endpoint.suite.statistical}
            result = {**result, "plan": plan}
        integers = read_integers(program, folder / "result.f64")
    return read_prediction(endpoint.suite, program, integers, samples, result)


def read_prediction(
    asked: Ckks, program: Program, integers: list[Array], samples: int, result: Mapping[str, Any]
) -> Prediction:
    """What a client's process revealed and found out, as a prediction for so many samples; results
    may have more noise than was `asked` for."""
    decoded = decode_output(program, integers)
    kept = trim(program, list(decoded.values()), samples)
    return Prediction(
        program=program,
        outputs=dict(zip(decoded, kept, strict=True)),
        integers=tuple(trim(program, integers, samples)),
        samples=samples,
        offline=read_cost(result["offline"]),
        online=read_cost(result["online"]),
        layers=tuple(
            LayerCost(step["name"], step["operator"], "online", step["seconds"], 0, 0, 0)
            for step in result.get("layers") or ()
        ),
        plan=result["plan"],
        server=result["server"],
        suite=asked.flooded(statistical=result["plan"]["statistical"]),
    )


def _tell(progress: Progress | None, phase: str, done: int) -> None:
    if progress is not None:
        progress(phase, done, 1, phase)


def read_cost(measured: Mapping[str, Any]) -> PhaseCost:
    """A phase as the client measured it; seconds of processors are the client's alone."""
    return PhaseCost(
        seconds=measured["seconds"],
        bytes_client=measured["bytes_sent"],
        bytes_server=measured["bytes_received"],
        rounds=measured["rounds"],
        peak_rss_mb=round(measured["peak_rss_mb"], 1),
        cpu_seconds=measured["cpu_seconds"],
    )
