"""Notices that are kept ahead, so that a request need not wait for its material."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Mapping
from typing import Any

from privet.errors import NotAccepted, PrivetError
from privet.gateway.client import ServiceClient
from privet.gateway.jobs import Notice
from privet.gateway.model import Terms
from privet.runtime.refill import Level, Listener, Refill, Source

FIND_SECONDS = 5.0
"""How long a start may wait for the service to list notices of an earlier gateway."""

_log = logging.getLogger(__name__)


class NoticeSource(Source):
    """Announces requests for a model at a service, which makes the material for them."""

    endures = (PrivetError,)

    def __init__(self, model: str, wanted: int, ahead: Ahead) -> None:
        super().__init__(model, wanted)
        self._ahead = ahead
        self.notices: list[Notice] = []
        self._announcing = 0
        self._is_refused = False

    def level(self) -> Level:
        """How many notices have their material."""
        ready = sum(notice.is_ready for notice in self.notices)
        return Level(self.model, ready, self.wanted, 0, len(self.notices) + self._announcing)

    def wants(self, level: Level) -> bool:
        """As `Source`, unless the service's policy does not accept it: asking again would not
        change that, and requests get to know why."""
        return not self._is_refused and super().wants(level)

    async def has_room(self) -> bool:
        """As `Source`."""
        unmade = sum(not notice.is_ready for notice in self.notices) + self._announcing
        return await self._ahead.client.has_room(self.model, self._ahead.terms, unmade + 1)

    async def make(self) -> None:
        """Begins to announce; several may be under way."""
        self._announcing += 1
        self._ahead.run(self._announce())

    def rest(self) -> None:
        """As `Source`; the client keeps no connection for it."""

    def add(self, notice: Notice) -> None:
        """Keeps a notice until it is taken or ends."""
        self.notices.append(notice)
        self._ahead.run(self._watch(notice))

    async def _announce(self) -> None:
        try:
            self.add(await self._ahead.client.notify(self.model, terms=self._ahead.terms))
        except NotAccepted as error:
            _log.error("no material is kept ready for %s: %s", self.model, error)
            self._is_refused = True
        except PrivetError as error:
            _log.warning("no notice for %s: %s", self.model, error)
            self._ahead.refill.failed(self, error)
        finally:
            self._announcing -= 1

    async def _watch(self, notice: Notice) -> None:
        """Gives up a notice that ends before it is used; another takes its place."""
        error: PrivetError | None = None
        try:
            await notice.ready()
            self.succeeded()
            self._ahead.refill.wake.set()
            await notice.over()
        except PrivetError as failure:
            error = failure
        if notice in self.notices:
            self.notices.remove(notice)
            _log.info("notice %s for %s ended: %s", notice.id, self.model, notice.reason)
            if error is not None:
                self._ahead.refill.failed(self, error)


class Ahead:
    """Within `async with`, keeps `levels` notices, by model; each for one inference on `terms`.

    `on_event` is called at every change, and must be quick.
    """

    def __init__(
        self,
        client: ServiceClient,
        terms: Terms,
        levels: Mapping[str, int],
        on_event: Listener | None = None,
    ) -> None:
        self.client, self.terms = client, terms
        self._sources = {model: NoticeSource(model, n, self) for model, n in levels.items()}
        self._tasks: set[asyncio.Task[None]] = set()
        self.refill = Refill(list(self._sources.values()), self._levels, client.bytes, on_event)

    def take(self, model: str) -> Notice | None:
        """The notice to use next: the oldest that is ready, or else the oldest; None if none."""
        notices = self._sources[model].notices if model in self._sources else []
        if not notices:
            return None
        chosen = next((notice for notice in notices if notice.is_ready), notices[0])
        notices.remove(chosen)
        self.refill.wake.set()
        return chosen

    async def __aenter__(self) -> Ahead:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIND_SECONDS):
                for source in self._sources.values():
                    await self._find(source)
        self.run(self.refill.run())
        return self

    async def __aexit__(self, *_error: object) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Does something in the background; then the levels are looked at."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.refill.wake.set()

    def _levels(self) -> tuple[Level, ...]:
        return tuple(source.level() for source in self._sources.values())

    async def _find(self, source: NoticeSource) -> None:
        """Takes over what an earlier gateway left."""
        try:
            for notice in await self.client.prepared(source.model, terms=self.terms):
                if len(source.notices) < source.wanted:
                    source.add(notice)
        except PrivetError as error:
            _log.warning("no notices of %s can be found: %s", source.model, error)
