"""Keeps material at its levels: the loop behind every pool, whoever makes the material.

A pool of a server's client (`privet.runtime.pool`) makes entries itself, one after the other; that
of a service's client (`privet.gateway.ahead`) announces them, and the service makes them side by
side.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from privet.errors import NotAccepted, PeerError, PrivetError, StoreFull
from privet.suites.costs import PhaseCost

POLL_SECONDS = 0.5
"""How often a full pool looks whether somebody has used an entry."""

FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 60.0
"""After a failure it is tried again after the first delay, then after twice as long each time."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Level:
    """How full a pool is for a model: `ready` of `wanted` entries, which take `bytes` on disk.

    `ready` is None until it is known which program the model is. `begun` also counts those that are
    being made.
    """

    model: str
    ready: int | None
    wanted: int
    bytes: int
    begun: int


@dataclass(frozen=True)
class PoolEvent:
    """Something that happened in a pool; `levels` and `bytes` (on disk) are those after it.

    `kind` is `levels` (the levels changed otherwise than by this pool), `made` (an entry was made),
    `full` (an entry for `model` would go beyond the limit on disk) or `waiting` (`error` keeps the
    pool from making material for `model` for `seconds`).
    """

    kind: str
    levels: tuple[Level, ...]
    bytes: int
    model: str | None = None
    material: str | None = None
    cost: PhaseCost | None = None
    seconds: float | None = None
    error: PrivetError | None = None


Listener = Callable[[PoolEvent], None]


@dataclass(frozen=True)
class Made:
    """An entry that was made."""

    material: str
    cost: PhaseCost | None


class Source(ABC):
    """Where the material of one model comes from, and when it is tried again after a failure."""

    endures: tuple[type[PrivetError], ...] = (PeerError, StoreFull)
    """Errors after which it is tried again; others end the pool, as `NotAccepted` does."""

    def __init__(self, model: str, wanted: int) -> None:
        self.model, self.wanted = model, wanted
        self.is_crowded = False
        self._delay, self._due = FIRST_DELAY_SECONDS, 0.0

    @property
    def is_due(self) -> bool:
        """Whether the time of a delay is over."""
        return time.monotonic() >= self._due

    def wants(self, level: Level) -> bool:
        """Whether something is to be done at that level."""
        return level.begun < self.wanted

    @abstractmethod
    async def has_room(self) -> bool:
        """Whether the disk has room for another entry."""

    @abstractmethod
    async def make(self) -> Made | None:
        """Makes an entry, or begins to; None if none is made by now."""

    @abstractmethod
    def rest(self) -> None:
        """There is nothing to do now."""

    def put_off(self) -> float:
        """It failed; in how many seconds to try again.

        Entries that are made side by side may fail together, which counts once.
        """
        now = time.monotonic()
        if now >= self._due:
            self._due = now + self._delay
            self._delay = min(2 * self._delay, LONGEST_DELAY_SECONDS)
        return self._due - now

    def succeeded(self) -> None:
        """It did not fail."""
        self._delay = FIRST_DELAY_SECONDS


class Refill:
    """Fills `sources`, the one with the smallest part of its level first.

    `levels` gives the level of each, `bytes` what lies on disk. `on_event` hears of everything; if
    it raises, that is logged.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        levels: Callable[[], tuple[Level, ...]],
        bytes: Callable[[], int],
        on_event: Listener | None = None,
    ) -> None:
        self._sources = sources
        self._levels = levels
        self._bytes = bytes
        self._on_event = on_event
        self._known: tuple[Level, ...] | None = None
        self.stopping = False
        self.wake = asyncio.Event()

    async def run(self, *, once: bool = False) -> None:
        """Fills, and unless `once` goes on until it is `stopping`.

        # Errors
        `NotAccepted`, and what the sources do not endure; with `once`, any error.
        """
        while not self.stopping:
            self.wake.clear()
            if await self._step(once):
                continue
            if once:
                return
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await self.wake.wait()
            except TimeoutError:
                continue

    async def _step(self, once: bool) -> bool:
        """Makes one entry where it is missed most; False if there is nothing to make now."""
        levels = self._levels()
        if levels != self._known:
            self._notify("levels", levels)
        order = zip(self._sources, levels, strict=True)
        for source, level in sorted(order, key=lambda it: it[1].begun / it[1].wanted):
            if not source.is_due or not source.wants(level):
                source.rest()
                continue
            try:
                if await self._fill(source):
                    return True
            except source.endures as error:
                if isinstance(error, NotAccepted) or once or self.stopping:
                    raise
                self.failed(source, error)
        return False

    async def _fill(self, source: Source) -> bool:
        """Makes an entry; False if the disk is too full."""
        if not await source.has_room():
            if not source.is_crowded:
                self._notify("full", self._levels(), model=source.model)
            source.is_crowded = True
            return False
        source.is_crowded = False
        made = await source.make()
        if made is not None:
            fields: dict[str, Any] = {"material": made.material, "cost": made.cost}
            self._notify("made", self._levels(), model=source.model, **fields)
        return not self.stopping

    def failed(self, source: Source, error: PrivetError) -> None:
        """Tries a source again later."""
        seconds = source.put_off()
        fields: dict[str, Any] = {"seconds": seconds, "error": error}
        self._notify("waiting", self._levels(), model=source.model, **fields)

    def _notify(self, kind: str, levels: tuple[Level, ...], **fields: Any) -> None:
        self._known = levels
        if self._on_event is None:
            return
        event = PoolEvent(kind, levels, self._bytes(), **fields)
        try:
            self._on_event(event)
        except Exception:
            _log.exception("on_event raised on %s", event)
