"""Updates of all jobs of a client, by one long poll.

A request's own call brings the first of them. It polls for jobs that wait for the service; while
all are with their workers, it looks seldom whether the service has ended one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from privet.errors import Misuse, PeerMisbehaved, PrivetError, printable
from privet.gateway.calls import Calls, NotThere
from privet.gateway.jobs import ClientJob

WAIT_SECONDS = 25.0
"""How long the service is asked to hold a poll."""

PACE_SECONDS = 0.02
"""The least time from one poll to the next, so that one answer carries several updates."""

SILENCE_SECONDS = 60.0
"""A job without an update for so long is asked for by its id."""

AT_WORK_SECONDS = 1.0
"""Between polls while no job waits for the service."""

RETRY_SECONDS = 5.0
"""Between polls that failed for all the patience of the calls."""

MOST_STRANGERS = 256
"""Jobs of which the latest update is kept until somebody follows them."""

_log = logging.getLogger(__name__)

Followed = TypeVar("Followed", bound=ClientJob)


class JobUpdates:
    """Passes the service's updates on to jobs, while there are any.

    With `adopt`, updates of unknown jobs go there, and it polls all the time; it returns
    a job to follow, or None.
    """

    def __init__(
        self, calls: Calls, adopt: Callable[[dict[str, Any]], ClientJob | None] | None = None
    ) -> None:
        self._calls = calls
        self._adopt = adopt
        self._jobs: dict[str, ClientJob] = {}
        # Those that may wait for the service; of many jobs, most are at work.
        self._waiting: set[ClientJob] = set()
        self._strangers: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._sequence: int | None = None
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def follow(self, job: Followed, sequence: int) -> Followed:
        """Passes on to `job` all its changes from `sequence` on; what came of it before the answer
        to its own call, too."""
        if self._sequence is None:
            self._sequence = max(0, sequence - 1)
        self._jobs[job.id] = job
        self._waiting.add(job)
        job.on_waiting(lambda: self._may_wait(job))
        if (document := self._strangers.pop(job.id, None)) is not None:
            self._notify(document)
        self._start()
        return job

    @property
    def sequence(self) -> int | None:
        """The service's number of the last change that was reported; None before the first."""
        return self._sequence

    def drop(self, job: ClientJob) -> None:
        """Passes nothing on to `job` any more."""
        self._jobs.pop(job.id, None)
        self._waiting.discard(job)

    async def all(self) -> list[dict[str, Any]]:
        """What the service says of all jobs of this certificate that it remembers."""
        reply = await self._calls.get("/v2/jobs")
        try:
            return [dict(document) for document in reply["jobs"]]
        except (KeyError, TypeError, ValueError) as error:
            raise PeerMisbehaved(f"the service's updates make no sense: {error!r}") from error

    def begin(self) -> None:
        """Begins to poll at once if there is somebody to adopt unknown jobs."""
        if self._adopt is not None:
            self._start()

    async def close(self) -> None:
        """Polls no more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def _start(self) -> None:
        self._wake.set()
        if self._task is None:
            self._task = asyncio.create_task(self._poll())

    async def _poll(self) -> None:
        loop = asyncio.get_running_loop()
        hold = WAIT_SECONDS
        while True:
            await self._until_woken()
            next_poll = loop.time() + PACE_SECONDS
            try:
                await self._listen(hold)
                await self._ask_for_the_silent(loop.time())
                hold = WAIT_SECONDS
            except PrivetError as error:
                _log.warning("no updates from the service: %s", error)
                # Then at once: it may be another process, which knows nothing of our jobs.
                hold, next_poll = 0.0, loop.time() + RETRY_SECONDS
            await asyncio.sleep(next_poll - loop.time())

    def _may_wait(self, job: ClientJob) -> None:
        """A job has come to an end of its work, unless nobody follows it any more."""
        if self._jobs.get(job.id) is job:
            self._waiting.add(job)
        self._wake.set()

    def _does_wait(self) -> bool:
        """Whether a job waits for the service."""
        while self._waiting:
            job = next(iter(self._waiting))
            if not job.is_at_work:
                return True
            self._waiting.discard(job)
        return False

    async def _until_woken(self) -> None:
        """Waits while no job waits for the service, for a while if some are at work."""
        while self._adopt is None and not self._does_wait():
            self._wake.clear()
            try:
                async with asyncio.timeout(AT_WORK_SECONDS if self._jobs else None):
                    await self._wake.wait()
            except TimeoutError:
                return

    async def _listen(self, hold: float) -> None:
        sequence = self._sequence or 0
        # Who takes on what it has not asked for must say that it is there.
        ahead = {} if self._adopt is None else {"ahead": 1}
        reply = await self._calls.get("/v2/jobs", hold=hold, wait=hold, seen=sequence, **ahead)
        await self.take(reply, sequence)

    async def take(self, reply: Any, after: int | None) -> None:
        """Passes on what the service said of changes after number `after`; of those after some
        change that it chose if that is None, so that earlier ones are still to come. Raises
        `PeerMisbehaved` if it makes no sense; as `Calls.get` if another process answers, and is
        asked for each job."""
        try:
            sequence, documents = int(reply["sequence"]), list(reply["jobs"])
        except (KeyError, TypeError, ValueError) as error:
            raise PeerMisbehaved(f"the service's updates make no sense: {error!r}") from error
        # Answers may overtake each other; a lower number than was asked for is of another process.
        is_other = after is not None and sequence < after
        if is_other:
            self._sequence = sequence
        elif after is not None:
            self._sequence = max(sequence, self._sequence or 0)
        for document in documents:
            self._notify(document)
        if is_other:
            # Another process answers: it may know nothing of our jobs, and says so if asked.
            for job in list(self._jobs.values()):
                await self._ask_for(job)

    def _notify(self, document: dict[str, Any]) -> None:
        try:
            job = self._jobs.get(document["id"])
            if job is None and self._adopt is not None:
                job = self._adopt(document)
                if job is not None:
                    self._jobs[job.id] = job
            if job is None:
                self._remember(document)
                return
            job.update(document)
            self._waiting.add(job)
        except (KeyError, TypeError, ValueError) as error:
            raise PeerMisbehaved(f"the service's updates make no sense: {error!r}") from error
        if job.is_over:
            self.drop(job)

    def _remember(self, document: dict[str, Any]) -> None:
        """Keeps what is reported of a job whose own call may not be answered yet."""
        self._strangers.pop(document["id"], None)
        self._strangers[document["id"]] = document
        if len(self._strangers) > MOST_STRANGERS:
            self._strangers.popitem(last=False)

    async def _ask_for_the_silent(self, now: float) -> None:
        for job in list(self._jobs.values()):
            if now - job.updated_at > SILENCE_SECONDS and job.state != "prepared":
                await self._ask_for(job)

    async def _ask_for(self, job: ClientJob) -> None:
        try:
            document = await self._calls.get(f"/v2/jobs/{job.id}")
        except Misuse as error:
            job.end("failed", str(error), is_lost=isinstance(error, NotThere))
        else:
            if isinstance(document, dict) and document.get("state") == "ended":
                # Perhaps from the records of an earlier process, whose count of changes is gone.
                outcome = str(document.get("outcome"))
                is_lost = document.get("sequence") == 0 and outcome == "failed"
                job.end(outcome, printable(str(document.get("reason"))), is_lost=is_lost)
            else:
                self._notify(document)
        if job.is_over:
            self.drop(job)
