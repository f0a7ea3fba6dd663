"""Worker pools: the workers of one organisation's stages, wherever they run.

Processes of this machine are the default; `privet.stream.ray_pool` has them in a cluster."""

from __future__ import annotations

import asyncio
import multiprocessing
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any

from privet.errors import Misuse, PrivetError
from privet.suites.spawned import deaf_to_ctrl_c, end_with_parent, kill

ATTEMPTS = 5
"""How often work is tried whose workers are lost."""

START_SECONDS = 60.0
"""What a new worker may take at least until it answers its first question."""

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


class WorkerPool(ABC):
    """Workers of one organisation, one for each part of each stage.

    A worker does one call after the other. Every call ends: with its result, with what the worker
    raised, or with `WorkerLost` when the worker died or the deadline passed; then another worker
    takes its place. Where workers live is for the classes below this one.
    """

    lost_errors: tuple[type[Exception], ...] = (TimeoutError,)
    """What asking a worker raises when there is none any more, or none that answers."""

    def __init__(self, seconds: float) -> None:
        """`seconds` is the deadline of a call, of which a new worker's start is no part."""
        self._seconds = seconds
        self._recipe: Recipe | None = None
        self._workers: dict[Place, Any] = {}
        self._up: dict[Place, Any] = {}
        self._turns: defaultdict[Place, asyncio.Lock] = defaultdict(asyncio.Lock)

    @abstractmethod
    async def start(self, recipe: Recipe, parts: Sequence[Part]) -> None:
        """Starts a worker for each part. Raises `PrivetError` if one does not come up; none are
        left then."""

    async def call(self, stage: int, part: int, method: str, *arguments: Any) -> Any:
        """Has a worker do something. A caller that goes away leaves the worker to end it, and the
        next waits for that."""
        # Its turn first, so that the deadline counts what the worker does and not others' calls.
        turn = self._turns[stage, part]
        await turn.acquire()
        doing = asyncio.create_task(self._do((stage, part), method, arguments))

        def ended(task: asyncio.Task[Any]) -> None:
            turn.release()
            if not task.cancelled():
                # The caller may have gone.
                task.exception()

        doing.add_done_callback(ended)
        return await asyncio.shield(doing)

    async def _do(self, place: Place, method: str, arguments: tuple[Any, ...]) -> Any:
        worker = self._workers.get(place)
        if worker is None:
            raise Misuse(f"there is no worker for part {place[1]} of stage {place[0]}")
        try:
            if self._up.get(place) is not worker:
                async with asyncio.timeout(max(self._seconds, START_SECONDS)):
                    await self._ask(worker, "process", ())
                self._up[place] = worker
            async with asyncio.timeout(self._seconds):
                return await self._ask(worker, method, arguments)
        except self.lost_errors as error:
            if self._workers.get(place) is worker:
                self._workers[place] = self._hire(place)
            self._end(worker)
            raise WorkerLost(f"a worker of stage {place[0]} was lost: {error!r}") from error

    async def processes(self) -> dict[Place, int]:
        """Ids of the workers' processes by stage and part."""
        places = list(self._workers)
        ids = await asyncio.gather(*(self.call(*place, "process") for place in places))
        return dict(zip(places, ids, strict=True))

    async def close(self) -> None:
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


def connect(address: str | None, seconds: float) -> WorkerPool:
    """A pool of processes on this machine, or of Ray actors in the cluster at `address`.

    `seconds` is the deadline of a call.
    """
    if address is None:
        return LocalPool(seconds)
    if not address:
        raise Misuse("a cluster's address is HOST:PORT, or auto")
    from privet.stream.ray_pool import RayPool

    return RayPool(address, seconds)


def raise_first(results: Sequence[object]) -> None:
    """Raises the first error, a lost worker before others, because that is mended by redoing."""
    errors = [result for result in results if isinstance(result, BaseException)]
    errors.sort(key=lambda error: not isinstance(error, WorkerLost))
    if errors:
        raise errors[0]


_worker: Any = None
"""In a worker's process: the worker."""


def _become(recipe: Recipe) -> None:
    global _worker
    end_with_parent()
    worker = recipe.kind(*recipe.arguments)
    if recipe.secret is not None:
        method, secret = recipe.secret
        getattr(worker, method)(secret)
    _worker = worker


def _do(method: str, arguments: tuple[Any, ...]) -> Any:
    return getattr(_worker, method)(*arguments)


class LocalPool(WorkerPool):
    """Each worker is a process; servers' names mean nothing here."""

    lost_errors = (BrokenProcessPool, RuntimeError, TimeoutError)

    async def start(self, recipe: Recipe, parts: Sequence[Part]) -> None:
        self._recipe = recipe
        for part in parts:
            self._workers[part.stage, part.part] = self._hire((part.stage, part.part))
        try:
            await self.processes()
        except BaseException:
            await self.close()
            raise

    def _hire(self, place: Place) -> ProcessPoolExecutor:
        if self._recipe is None:
            raise Misuse("start the pool first")
        # Not a fork: the organisation's process has threads.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, context, initializer=_become, initargs=(self._recipe,))

    async def _ask(
        self, worker: ProcessPoolExecutor, method: str, arguments: tuple[Any, ...]
    ) -> Any:
        # The first one starts the process. A keyboard's interrupt goes to the organisation's, which
        # ends its workers.
        with deaf_to_ctrl_c():
            future = worker.submit(_do, method, arguments)
        return await asyncio.wrap_future(future)

    def _end(self, worker: ProcessPoolExecutor) -> None:
        kill(worker)
        worker.shutdown(wait=False, cancel_futures=True)
