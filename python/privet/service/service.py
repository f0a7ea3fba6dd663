"""The service: repository, jobs, driver, records and metrics, put together.

It knows nothing of HTTP; the control plane's handlers call it, and so do tests.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import secrets
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privet import suites
from privet.errors import Misuse, NotAccepted, PrivetError
from privet.runtime import StoreEntry
from privet.runtime.revocation import Revoked
from privet.runtime.tasks import Tasks
from privet.scheduler import (
    BY_CLIENT,
    Action,
    Ended,
    Limits,
    MaterialEntry,
    Phase,
    Policy,
    Probe,
    Profiles,
    Refused,
    Scheduler,
    Snapshot,
    Start,
    Submission,
    Why,
)
from privet.service.asks import Ask, RequestBody
from privet.service.audit_log import AuditLog
from privet.service.driver import ClientEndpoint, Driver
from privet.service.estimates import HEADROOM, Estimates
from privet.service.event_recorder import EventRecorder
from privet.service.executor import Executor, ExecutorNode
from privet.service.jobs import Job, Jobs
from privet.service.limits import (
    ActiveClients,
    Buckets,
    Exhausted,
    LimitReached,
    ServiceLimits,
    limit_reached,
)
from privet.service.local_node import LocalNode
from privet.service.material import Reconciliation
from privet.service.metrics import Metrics
from privet.service.model_server import ModelServer, ModelServers
from privet.service.offers import Offers
from privet.service.records import Records
from privet.service.repository import Build, Models, Repository, Version
from privet.service.sessions import Sessions
from privet.service.timeline import WINDOW_SECONDS, Monitor, Timeline

RECORDS_FILE = "service.sqlite"
OBSOLETE = "ledger.sqlite*"
"""Files of version 0.2.0 that listed the material once more: the stores say all of it."""

ANSWERS_FOLDER = "answers"

PRUNE_SECONDS = 3600.0
SWEEP_SECONDS = 10.0
EXPEL_SECONDS = 1.0

FETCHES, FETCH_SECONDS = 4, 86_400.0
"""How often a client may fetch the encrypted weights of a version, and in how many seconds as often
again: once is enough, unless its link breaks or it loses them."""

FETCH_RETRY_SECONDS = 5.0
"""After how long to try again while others fetch theirs."""

RESERVED_BYTES = 32 << 20
"""Where less is free on the disk of the state, no job is admitted that leaves something there."""

_log = logging.getLogger(__name__)


def free_bytes(folder: Path) -> int:
    """Bytes that are free on a folder's disk."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


@dataclass(frozen=True)
class Settings:
    """How a service runs. `poll`: how often, in seconds, the `models` are looked at; `accepts`: in
    which modes clients may ask, and for how many answers; `revoked`: whose jobs and sessions are
    ended; `audit`: where it is written down who asked what."""

    models: Models
    state: Path
    endpoint: ClientEndpoint
    policy: Policy = field(default_factory=Policy)
    accepts: suites.Policy = field(default_factory=suites.Policy)
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    bounds: Limits = field(default_factory=Limits)
    poll: float = 5.0
    revoked: Revoked = field(default_factory=Revoked)
    audit: Path | None = None


