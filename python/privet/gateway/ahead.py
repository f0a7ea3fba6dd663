"""Material that is kept ahead at its levels, so that a request need not wait for it.

Requests are announced before they come; the service makes material for them, side by side.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from privet.errors import NotAccepted, PrivetError
from privet.gateway.client import ServiceClient
from privet.gateway.jobs import Notice
from privet.gateway.model import Terms
from privet.runtime.shortage import as_reported
from privet.runtime.tasks import Tasks

FIND_SECONDS = 5.0
"""How long a start may wait for the service to list notices of an earlier gateway."""

POLL_SECONDS = 0.5
"""How often it is looked whether somebody has used an entry."""

FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 60.0
"""After a failure it is tried again after the first delay, then after twice as long each time."""

FAULTS = (PrivetError, OSError, MemoryError, RuntimeError)
"""What announcing may fail by: the service, or a lack of files, memory or threads here."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Level:
    """How much is ready for a model: `ready` of `wanted` notices have their material."""

    model: str
    ready: int
    wanted: int


@dataclass(frozen=True)
class LevelEvent:
    """Something that happened; `levels` and `bytes` (on disk) are those after it.

    `kind` is `levels` (the levels changed), `full` (an entry for `model` would go beyond the limit
    on disk) or `waiting` (`error` keeps `model` from material for `seconds`).
    """

    kind: str
    levels: tuple[Level, ...]
    bytes: int
    model: str | None = None
    seconds: float | None = None
    error: PrivetError | None = None


Listener = Callable[[LevelEvent], None]


class Delay:
    """When something that failed is tried again."""

    def __init__(self) -> None:
        self._seconds, self._due = FIRST_DELAY_SECONDS, 0.0

    @property
    def is_over(self) -> bool:
        """Whether it may be tried now."""
        return time.monotonic() >= self._due

    def failed(self) -> float:
        """It failed; in how many seconds to try again. Failures side by side count once."""
        now = time.monotonic()
        if now >= self._due:
            self._due = now + self._seconds
            self._seconds = min(2 * self._seconds, LONGEST_DELAY_SECONDS)
        return self._due - now

    def succeeded(self) -> None:
        """It did not fail."""
        self._seconds = FIRST_DELAY_SECONDS


class Stock:
    """The notices for a model, of which `wanted` are to be ready."""

    def __init__(self, model: str, wanted: int) -> None:
        self.model, self.wanted = model, wanted
        self.notices: list[Notice] = []
        self.announcing = 0
        self.delay = Delay()
        self.is_crowded = False
        self.is_refused = False
        """The service's policy does not accept it: asking again would not change that, and requests
        get to know why."""

    @property
    def level(self) -> Level:
        """How many notices have their material."""
        return Level(self.model, sum(notice.is_ready for notice in self.notices), self.wanted)

    @property
    def pending(self) -> int:
        """How many are ready or under way."""
        return len(self.notices) + self.announcing

    @property
    def is_wanting(self) -> bool:
        """Whether a further one is to be announced now."""
        return self.pending < self.wanted and not self.is_refused and self.delay.is_over


class Ahead:
    """Within `async with`, keeps `levels` notices, by model; each for one inference on `terms`.

    `on_event` is called at every change, and must be quick; if it raises, that is logged.
    """

    def __init__(
        self,
        client: ServiceClient,
        terms: Terms,
        levels: Mapping[str, int],
        on_event: Listener | None = None,
    ) -> None:
        self._client, self._terms, self._on_event = client, terms, on_event
        self._stocks = {model: Stock(model, level) for model, level in levels.items()}
        self._reported_levels: tuple[Level, ...] | None = None
        self._wake = asyncio.Event()
        self._tasks = Tasks(lambda _task: self._wake.set())

    def take(self, model: str) -> Notice | None:
        """The notice to use next: the oldest that is ready, or else the oldest; None if none."""
        notices = self._stocks[model].notices if model in self._stocks else []
        if not notices:
            return None
        first = next((notice for notice in notices if notice.is_ready), notices[0])
        notices.remove(first)
        self._wake.set()
        return first

    async def __aenter__(self) -> Ahead:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIND_SECONDS):
                for stock in self._stocks.values():
                    await self._find(stock)
        self._tasks.start(self._refill())
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._tasks.cancel()

    async def _find(self, stock: Stock) -> None:
        """Takes over what an earlier gateway left."""
        try:
            for notice in await self._client.prepared(stock.model, terms=self._terms):
                if len(stock.notices) < stock.wanted:
                    self._add(stock, notice)
        except FAULTS as error:
            _log.warning("no notices of %s can be found: %s", stock.model, error)

    async def _refill(self) -> None:
        """Announces what is missing, for the model with the smallest part of its level first."""
        while True:
            self._wake.clear()
            if (levels := self._levels()) != self._reported_levels:
                self._notify("levels", levels)
            wanting = [stock for stock in self._stocks.values() if stock.is_wanting]
            for stock in sorted(
                wanting, key=lambda candidate: candidate.pending / candidate.wanted
            ):
                if await self._begin(stock):
                    break
            else:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await self._wake.wait()

    async def _begin(self, stock: Stock) -> bool:
        """Begins to announce, if the disk has room; several may be under way."""
        unmade = stock.pending - stock.level.ready
        try:
            has_room = await self._client.has_room(stock.model, self._terms, unmade + 1)
        except FAULTS as error:
            self._failed(stock, as_reported(error))
            return False
        if not has_room and not stock.is_crowded:
            self._notify("full", self._levels(), model=stock.model)
        stock.is_crowded = not has_room
        if has_room:
            stock.announcing += 1
            self._tasks.start(self._announce(stock))
        return has_room

    async def _announce(self, stock: Stock) -> None:
        try:
            self._add(stock, await self._client.notify(stock.model, terms=self._terms))
        except FAULTS as error:
            self._failed(stock, as_reported(error))
        finally:
            stock.announcing -= 1

    def _add(self, stock: Stock, notice: Notice) -> None:
        """Keeps a notice until it is taken or ends."""
        stock.notices.append(notice)
        self._tasks.start(self._watch(stock, notice))

    async def _watch(self, stock: Stock, notice: Notice) -> None:
        """Gives up a notice that ends before it is used; another takes its place."""
        error: PrivetError | None = None
        try:
            await notice.ready()
            stock.delay.succeeded()
            self._wake.set()
            await notice.over()
        except PrivetError as failure:
            error = failure
        if notice in stock.notices:
            stock.notices.remove(notice)
            _log.info("notice %s for %s ended: %s", notice.id, stock.model, notice.reason)
            if error is not None:
                self._failed(stock, error)

    def _failed(self, stock: Stock, error: PrivetError) -> None:
        """Tries again later, unless the service's policy is against it."""
        if isinstance(error, NotAccepted):
            _log.error("no material is kept ready for %s: %s", stock.model, error)
            stock.is_refused = True
            return
        _log.warning("no notice for %s: %s", stock.model, error)
        seconds = stock.delay.failed()
        self._notify("waiting", self._levels(), model=stock.model, seconds=seconds, error=error)

    def _levels(self) -> tuple[Level, ...]:
        return tuple(stock.level for stock in self._stocks.values())

    def _notify(self, kind: str, levels: tuple[Level, ...], **fields: Any) -> None:
        self._reported_levels = levels
        if self._on_event is None:
            return
        try:
            self._on_event(LevelEvent(kind, levels, self._client.bytes(), **fields))
        except Exception:
            _log.exception("nobody could be told of %s, or on_event raised", kind)
