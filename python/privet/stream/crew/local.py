"""Workers as processes of this machine: the default, without a cluster."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from privet.errors import Misuse
from privet.stream.crew.crew import Crew, Part, Place, Recipe

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


class LocalCrew(Crew):
    """Each worker is a process; servers' names mean nothing here."""

    gone = (BrokenProcessPool, RuntimeError, TimeoutError)

    async def start(self, recipe: Recipe, parts: Sequence[Part]) -> None:
        """Starts a process for each part."""
        self._recipe = recipe
        for it in parts:
            self._workers[it.stage, it.part] = self._hire((it.stage, it.part))
        try:
            await self.processes()
        except BaseException:
            await self.close()
            raise

    def _hire(self, place: Place) -> ProcessPoolExecutor:
        if self._recipe is None:
            raise Misuse("start the crew first")
        # Not a fork: the organisation's process has threads.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, context, initializer=_become, initargs=(self._recipe,))

    async def _ask(
        self, worker: ProcessPoolExecutor, method: str, arguments: tuple[Any, ...]
    ) -> Any:
        return await asyncio.wrap_future(worker.submit(_do, method, arguments))

    def _end(self, worker: ProcessPoolExecutor) -> None:
        for process in list((worker._processes or {}).values()):
            with contextlib.suppress(ProcessLookupError):
                if process.pid is not None:
                    os.kill(process.pid, signal.SIGKILL)
        worker.shutdown(wait=False, cancel_futures=True)
