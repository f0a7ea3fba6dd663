"""What every crew can do, wherever its workers are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from privet.errors import Misuse, PrivetError


class WorkerLost(PrivetError):
    """A worker died or did not answer in time; it is being replaced, and the call may be redone."""


@dataclass(frozen=True)
class Recipe:
    """How a worker is made: its class, its arguments, and a call that hands it a secret.

    The secret goes to each worker by a call, never as an argument, because a cluster writes the
    arguments of workers down.
    """

    kind: type
    arguments: tuple[Any, ...]
    secret: tuple[str, bytes] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Part:
    """A worker's place: the stage, which of its parts, and the server that it is on."""

    stage: int
    part: int
    server: str | None = None


class Crew(Protocol):
    """Workers of one organisation, one for each part of each stage.

    A worker does one call after the other. Every call ends: with its result, with the worker's
    `PrivetError`, or with `WorkerLost` when the worker died or the deadline passed; then another
    worker takes its place.
    """

    async def start(self, recipe: Recipe, parts: Sequence[Part]) -> None:
        """Starts a worker for each part.

        # Errors
        `PrivetError` if one does not come up; none are left then.
        """
        ...

    async def call(self, stage: int, part: int, method: str, *arguments: Any) -> Any:
        """Has a worker do something."""
        ...

    async def processes(self) -> dict[tuple[int, int], int]:
        """Ids of the workers' processes by stage and part."""
        ...

    async def close(self) -> None:
        """Ends all workers."""
        ...


def connect(address: str | None, seconds: float) -> Crew:
    """A crew of processes on this machine, or of Ray actors in the cluster at `address`.

    `seconds` is the deadline of a call.
    """
    if address is None:
        from privet.stream.crew.local import LocalCrew

        return LocalCrew(seconds)
    if not address:
        raise Misuse("a cluster's address is HOST:PORT, or auto")
    from privet.stream.crew.ray import RayCrew

    return RayCrew(address, seconds)
