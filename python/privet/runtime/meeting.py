"""The parties of a cohort of suite `ckks` on hosts of their own: one inference of all together.

All have the public half of the program; the member with number 0 has the weights as well. Each is
a process of the program `privet-ckks`, whose errors name the member that was absent, late or wrong.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from privet.compiler.compile import PRIVATE_FILE, PUBLIC_FILE
from privet.compiler.executor.codec import Inputs, encode_input
from privet.compiler.executor.samples import fill
from privet.compiler.program import Program
from privet.errors import LinkError, Misuse
from privet.runtime.guarded import guarded
from privet.runtime.homomorphic import Endpoint, Prediction, read_cost, read_prediction
from privet.runtime.revocation import Revoked
from privet.suites import Guard, Progress
from privet.suites.ckks import program_path, raise_failure
from privet.suites.ckks.cohort import read_integers, write_reals
from privet.suites.costs import PhaseCost
from privet.suites.spawned import event, party

Heard = Callable[[dict[str, Any]], None]


def coordinate(
    program: Path,
    endpoint: Endpoint,
    guard: Guard,
    heard: Heard,
    revoked: Revoked | None = None,
) -> None:
    """Waits for all members and a client, and runs one inference, if `guard` accepts the client,
    whose certificate must not be `revoked`. `heard` gets the events `listening`, `prepared` and
    `inferred`.

    # Errors
    `NotAccepted` and `PeerBusy` if the policy does not accept the client, or not now;
    `LinkError` names members that have not come or fell silent, `PeerMisbehaved` one that sent
    what does not belong.
    """
    with tempfile.TemporaryDirectory(prefix="privet-") as name:
        folder = Path(name)
        job = endpoint.job(
            "coordinator",
            members=endpoint.suite.parties,
            program=str(public_half(program, folder)),
            guarded=True,
        )
        with party(folder, job, [program_path()]) as process:
            heard(event(process, "listening"))
            kind = ""
            for found in guarded(process, guard, endpoint.suite.mode, revoked):
                raise_failure(found)
                kind = found["event"]
                heard(found)
            if kind != "inferred":
                raise LinkError("the coordinator's process ended before the inference did")


def take_part(program: Path, member: int, endpoint: Endpoint) -> PhaseCost:
    """Takes part in one inference as a member; `program` is the public half, of member 0 the
    folder with both halves.

    # Errors
    `LinkError`; `PeerMisbehaved` if the coordinator breaks the protocol or gives up.
    """
    members = endpoint.suite.parties
    if not 0 <= member < members:
        raise Misuse(f"there is no member {member} among {members}: they count from 0")
    owner = member == 0
    if owner and not (program / PRIVATE_FILE).is_file():
        raise Misuse(
            f"member 0 has the model: {program} must be a folder that `privet compile` wrote"
        )
    with tempfile.TemporaryDirectory(prefix="privet-") as name:
        folder = Path(name)
        place = program if owner else public_half(program, folder)
        job = endpoint.job("member", member=member, members=members, program=str(place))
        with party(folder, job, [program_path()]) as process:
            return read_cost(event(process, "helped")["cost"])


class CohortClient:
    """A client of a cohort, which has the public half of the program beforehand."""

    def __init__(self, endpoint: Endpoint, program: Path | None) -> None:
        """Reads the public half.

        # Errors
        `Misuse` if there is none.
        """
        if program is None:
            raise Misuse("a cohort's client needs --program: what `privet compile` wrote")
        self._endpoint, self._members = endpoint, endpoint.suite.parties
        source = program / PUBLIC_FILE if program.is_dir() else program
        self.program = Program.from_public_bytes(source.read_bytes())
        self._source = source

    def infer(self, inputs: Inputs, *, progress: Progress | None = None) -> Prediction:
        """One private inference; costs are the client's.

        # Errors
        `InputError` before anything is sent if an input does not fit; `LinkError`;
        `PeerMisbehaved`.
        """
        named, samples = fill(self.program, inputs)
        encode_input(self.program, named)
        with tempfile.TemporaryDirectory(prefix="privet-") as name:
            folder = Path(name)
            write_reals(folder / "inputs.f64", named)
            files = {"inputs": str(folder / "inputs.f64"), "result": str(folder / "result.f64")}
            place = str(public_half(self._source, folder))
            job = self._endpoint.job("cohort-client", members=self._members, program=place, **files)
            with party(folder, job, [program_path()]) as process:
                if progress is not None:
                    progress("offline", 0, 1, "keys, model")
                offline = event(process, "prepared")["cost"]
                result = event(process, "result")
            integers = read_integers(self.program, folder / "result.f64")
        suite = self._endpoint.suite
        plan = {**result["plan"], "statistical": suite.statistical}
        found = {**result, "offline": offline, "plan": plan}
        return read_prediction(suite, self.program, integers, samples, found)


def public_half(program: Path, folder: Path) -> Path:
    """A folder with nothing but the public half in `program`, a file or a folder.

    # Errors
    `Misuse` if there is none.
    """
    source = program / PUBLIC_FILE if program.is_dir() else program
    if not source.is_file():
        raise Misuse(f"{source} does not exist: `privet compile` writes the public half of a model")
    place = folder / "program"
    place.mkdir()
    (place / PUBLIC_FILE).write_bytes(source.read_bytes())
    return place
