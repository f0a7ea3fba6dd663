"""Notices that are kept ahead, so that a request need not wait for its material."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from privet.errors import NotAccepted, PrivetError
from privet.gateway.client import ServiceClient
from privet.gateway.jobs import Notice
from privet.gateway.model import Terms

RETRY_SECONDS = 5.0

FIND_SECONDS = 5.0
"""How long a start may wait for the service to list notices of an earlier gateway."""

FULL_SECONDS = 1.0
"""How often a client whose disk is full looks whether material was used."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Level:
    """How many entries of `wanted` are `ready` for a model.

    `kind` is `levels` (that has changed), `full` (a further entry would go beyond the limit on
    disk) or `waiting` (`error` keeps material from being made for `seconds`).
    """

    kind: str
    model: str
    ready: int
    wanted: int
    error: PrivetError | None = None
    seconds: float | None = None


class Ahead:
    """Within `async with`, keeps `levels` notices, by model; each for one inference on `terms`.

    `on_level` is called at every change, and must be quick.
    """

    def __init__(
        self,
        client: ServiceClient,
        terms: Terms,
        levels: Mapping[str, int],
        on_level: Callable[[Level], None] = lambda level: None,
    ) -> None:
        self._client = client
        self._on_level = on_level
        self._terms = terms
        self._levels = levels
        self._notices: dict[str, deque[Notice]] = {model: deque() for model in levels}
        self._wanted = {model: asyncio.Event() for model in levels}
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, model: str) -> Notice | None:
        """The notice to use next: the oldest that is ready, or else the oldest; None if none."""
        notices = self._notices.get(model)
        if not notices:
            return None
        chosen = next((notice for notice in notices if notice.is_ready), notices[0])
        notices.remove(chosen)
        self._wanted[model].set()
        return chosen

    def ready(self, model: str) -> int:
        """How many notices for a model have their material ready."""
        return sum(notice.is_ready for notice in self._notices.get(model, ()))

    async def __aenter__(self) -> Ahead:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIND_SECONDS):
                for model in self._levels:
                    await self._find(model)
        for model in self._levels:
            self._run(self._keep(model))
        return self

    async def __aexit__(self, *_error: object) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _find(self, model: str) -> None:
        """Takes over what an earlier gateway left."""
        try:
            for notice in await self._client.prepared(model, terms=self._terms):
                if len(self._notices[model]) < self._levels[model]:
                    self._add(notice)
        except PrivetError as error:
            _log.warning("no notices of %s can be found: %s", model, error)

    def _add(self, notice: Notice) -> None:
        self._notices[notice.model].append(notice)
        self._run(self._watch(notice))

    async def _keep(self, model: str) -> None:
        notices, wanted = self._notices[model], self._wanted[model]
        full = False
        while True:
            try:
                while len(notices) < self._levels[model]:
                    unmade = sum(not notice.is_ready for notice in notices)
                    if not await self._client.has_room(model, self._terms, unmade + 1):
                        if not full:
                            self._notify("full", model)
                        full = True
                        await asyncio.sleep(FULL_SECONDS)
                        continue
                    full = False
                    self._add(await self._client.notify(model, terms=self._terms))
            except NotAccepted as error:
                # Asking again would not change that; requests are reply why.
                _log.error("no material is kept ready for %s: %s", model, error)
                return
            except PrivetError as error:
                _log.warning("no notice for %s: %s", model, error)
                await self._wait(model, error)
                continue
            wanted.clear()
            await wanted.wait()

    async def _watch(self, notice: Notice) -> None:
        """Replaces a notice that ends before it is used."""
        model, notices = notice.model, self._notices[notice.model]
        error: PrivetError | None = None
        try:
            await notice.ready()
            self._notify("levels", model)
            await notice.over()
        except PrivetError as failure:
            error = failure
        if notice in notices:
            notices.remove(notice)
            _log.info("notice %s for %s ended: %s", notice.id, model, notice.reason)
            if error is not None:
                await self._wait(model, error)
            else:
                self._notify("levels", model)
            self._wanted[model].set()

    async def _wait(self, model: str, error: PrivetError) -> None:
        self._notify("waiting", model, error=error, seconds=RETRY_SECONDS)
        await asyncio.sleep(RETRY_SECONDS)

    def _notify(self, kind: str, model: str, **fields: Any) -> None:
        self._on_level(Level(kind, model, self.ready(model), self._levels[model], **fields))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
