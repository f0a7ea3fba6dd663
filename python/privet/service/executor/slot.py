"""A place for a worker: its process, started again whenever it ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from privet.errors import PrivetError, error_named
from privet.service.executor.grant import Grant, JobOutcome
from privet.service.executor.job import WorkerJob
from privet.service.executor.process import WorkerProcess

AGAIN_SECONDS = 1.0
"""Between two attempts to start a process that does not come up."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ProgramOffer:
    """A program's folder, and whether its weights are made ready beforehand; `hosts` are the
    labels of suites that have a server of the program's own, and then no other suite runs it."""

    folder: str
    warm: bool
    hosts: tuple[str, ...] = ()


class Slot:
    """Keeps one worker that offers `programs` (by hash), and has it do one job at a time.

    `ended` is called with a job that ended. `changed` is called when the slot may have
    become able to do more.
    """

    def __init__(
        self,
        settings: dict[str, Any],
        host: str,
        programs: Mapping[str, ProgramOffer],
        ended: Callable[[WorkerJob, JobOutcome], None],
        changed: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._host = host
        self._programs = programs
        self._ended = ended
        self._changed = changed
        self._worker: WorkerProcess | None = None
        self._old: WorkerProcess | None = None
        self._busy = True
        self._answer: asyncio.Future[dict[str, Any]] | None = None
        self._task: asyncio.Task[None] | None = None
        self.job: WorkerJob | None = None
        self.is_down = False
        """Whether the last attempt to start a worker failed."""
        self.offered: set[str] = set()

    @property
    def pid(self) -> int | None:
        """The id of the worker's process, if there is one."""
        return None if self._worker is None else self._worker.pid

    def can(self, program: str | None = None) -> bool:
        """Whether the worker is idle, and offers this program if one is given."""
        return not self._busy and (program is None or program in self.offered)

    async def start(self) -> None:
        """Starts the worker. Raises `PrivetError` if it does not come up."""
        worker = self._worker = await WorkerProcess.start(self._settings)
        self._task = asyncio.create_task(self._keep(worker))

    async def close(self) -> None:
        """Ends the worker."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.kill()
        self._end("the service was stopped")

    async def offer(self, offer: ProgramOffer) -> str:
        """Has the idle worker offer a program; its hash. Raises those of `privet.Server.add_saved`;
        `PrivetError` if the worker dies of it."""
        self._busy = True
        try:
            return await self._offer(offer)
        finally:
            self._free()

    async def withdraw(self, program: str) -> None:
        """Has the worker offer a program no more."""
        self.offered.discard(program)
        if self._worker is not None:
            await self._worker.send({"do": "withdraw", "program": program})

    def renew(self, policy: str) -> None:
        """Starts the worker anew with another policy, once it is idle."""
        self._settings["policy"] = policy
        self._old = self._worker
        if not self._busy and self._worker is not None:
            self._busy = True
            self._worker.terminate()

    async def grant(self, grant: Grant) -> WorkerJob:
        """Has the idle worker admit a job; returns when its client may come."""
        assert self._worker is not None
        self._busy = True
        job = self.job = WorkerJob(grant, self._worker, self._host)
        await self._worker.send({"do": "grant", **vars(grant)})
        await job.granted()
        return job

    async def _keep(self, worker: WorkerProcess) -> None:
        while True:
            self._worker = worker
            worker.on_event(self._on_event)
            offering = asyncio.create_task(self._begin())
            try:
                reason = await worker.ended()
            finally:
                offering.cancel()
            self._end(reason)
            worker = await self._restart()

    def _end(self, reason: str) -> None:
        """The worker has ended."""
        self._busy, self._worker = True, None
        self.offered.clear()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(PrivetError(reason))
        if self.job is not None:
            _log.warning("a worker ended in job %s: %s", self.job.job, reason)
            self._finish(self.job, self.job.crash_outcome(reason))

    async def _begin(self) -> None:
        """Offers everything to a new worker."""
        for program, offer in list(self._programs.items()):
            try:
                await self._offer(offer)
            except PrivetError as error:
                _log.error("a worker cannot offer program %s: %s", program, error)
        self._free()

    async def _restart(self) -> WorkerProcess:
        while True:
            try:
                worker = await WorkerProcess.start(self._settings)
                self.is_down = False
                return worker
            except (PrivetError, OSError, TimeoutError) as error:
                _log.error("a worker does not start: %s", error)
                self.is_down = True
            await asyncio.sleep(AGAIN_SECONDS)

    async def _offer(self, offer: ProgramOffer) -> str:
        if self._worker is None:
            raise PrivetError("the worker has ended")
        self._answer = asyncio.get_running_loop().create_future()
        try:
            await self._worker.send({"do": "offer", **asdict(offer)})
            event = await self._answer
        finally:
            self._answer = None
        if event["event"] != "offered":
            raise error_named(event["error"], event["message"])
        self.offered.add(event["program"])
        return str(event["program"])

    def _on_event(self, event: dict[str, Any]) -> None:
        if "job" not in event:
            if self._answer is not None and not self._answer.done():
                self._answer.set_result(event)
        elif self.job is not None and event["job"] == self.job.job:
            job, outcome = self.job, self.job.on_event(event)
            if outcome is not None:
                self._finish(job, outcome)
                self._free()

    def _finish(self, job: WorkerJob, outcome: JobOutcome) -> None:
        self.job = None
        self._ended(job, outcome)

    def _free(self) -> None:
        if self._worker is not None and self._worker is self._old:
            self._worker.terminate()
            return
        self._busy = self._worker is None
        self._changed()
