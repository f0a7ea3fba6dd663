"""A member of a cohort of suite `ckks`: a process of the program `privet-ckks` for each inference.

All members have the public half of the program; the one with number 0 has the weights as well.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from privet.compiler.compile import PRIVATE_FILE, PUBLIC_FILE
from privet.errors import Misuse
from privet.runtime.homomorphic import Endpoint, read_cost
from privet.suites.ckks import program_path
from privet.suites.costs import PhaseCost
from privet.suites.spawned import event, party


def take_part(
    program: Path, member: int, endpoint: Endpoint, begun: Callable[[], None]
) -> PhaseCost:
    """Waits for an inference, however long that takes, and takes part in it as a member; `begun`
    is called when it begins. `program` is the public half, of member 0 the folder with both halves.

    # Errors
    `LinkError`; `PeerMisbehaved` if the coordinator breaks the protocol or gives up.
    """
    check_half(program, member, endpoint.suite.parties)
    with tempfile.TemporaryDirectory(prefix="privet-") as name:
        folder = Path(name)
        place = program if member == 0 else public_half(program, folder)
        members = endpoint.suite.parties
        job = endpoint.job("member", member=member, members=members, program=str(place))
        with party(folder, job, [program_path()]) as process:
            event(process, "begun")
            begun()
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
