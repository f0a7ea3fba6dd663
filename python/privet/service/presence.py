"""Which clients are there: those that wait for news of their jobs.

Every job takes both parties, so the scheduler must know who would come. A client is present while a
call of it waits for news, and for a moment after, until it has asked again; a call that asks for
news without waiting counts for that moment as well.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LEAVING_SECONDS = 5.0


class Presence:
    """Counts calls that wait; `changed` hears of clients that come (True) and leave (False)."""

    def __init__(self, changed: Callable[[str, bool], None]) -> None:
        self._changed = changed
        self._waiting: Counter[str] = Counter()
        self._leaving: dict[str, asyncio.TimerHandle] = {}

    @contextmanager
    def of(self, client: str) -> Iterator[None]:
        """The client is present while this is open."""
        leaving = self._leaving.pop(client, None)
        if leaving is not None:
            leaving.cancel()
        elif not self._waiting[client]:
            self._changed(client, True)
        self._waiting[client] += 1
        try:
            yield
        finally:
            self._waiting[client] -= 1
            if not self._waiting[client]:
                del self._waiting[client]
                loop = asyncio.get_running_loop()
                self._leaving[client] = loop.call_later(LEAVING_SECONDS, self._left, client)

    def _left(self, client: str) -> None:
        self._leaving.pop(client, None)
        self._changed(client, False)
