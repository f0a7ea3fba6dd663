"""What every crew can do, wherever its workers are."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from privet.errors import Misuse, PrivetError

ATTEMPTS = 5
"""How often work is tried whose workers are lost."""

Place = tuple[int, int]
"""A stage, and which of its parts."""


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


class Crew(ABC):
    """Workers of one organisation, one for each part of each stage.

    A worker does one call after the other. Every call ends: with its result, with what the worker
    raised, or with `WorkerLost` when the worker died or the deadline passed; then another worker
    takes its place. Where workers live is for the classes below this one.
    """

    gone: tuple[type[Exception], ...] = (TimeoutError,)
    """What asking a worker raises when there is none any more, or none that answers."""

    def __init__(self, seconds: float) -> None:
        """`seconds` is the deadline of a call."""
        self._seconds = seconds
        self._recipe: Recipe | None = None
        self._workers: dict[Place, Any] = {}
        self._turns: defaultdict[Place, asyncio.Lock] = defaultdict(asyncio.Lock)

    @abstractmethod
    async def start(self, recipe: Recipe, parts: Sequence[Part]) -> None:
        """Starts a worker for each part.

        # Errors
        `PrivetError` if one does not come up; none are left then.
        """

    async def call(self, stage: int, part: int, method: str, *arguments: Any) -> Any:
        """Has a worker do something."""
        # Its turn first, so that the deadline counts what the worker does and not others' calls.
        async with self._turns[stage, part]:
            worker = self._workers.get((stage, part))
            if worker is None:
                raise Misuse(f"there is no worker for part {part} of stage {stage}")
            try:
                async with asyncio.timeout(self._seconds):
                    return await self._ask(worker, method, arguments)
            except self.gone as error:
                if self._workers.get((stage, part)) is worker:
                    self._workers[stage, part] = self._hire((stage, part))
                self._end(worker)
                raise WorkerLost(f"a worker of stage {stage} was lost: {error!r}") from error

    async def processes(self) -> dict[Place, int]:
        """Ids of the workers' processes by stage and part."""
        places = list(self._workers)
        ids = await asyncio.gather(*(self.call(*place, "process") for place in places))
        return dict(zip(places, ids, strict=True))

    async def close(self) -> None:
        """Ends all workers."""
        workers, self._workers = self._workers, {}
        for worker in workers.values():
            self._end(worker)

    @abstractmethod
    def _hire(self, place: Place) -> Any:
        """A new worker for a place."""

    @abstractmethod
    async def _ask(self, worker: Any, method: str, arguments: tuple[Any, ...]) -> Any:
        """What a worker's method returns, or raises."""

    @abstractmethod
    def _end(self, worker: Any) -> None:
        """Ends a worker, which holds nothing that another would miss; again if it has ended."""


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


def raise_first(results: Sequence[object]) -> None:
    """Raises the first error, a lost worker before others, because that is mended by redoing."""
    errors = [it for it in results if isinstance(it, BaseException)]
    errors.sort(key=lambda error: not isinstance(error, WorkerLost))
    if errors:
        raise errors[0]