class Service:
    """Everything behind the control plane's calls. All times are in seconds since 1970, except the
    driver's, whose clock never runs back."""

    def __init__(self, settings: Settings, executor: Executor, build: Build, version: str) -> None:
        self.settings = settings
        self.version = version
        self.limits = settings.limits
        self.buckets = Buckets()
        self.audit = None if settings.audit is None else AuditLog(settings.audit)
        self._write_policy(settings.accepts)
        self.guard = suites.Guard(settings.accepts, str(settings.state / ANSWERS_FOLDER))
        self.jobs = Jobs()
        self.loading = True
        self.draining = False
        self.closing = asyncio.Event()
        self.started = time.time()
        self.metrics = Metrics(self.snapshot)
        self._executor = executor
        self._changes = asyncio.Event()
        self._look = asyncio.Event()
        self._tasks = Tasks()
        self.records = Records(settings.state / RECORDS_FILE)
        self.timeline = Timeline(self.records.runs(time.time() - WINDOW_SECONDS))
        self.monitor = Monitor()
        self.profiles = Profiles(headroom=HEADROOM)
        self._estimates = Estimates(self.profiles, self.records.profiles())
        self.driver = Driver(
            Scheduler([], self.profiles, settings.policy, settings.bounds),
            executor,
            self._estimates,
            settings.endpoint,
            find=self._find,
            changed=self.jobs.changed,
            joined=self._joined,
        )
        self._local_node = LocalNode(executor, self.driver)
        self.model_servers = ModelServers(self._local_node, self._on_event)
        self._offers = Offers(executor, self.jobs, self.model_servers)
        self._reconciliation = Reconciliation(
            executor, self.driver, self._offers.of_program, self.metrics
        )
        dealer = settings.endpoint.dealer is not None
        self.repository = Repository(
            settings.models, build, self._offers.offer, self._retire, dealer=dealer
        )
        self.presence = ActiveClients(self.driver.client_present)
        self.listening = ActiveClients(self.driver.client_listens, self.driver.client_polled)
        self.epoch = time.time() - self.driver.clock()
        self._recorder = EventRecorder(
            self.jobs,
            self.driver.scheduler.material,
            self.records,
            self.metrics,
            self.timeline,
            self.monitor,
            self._estimates,
            self.epoch,
            self._ended,
            self.audit,
        )
        self.driver.set_observers(self._on_action, self._recorder.on_completed)
        self.sessions = Sessions(
            self.driver,
            self.jobs,
            self._recorder,
            self._estimates,
            self.limit_reached,
            self.admit,
            lambda: self._local_node.name,
            settings.endpoint.grace,
        )
        self.driver.set_sessions(self.sessions)

    def snapshot(self) -> Snapshot:
        """The scheduler's state now."""
        return self.driver.scheduler.snapshot(self.driver.clock())

    # Life ---------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Starts the executor, loads the repository, and takes stock of what lies on disk. Raises
        `Misuse` if the repository cannot be read or the executor cannot run here; what loading a
        model raises that must be there."""
        for path in self.settings.state.glob(OBSOLETE):
            path.unlink()
        count = self.records.interrupt(time.time())
        if count:
            _log.warning("jobs of an earlier process failed", extra={"jobs": count})
        await self._executor.start()
        await self.repository.refresh()
        self.repository.require()
        for node in self._executor.machines():
            await self.driver.join(node)
        self.loading = False

    async def run(self) -> None:
        """Drives jobs and follows the repository until `close`."""
        async with asyncio.TaskGroup() as group:
            follow = group.create_task(self._follow())
            prune = group.create_task(self._prune())
            sweep = group.create_task(self._sweep())
            ending = group.create_task(self._end_refused())
            await self.driver.run()
            ending.cancel()
            follow.cancel()
            prune.cancel()
            sweep.cancel()

    async def drain(self) -> None:
        """Takes nothing new, and waits until all that was admitted has ended."""
        self.draining = True
        self.driver.drain()
        await self.driver.drained()

    def leave(self) -> None:
        """Lets go of calls that wait: there will be no more updates."""
        self.draining = True
        self.closing.set()
        self.jobs.leave()

    async def close(self) -> None:
        """Ends everything, at once."""
        self.leave()
        await self.driver.close()
        await self.model_servers.close()
        await self._executor.close()
        self.records.close()
        if self.audit is not None:
            self.audit.close()

    async def reload(self, accepts: suites.Policy) -> None:
        """Goes on with another policy, new workers once their jobs have ended, and models as they
        are now; answers that were counted stay counted."""
        self.guard = suites.Guard(accepts, str(self.settings.state / ANSWERS_FOLDER))
        self._write_policy(accepts)
        self._look.set()
        await self._executor.reload(suites.uncounted(accepts).text())

    def _write_policy(self, accepts: suites.Policy) -> None:
        if self.audit is not None:
            self.audit.write("policy", policy=json.loads(accepts.text()))

    async def _follow(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._look.wait(), self.settings.poll)
            self._look.clear()
            try:
                if await self.repository.refresh():
                    self._changes.set()
            except (PrivetError, OSError) as error:
                _log.warning("the repository cannot be read", extra={"error": str(error)})

    async def _sweep(self) -> None:
        """Writes records that wait, and compares the view of material with the stores."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.records.catch_up()
            if self.audit is not None:
                self.audit.catch_up()
            await self._reconciliation.sweep()

    async def _end_refused(self) -> None:
        """Ends jobs and sessions of clients whose certificates were revoked meanwhile."""
        refuses = self.settings.revoked.refuses
        while True:
            await asyncio.sleep(EXPEL_SECONDS)
            for job in self.jobs.live():
                if why := refuses(job.client):
                    self.cancel(job, why)
            self.sessions.end_refused(refuses)

    async def _prune(self) -> None:
        while True:
            self.records.prune()
            await asyncio.sleep(PRUNE_SECONDS)

    async def changes(self) -> None:
        """Waits until the table of the repository has changed."""
        await self._changes.wait()
        self._changes.clear()

    # For calls ----------------------------------------------------------------------------------

    def is_served(self, key: str) -> bool:
        """Whether a version is offered, by how schedules call it."""
        return self._offers.find(key) is not None

    def why_not_ready(self) -> str | None:
        """Why the service takes no jobs now; None if it does."""
        if self.draining:
            return "the service is shutting down"
        if self.loading:
            return "the service starts: its models are being loaded"
        if not self.repository.models():
            return "no model is served"
        if not self.driver.nodes:
            return "no machine is there to run jobs"
        if self._executor.is_down():
            return "no worker starts: the service's log says why"
        return self.why_no_room()

    def why_no_room(self) -> str | None:
        """Why nothing that needs the disk is taken now; None if there is room."""
        late = self.records.waiting or (self.audit is not None and self.audit.waiting)
        if late or free_bytes(self.settings.state) < RESERVED_BYTES:
            return "the service's disk is full"
        return None

    def retry_seconds(self) -> float:
        """When somebody whom a full queue sent away had better come back."""
        return min(60.0, max(1.0, self.driver.scheduler.backlog_seconds()))

    def stock(self, client: str, version: Version) -> dict[str, int]:
        """A client's own material for a version, by the label of the suite."""
        return Counter(entry.stream.suite for entry in self._unused(client, version))

    def requested_count(self, client: str, version: Version) -> int:
        """How many of them the client asked for; the service made the others ahead."""
        return sum(not entry.ahead for entry in self._unused(client, version))

    def _unused(self, client: str | None, version: Version) -> list[MaterialEntry]:
        return self.driver.scheduler.material.unused(client, version.key)

    def limit_reached(self, client: str, version: Version) -> LimitReached | None:
        """Why a client may have no further job of a version now; None if it may."""
        return limit_reached(self.jobs, client, version, self.limits.queued)

    def submit(self, client: str, name: str | None, version: Version, body: Ask) -> Job:
        """Admits a notice or a request of the client with this fingerprint, and the common name in
        its certificate. Raises `Misuse` if the version does not serve what is asked; `NotAccepted`
        if the service's policy does not accept it, `Exhausted` if it gives no answer now; `Refused`
        by the scheduler."""
        notice = body.notice if isinstance(body, RequestBody) else None
        announced = self._notice(client, notice) if notice is not None else None
        request = isinstance(body, RequestBody)
        fetch = isinstance(body, RequestBody) and body.fetch
        unprepared = body.unprepared if isinstance(body, RequestBody) else False
        choice = (
            announced.choice
            if announced and not body.wish
            else version.ask(body.wish, unprepared=unprepared)
        )
        batch = version.program.batch
        cores = version.config.cores
        if fetch:
            choice, cores = choice.fetching(), 1
        if choice.load is not None:
            if announced is not None or not request:
                raise Misuse("nothing is prepared ahead of this: ask without a notice")
            job_key = (version.key, choice.scheduled, batch, choice.load, cores)
            self._estimates.expect_single(*job_key, by_link=fetch)
        elif choice.forecast is not None:
            self._estimates.expect(version.key, choice.label, batch, choice.forecast, cores)
        else:
            raise Refused(Why.UNKNOWN_NOTICE, f"there is no notice {notice}")
        answers = batch if fetch else -(-body.samples // batch) * batch
        self.admit(client, name, choice.mode, 0)
        if fetch:
            self._take_fetch(client, version)
        job = Job(
            secrets.token_hex(8),
            client,
            "fetch" if fetch else "request" if request else "notice",
            version,
            choice,
            body.samples,
            notice,
            time.time(),
            body.key,
        )
        max_timeout = version.config.limits.timeout
        deadline = body.deadline if isinstance(body, RequestBody) else None
        submission = Submission(
            job.id,
            client,
            version.key,
            choice.scheduled,
            answers,
            not request,
            announced.id if announced else None,
            min(body.timeout or max_timeout, max_timeout),
            None if deadline is None else self.driver.clock() + deadline,
            only=None if choice.load is None else Phase.ON,
            ready=isinstance(body, RequestBody) and body.ready,
        )
        if request and not fetch:
            # What cannot be had now is no answer that counts.
            self.driver.scheduler.check(submission)
            self.admit(client, name, choice.mode, answers)
        try:
            self.driver.submit(submission)
        except Refused:
            if fetch:
                # It comes to nothing, so it is none of those that the client may have.
                bucket = (client, version.key, "fetch")
                rate = FETCHES / FETCH_SECONDS
                self.buckets.charge(bucket, rate, FETCHES, self.driver.clock(), -1.0)
            raise
        self._recorder.submitted(job, announced)
        return job

    def admit(self, client: str, name: str | None, mode: suites.Mode, answers: int) -> None:
        """Holds a client to the policy: it may ask in a mode, and has so many answers counted.
        Raises `NotAccepted`; `Exhausted`."""
        refusal = self.guard.check(client, name, mode.text)
        if refusal is not None:
            if self.audit is not None:
                self.audit.refused(client, mode.text, refusal)
            raise NotAccepted(refusal)
        excess = self.guard.count(client, name, answers) if answers else None
        if excess is not None:
            text, seconds = excess
            raise NotAccepted(text) if seconds is None else Exhausted(text, seconds)

    def _take_fetch(self, client: str, version: Version) -> None:
        """Holds a client to what it may fetch: it takes a core and much of the link for as long as
        the client's link makes it last. Raises `Exhausted`."""
        under_way = [job for job in self.jobs.open() if job.kind == "fetch"]
        cores = sum(len(node.cores) for node in self.driver.nodes)
        is_own = any(job.client == client for job in under_way)
        if is_own or len(under_way) >= max(1, cores // 2):
            text = f"{'you' if is_own else 'others'} fetch weights now: try again later"
            raise Exhausted(text, FETCH_RETRY_SECONDS, "fetches")
        rate, now = FETCHES / FETCH_SECONDS, self.driver.clock()
        wait = self.buckets.take((client, version.key, "fetch"), rate, FETCHES, now)
        if wait:
            text = f"you have fetched the weights of {version.name} {FETCHES} times, keep them"
            raise Exhausted(f"{text}: again in {wait:.0f} seconds", wait, "fetches")

    def cancel(self, job: Job, reason: str = BY_CLIENT) -> None:
        """Cancels a job, unless it is too late."""
        if self.driver.cancel(job.id, reason) and job.state == "prepared" and job.kind == "notice":
            job.outcome = "cancelled"
            self._recorder.close(job, reason)

    def past(self, client: str, id: str) -> dict[str, Any] | None:
        """A client's job of an earlier process, or one that ended long ago, as on record."""
        return self.records.past(client, id)

    def _notice(self, client: str, id: str) -> Job | None:
        """The notice that a request names; None if it came to nothing with an earlier process."""
        announced = self.jobs.of_client(client, id)
        if announced is None and self.records.past(client, id) is None:
            raise Refused(Why.UNKNOWN_NOTICE, f"there is no notice {id}")
        return announced

    # For repository and driver ------------------------------------------------------------------

    def _joined(self, node: ExecutorNode, entries: list[StoreEntry]) -> None:
        if not self._local_node.is_apart(node):
            self._local_node.joined(node)
            self._reconciliation.take_in(node.name, entries)

    async def _retire(self, version: Version) -> None:
        """Lets requests for it run to their end; gives up what was prepared, and sessions."""
        self._offers.retire(version)
        for job in self.jobs.live():
            if job.version.key == version.key and job.kind in ("notice", "session"):
                self.cancel(job, "the model was changed")
        self.driver.give_up([entry.material for entry in self._unused(None, version)])
        await self._offers.withdraw(version)

    def _on_action(self, action: Action) -> None:
        self._recorder.on_action(action)
        if isinstance(action, Ended):
            self.sessions.on_ended(action)
        elif isinstance(action, Start):
            self.sessions.on_start(action)
        elif isinstance(action, Probe):
            self.jobs.end_polls(action.client)

    def _on_event(self, model_server: ModelServer, event: dict[str, Any] | None) -> None:
        self.sessions.on_event(model_server, event)

    def _ended(self, job: Job) -> None:
        if self._offers.is_retired(job.version):
            self._tasks.start(self._offers.withdraw(job.version))

    def _find(self, start: Start) -> Job | None:
        """The job that a start serves; what is made ahead becomes a job of the client's."""
        job, version = self.jobs.find(start.request), self._offers.find(start.model)
        if job is not None or version is None or start.phase is Phase.ON:
            return job
        choice = version.labelled(start.suite)
        if choice is None:
            return None
        job = Job(
            start.request, start.client, "ahead", version, choice, start.batch, None, time.time()
        )
        self.jobs.add(job)
        return job
