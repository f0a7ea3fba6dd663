"""How a client hears of its errands: one long poll for all of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from privet.errors import Misuse, PeerMisbehaved, PrivetError
from privet.gateway.calls import Calls
from privet.gateway.errand import Errand

WAIT_SECONDS = 25.0
"""How long the service is asked to hold a poll."""

PACE_SECONDS = 0.02
"""The least time from one poll to the next, which then tells more."""

SILENCE_SECONDS = 60.0
"""After this long without news, an errand is asked for by its name."""

RETRY_SECONDS = 5.0
"""Between polls that failed for all the patience of the calls."""

_log = logging.getLogger(__name__)

Followed = TypeVar("Followed", bound=Errand)


class News:
    """Tells errands what the service says of them, while there are any.

    With `adopt`, news of jobs that are nobody's go there, and it polls all the time; it returns an
    errand to follow, or None.
    """

    def __init__(
        self, calls: Calls, adopt: Callable[[dict[str, Any]], Errand | None] | None = None
    ) -> None:
        self._calls = calls
        self._adopt = adopt
        self._errands: dict[str, Errand] = {}
        self._seen: int | None = None
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def follow(self, errand: Followed, sequence: int) -> Followed:
        """Tells `errand` from now on all that happened from the change `sequence` on."""
        if self._seen is None:
            self._seen = max(0, sequence - 1)
        self._errands[errand.id] = errand
        self._start()
        return errand

    def drop(self, errand: Errand) -> None:
        """Tells `errand` no more."""
        self._errands.pop(errand.id, None)

    async def all(self) -> list[dict[str, Any]]:
        """What the service says of all jobs of this certificate that it remembers."""
        told = await self._calls.get("/v2/jobs")
        try:
            return [dict(document) for document in told["jobs"]]
        except (KeyError, TypeError, ValueError) as error:
            raise PeerMisbehaved(f"the service's news make no sense: {error!r}") from error

    def begin(self) -> None:
        """Begins to poll at once if there is somebody to adopt what is nobody's."""
        if self._adopt is not None:
            self._start()

    async def close(self) -> None:
        """Polls no more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def _start(self) -> None:
        self._wanted.set()
        if self._task is None:
            self._task = asyncio.create_task(self._poll())

    async def _poll(self) -> None:
        loop = asyncio.get_running_loop()
        hold = WAIT_SECONDS
        while True:
            if not self._errands and self._adopt is None:
                self._wanted.clear()
                await self._wanted.wait()
            next_poll = loop.time() + PACE_SECONDS
            try:
                await self._listen(hold)
                await self._ask_for_the_silent(loop.time())
                hold = WAIT_SECONDS
            except PrivetError as error:
                _log.warning("no news from the service: %s", error)
                # Then at once: it may be another process, which knows nothing of our errands.
                hold, next_poll = 0.0, loop.time() + RETRY_SECONDS
            await asyncio.sleep(next_poll - loop.time())

    async def _listen(self, hold: float) -> None:
        seen = self._seen or 0
        # Who takes on what it has not asked for must say that it is there.
        ahead = {} if self._adopt is None else {"ahead": 1}
        told = await self._calls.get("/v2/jobs", hold=hold, wait=hold, seen=seen, **ahead)
        try:
            sequence, documents = int(told["sequence"]), list(told["jobs"])
        except (KeyError, TypeError, ValueError) as error:
            raise PeerMisbehaved(f"the service's news make no sense: {error!r}") from error
        self._seen = sequence
        for document in documents:
            self._tell(document)
        if sequence < seen:
            # Another process answers: it may know nothing of our errands, and says so if asked.
            for errand in list(self._errands.values()):
                await self._ask_for(errand)

    def _tell(self, document: dict[str, Any]) -> None:
        try:
            errand = self._errands.get(document["id"])
            if errand is None and self._adopt is not None:
                errand = self._adopt(document)
                if errand is not None:
                    self._errands[errand.id] = errand
            if errand is None:
                return
            errand.hear(document)
        except (KeyError, TypeError, ValueError) as error:
            raise PeerMisbehaved(f"the service's news make no sense: {error!r}") from error
        if errand.is_over:
            self.drop(errand)

    async def _ask_for_the_silent(self, now: float) -> None:
        for errand in list(self._errands.values()):
            if now - errand.heard > SILENCE_SECONDS and errand.state != "prepared":
                await self._ask_for(errand)

    async def _ask_for(self, errand: Errand) -> None:
        try:
            document = await self._calls.get(f"/v2/jobs/{errand.id}")
        except Misuse as error:
            errand.end("failed", str(error))
        else:
            if isinstance(document, dict) and document.get("state") == "ended":
                # Perhaps from the records of an earlier process, whose count of changes is gone.
                errand.end(str(document.get("outcome")), str(document.get("reason")))
            else:
                self._tell(document)
        if errand.is_over:
            self.drop(errand)
