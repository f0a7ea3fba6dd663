"""SIGHUP: a process that serves reads files again, and what runs goes on."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from typing import Self

from privet.errors import PrivetError
from privet.logs import trace
from privet.runtime.tasks import Tasks

_log = logging.getLogger(__name__)


def hold() -> None:
    """From now on SIGHUP ends this process no more: it has no effect where no `Hangup` hears it.
    Processes that this one starts take it as ever."""
    signal.signal(signal.SIGHUP, lambda *_: None)


class Hangup:
    """Within `with`, on an event loop, calls `reload` at each SIGHUP, one at a time.

    `reload` reads files and puts what they say in place. If it raises because one of them cannot be
    used, it must have left everything as it was; that is logged. `subject` names in the log what
    was read.
    """

    def __init__(self, reload: Callable[[], Awaitable[None]], subject: str) -> None:
        self._reload = reload
        self._subject = subject
        self._tasks = Tasks()
        self._lock = asyncio.Lock()

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._loop.add_signal_handler(signal.SIGHUP, self._on_hangup)
        return self

    def __exit__(self, *_error: object) -> None:
        self._loop.remove_signal_handler(signal.SIGHUP)
        hold()
        for task in self._tasks:
            task.cancel()

    def _on_hangup(self) -> None:
        self._tasks.start(self._reload_once())

    async def _reload_once(self) -> None:
        async with self._lock:
            try:
                await self._reload()
            except (PrivetError, OSError, RuntimeError, MemoryError) as error:
                text = str(error) or type(error).__name__
                _log.error("nothing was read again", extra={"error": text})
            except Exception as error:  # Nobody foresaw it, so its message is not told.
                _log.error("files could not be read again", extra={"trace": trace(error)})
            else:
                _log.info("%s were read again", self._subject)
