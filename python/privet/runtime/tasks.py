"""Work in the background of an event loop, which is held until it has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


class Tasks:
    """Tasks that run; `ended` is called with each when it has ended."""

    def __init__(self, ended: Callable[[asyncio.Task[Any]], object] | None = None) -> None:
        self._running: set[asyncio.Task[Any]] = set()
        self._ended = ended

    def __len__(self) -> int:
        return len(self._running)

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        return iter(tuple(self._running))

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begins work; its task."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._on_done)
        return task

    async def wait(self) -> None:
        """Waits until all work has ended, also what is begun meanwhile."""
        while self._running:
            await asyncio.wait(self._running)

    async def cancel(self) -> None:
        """Breaks off all work, and waits until it has ended; a task that calls this goes on."""
        tasks = [task for task in self._running if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if self._ended is not None:
            self._ended(task)
