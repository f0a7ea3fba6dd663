"""A job that runs on this machine: what its worker tells of it, its limits, its outcome."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from privet.runtime import PhaseCost
from privet.service.executor.grant import Failure, Grant, JobOutcome
from privet.service.executor.process import WorkerProcess

OVERDUE_SECONDS = 5.0
"""How long after the grace a worker may take to give up; then it hangs."""

STOPPING_SECONDS = 1.0
"""How long a job that is stopped may take to break off; then its process is killed."""


class WorkerJob:
    """Has its worker killed when the job is over its time; `host` is where clients reach it.

    It `is_stillborn` if the worker died before it took the grant, unless somebody stopped it: no
    client was told of it, so that another worker may have it.
    """

    def __init__(self, grant: Grant, worker: WorkerProcess, host: str) -> None:
        self.grant = grant
        self.host = host
        self.port = worker.port
        self._worker = worker
        self._loop = asyncio.get_running_loop()
        self._granted, self._requested, self._over = (
            asyncio.Event(),
            asyncio.Event(),
            asyncio.Event(),
        )
        self._outcome: JobOutcome | None = None
        self._verdict: tuple[Failure, str] | None = None
        self._waited = 0.0
        self._since: float | None = None
        self.is_stillborn = False
        self._timer = self._loop.call_later(
            grant.grace + OVERDUE_SECONDS, self._kill, "crashed", "its process hung"
        )

    @property
    def job(self) -> str:
        """The grant's job."""
        return self.grant.job

    @property
    def pid(self) -> int:
        """The id of the process that runs it."""
        return self._worker.pid

    async def granted(self) -> None:
        """Waits until the client may come, or the job has ended."""
        await self._granted.wait()

    async def started(self) -> bool:
        """Waits for the client's request; whether it came before the job ended."""
        await self._requested.wait()
        return self._since is not None

    async def outcome(self) -> JobOutcome:
        """Waits for the end."""
        await self._over.wait()
        assert self._outcome is not None
        return self._outcome

    async def stop(self) -> None:
        """Breaks the job off, with its process if it takes long; returns when it has ended."""
        if self._over.is_set():
            return
        self._verdict = self._verdict or ("stopped", "it was stopped")
        self._timer.cancel()
        self._timer = self._loop.call_later(STOPPING_SECONDS, self._worker.terminate)
        await self._worker.send({"do": "revoke", "job": self.job})
        await self.outcome()

    async def take_back(self) -> None:
        """Ends the job unless its client has connected."""
        await self._worker.send({"do": "take back", "job": self.job})

    def on_event(self, event: dict[str, Any]) -> JobOutcome | None:
        """Takes in what the worker tells of the job; how it ended, if it has."""
        match event["event"]:
            case "granted":
                self._granted.set()
            case "started":
                self._since = self._loop.time() - event["seconds"]
                self._requested.set()
                self._waited = event["waited"]
                if self._verdict is None:
                    self._timer.cancel()
                    limit = self.grant.seconds
                    message = f"it took more than {limit:g} s"
                    self._timer = self._loop.call_at(
                        self._since + limit, self._kill, "timed out", message
                    )
            case "finished":
                return self._read(event, PhaseCost(**event["cost"]))
            case "failed":
                outcome = self._read(event, None)
                failure, message = self._verdict or (event["error"], event["message"])
                return replace(outcome, failure=failure, message=message)
        return None

    def crash_outcome(self, reason: str) -> JobOutcome:
        """How a job ended whose process did."""
        if self._verdict is None and not self._granted.is_set():
            self._timer.cancel()
            self.is_stillborn = True
            self._granted.set()
        failure, message = self._verdict or ("crashed", reason)
        seconds = 0.0 if self._since is None else self._loop.time() - self._since
        return JobOutcome(
            self.job,
            failure,
            message,
            self.grant.material,
            seconds=seconds,
            waited=self._waited,
        )

    def finish(self, outcome: JobOutcome) -> None:
        """Tells all who wait."""
        self._timer.cancel()
        self._outcome = self._outcome or outcome
        for event in (self._over, self._requested, self._granted):
            event.set()

    def _read(self, event: dict[str, Any], cost: PhaseCost | None) -> JobOutcome:
        if seconds := event.get("seconds"):
            # Of a brief job its worker tells the end alone.
            self._since = self._loop.time() - seconds
        return JobOutcome(
            self.job,
            material=event.get("material") or self.grant.material,
            keeps_material=bool(event.get("kept")) and self.grant.material is not None,
            cost=cost,
            peak_rss=event.get("peak_rss", 0),
            base_rss=event.get("base_rss", 0),
            seconds=event.get("seconds", 0.0),
            waited=event.get("waited", 0.0),
        )

    def _kill(self, failure: Failure, message: str) -> None:
        self._verdict = self._verdict or (failure, message)
        self._worker.terminate()
