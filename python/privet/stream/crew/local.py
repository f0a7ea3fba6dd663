"""Workers as processes of this machine: the default, without a cluster."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from privet.errors import Misuse
from privet.stream.crew.crew import Part, Recipe, WorkerLost

_worker: Any = None
"""In a worker's process: the worker."""


def _become(recipe: Recipe) -> None:
    global _worker
    # A keyboard's interrupt goes to the organisation's process, which ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker = recipe.kind(*recipe.arguments)
    if recipe.secret is not None:
        method, secret = recipe.secret
        getattr(worker, method)(secret)
    _worker = worker


def _do(method: str, arguments: tuple[Any, ...]) -> Any:
    return getattr(_worker, method)(*arguments)


class LocalCrew:
    """As `Crew`; servers' names mean nothing here."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._recipe: Recipe | None = None
        self._workers: dict[tuple[int, int], ProcessPoolExecutor] = {}
        self._turns: defaultdict[tuple[int, int], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def start(self, recipe: Recipe, parts: Sequence[Part]) -> None:
        """Starts a process for each part."""
        self._recipe = recipe
        for it in parts:
            self._workers[it.stage, it.part] = self._hire()
        try:
            await self.processes()
        except BaseException:
            await self.close()
            raise

    async def call(self, stage: int, part: int, method: str, *arguments: Any) -> Any:
        """Has a worker do something."""
        # Its turn first, so that the deadline counts what the worker does and not others' calls.
        async with self._turns[stage, part]:
            return await self._call(stage, part, method, arguments)

    async def _call(self, stage: int, part: int, method: str, arguments: tuple[Any, ...]) -> Any:
        worker = self._workers.get((stage, part))
        if worker is None:
            raise Misuse(f"there is no worker for part {part} of stage {stage}")
        try:
            job = asyncio.wrap_future(worker.submit(_do, method, arguments))
            async with asyncio.timeout(self._seconds):
                return await job
        except (BrokenProcessPool, TimeoutError, RuntimeError) as error:
            self._replace((stage, part), worker)
            raise WorkerLost(f"a worker of stage {stage} was lost: {error!r}") from error

    async def processes(self) -> dict[tuple[int, int], int]:
        """Ids of the workers' processes by stage and part."""
        ids = await asyncio.gather(*(self.call(*place, "process") for place in self._workers))
        return dict(zip(self._workers, ids, strict=True))

    async def close(self) -> None:
        """Ends all workers."""
        workers, self._workers = self._workers, {}
        for worker in workers.values():
            _end(worker)

    def _hire(self) -> ProcessPoolExecutor:
        if self._recipe is None:
            raise Misuse("start the crew first")
        # Not a fork: the organisation's process has threads.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, context, initializer=_become, initargs=(self._recipe,))

    def _replace(self, place: tuple[int, int], lost: ProcessPoolExecutor) -> None:
        """Puts a new worker in a place, once for each that was lost."""
        if self._workers.get(place) is lost:
            self._workers[place] = self._hire()
        _end(lost)


def _end(worker: ProcessPoolExecutor) -> None:
    """Kills a worker, which holds nothing that another would miss."""
    for process in list((worker._processes or {}).values()):
        with contextlib.suppress(ProcessLookupError):
            if process.pid is not None:
                os.kill(process.pid, signal.SIGKILL)
    worker.shutdown(wait=False, cancel_futures=True)
