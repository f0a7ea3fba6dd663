"""A party of suite `ckks` for one inference, a process of the program `privet-ckks`: the client, or
a member of a cohort.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.compiler.compile import PRIVATE_FILE, PUBLIC_FILE
from privet.compiler.executor import decode_output
from privet.compiler.executor.codec import Inputs, encode_input
from privet.compiler.executor.samples import fill, trim
from privet.compiler.program import Program
from privet.errors import Misuse
from privet.runtime.quantities import parse_size
from privet.runtime.result import Result
from privet.suites import Ckks, Progress
from privet.suites.ckks import program_path
from privet.suites.ckks.local import (
    read_cost,
    read_integers,
    read_layers,
    report_progress,
    write_reals,
)
from privet.suites.costs import PhaseCost
from privet.suites.spawned import event, party

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class Endpoint:
    """What a party needs to talk to the other one, which a relay at `socket` leads to.

    `keys` is a directory that `privet keys` wrote. `memory` limits this party's process (bytes, or
    such as `2GB`), `timeout` is in seconds. A client takes no less noise on results than its
    `suite` asks for.
    """

    keys: Path
    suite: Ckks
    timeout: float
    memory: int | str | None = None
    socket: Path | None = None

    def job(self, role: str, **fields: Any) -> dict[str, Any]:
        """A job of the Go program."""
        return {
            "role": role,
            "keys": str(self.keys),
            "scenario": self.suite.scenario,
            "socket": str(self.socket),
            "memory": parse_size(self.memory) or 0,
            "timeout": self.timeout,
            "statistical": self.suite.statistical,
            **fields,
        }


def ask(
    endpoint: Endpoint,
    program: Program,
    inputs: Inputs,
    *,
    progress: Progress | None = None,
) -> Result:
    """One private inference of a program on real inputs, by name or in order; with a batch, up to
    that many samples along the first axis. Raises `InputError` before anything is sent if an input
    does not fit; `LinkError`; `PeerError`."""
    arrays, samples = fill(program, inputs)
    encode_input(program, arrays)
    with tempfile.TemporaryDirectory(prefix="privet-") as name:
        folder = Path(name)
        write_reals(folder / "inputs.f64", arrays)
        (folder / PUBLIC_FILE).write_bytes(program.to_public_bytes())
        job = endpoint.job(
            "cohort-client" if endpoint.suite.collective else "client",
            program_hash=program.program_hash,
            members=endpoint.suite.parties,
            program=str(folder),
            inputs=str(folder / "inputs.f64"),
            result=str(folder / "result.f64"),
        )
        with party(folder, job, [program_path()]) as process:
            report_progress(progress, "offline", 0, "offline")
            offline = event(process, "prepared")["cost"]
            report_progress(progress, "online", 0, "online")
            result = {"offline": offline, **event(process, "result")}
        if endpoint.suite.collective:  # its parties agreed on the flooding, each adds its own
            plan = {**result["plan"], "statistical": endpoint.suite.statistical}
            result = {**result, "plan": plan}
        integers = read_integers(program, folder / "result.f64")
    return read_prediction(endpoint.suite, program, integers, samples, result)


def read_prediction(
    suite: Ckks, program: Program, integers: list[Array], samples: int, result: Mapping[str, Any]
) -> Result:
    """What a client's process revealed and found out, as a prediction for so many samples; results
    may have more noise than `suite` asks for."""
    decoded = decode_output(program, integers)
    arrays = trim(program, list(decoded.values()), samples)
    return Result(
        outputs=dict(zip(decoded, arrays, strict=True)),
        integers=tuple(trim(program, integers, samples)),
        material="",
        config=suite.flooded(statistical=result["plan"]["statistical"]),
        calibration=program.calibration,
        dry=None,
        samples=samples,
        offline=read_cost(result["offline"]),
        online=read_cost(result["online"]),
        layers=read_layers(result.get("layers")),
        plan=result["plan"],
    )


def take_part(
    program: Path, member: int, endpoint: Endpoint, on_begin: Callable[[], None]
) -> PhaseCost:
    """A member of a cohort: waits for an inference, however long that takes, and takes part in it.

    `on_begin` is called when it begins. `program` is the public half; member 0 gives the folder.

    Raises `LinkError`; `PeerMisbehaved` if the coordinator breaks the protocol or gives up.
    """
    check_half(program, member, endpoint.suite.parties)
    with tempfile.TemporaryDirectory(prefix="privet-") as name:
        folder = Path(name)
        place = program if member == 0 else public_half(program, folder)
        members = endpoint.suite.parties
        job = endpoint.job("member", member=member, members=members, program=str(place))
        with party(folder, job, [program_path()]) as process:
            event(process, "begun")
            on_begin()
            return read_cost(event(process, "helped")["cost"])


def check_half(program: Path, member: int, members: int) -> None:
    """Raises `Misuse` if there is no such member, or member 0 has no weights."""
    if not 0 <= member < members:
        raise Misuse(f"there is no member {member} among {members}: they count from 0")
    if member == 0 and not (program / PRIVATE_FILE).is_file():
        raise Misuse(
            f"member 0 has the model: {program} must be a folder that `privet compile` wrote"
        )


def public_half(program: Path, folder: Path) -> Path:
    """A folder with nothing but the public half in `program`, a file or a folder. Raises `Misuse`
    if there is none."""
    source = program / PUBLIC_FILE if program.is_dir() else program
    if not source.is_file():
        raise Misuse(f"{source} does not exist: `privet compile` writes the public half of a model")
    place = folder / "program"
    place.mkdir()
    (place / PUBLIC_FILE).write_bytes(source.read_bytes())
    return place
