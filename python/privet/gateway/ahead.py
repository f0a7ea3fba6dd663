"""Notices that are kept ahead, so that a request need not wait for its material."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Coroutine, Mapping
from typing import Any

from privet.errors import NotAccepted, PrivetError
from privet.gateway.client import ServiceClient
from privet.gateway.errand import Notice
from privet.gateway.model import Terms

RETRY_SECONDS = 5.0

FIND_SECONDS = 5.0
"""How long a start may wait for the service to tell of notices that are left from before."""

_log = logging.getLogger(__name__)


class Ahead:
    """Within `async with`, keeps `levels` notices, by model; each for one inference on `terms`."""

    def __init__(self, client: ServiceClient, terms: Terms, levels: Mapping[str, int]) -> None:
        self._client = client
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
        while True:
            try:
                while len(notices) < self._levels[model]:
                    self._add(await self._client.notify(model, terms=self._terms))
            except NotAccepted as error:
                # Asking again would not change that; requests are told why.
                _log.error("no material is kept ready for %s: %s", model, error)
                return
            except PrivetError as error:
                _log.warning("no notice for %s: %s", model, error)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            wanted.clear()
            await wanted.wait()

    async def _watch(self, notice: Notice) -> None:
        """Replaces a notice that ends before it is used."""
        with contextlib.suppress(PrivetError):
            await notice.over()
        notices = self._notices[notice.model]
        if notice in notices:
            notices.remove(notice)
            _log.info("notice %s for %s ended: %s", notice.id, notice.model, notice.reason)
            if notice.outcome != "done":
                await asyncio.sleep(RETRY_SECONDS)
            self._wanted[notice.model].set()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
