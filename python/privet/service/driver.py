"""Between the scheduler, which decides, and the executor, which acts: one loop of events.

The scheduler is told of everything at the time it happened and says what to do, once; this does it.
All runs on one event loop, so nothing here needs a lock.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from privet import tracing
from privet.errors import PrivetError
from privet.runtime import StoreEntry
from privet.runtime.tasks import Tasks
from privet.scheduler import (
    BY_CLIENT,
    Action,
    Drained,
    JobStream,
    Key,
    Machine,
    MaterialGone,
    Phase,
    Scheduler,
    Start,
    Stop,
    Submission,
    TakeBack,
    Usage,
)
from privet.service.estimates import Estimates
from privet.service.executor import Executor, ExecutorNode, Failure, Grant, JobOutcome, RunningJob
from privet.service.executor.grant import Phase as GrantPhase
from privet.service.jobs import Job, State, WorkerLease

if TYPE_CHECKING:
    from privet.service.sessions import Sessions

LATE_SECONDS = 1.5
"""A client that has not asked the worker for so long, nor called, may be one that will not come."""

LEAST_GRACE = 2.0
"""Seconds that a client always has to come."""

RERUN = ("crashed", "over memory", "machine lost")
"""Failures that are not the client's: the job runs again, on fresh material."""

STATES: dict[GrantPhase, State] = {
    "prepare": "preparing",
    "infer": "inferring",
    "fetch": "fetching",
}
"""What clients read of a job while its worker waits for them or works."""

STAYS = ("machine lost", "machine drained")
"""Why material goes that stays in its store, for when the machine comes back."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CompletedJob:
    """A job that is over: from when to when, in seconds on the driver's clock."""

    start: Start
    outcome: JobOutcome
    began: float
    ended: float


@dataclass(frozen=True)
class ClientEndpoint:
    """What clients need to know besides a job's address: the name in the certificate there, how
    long they may take to come, and where the dealer is, if there is one."""

    server_name: str
    grace: float
    dealer: str | None


class Changed(Protocol):
    """Is called with a job that changed; `quietly`, if its client need not be told at once."""

    def __call__(self, job: Job, *, quietly: bool = False) -> None: ...


class Driver:
    """Runs what the scheduler decides.

    `find` gives the job that a start serves (making one for material that nobody asked for),
    `changed` is called with a job that is another now, `joined` with a machine, and what lies in
    its store, before it gets jobs. All must be quick.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        executor: Executor,
        estimates: Estimates,
        endpoint: ClientEndpoint,
        *,
        find: Callable[[Start], Job | None],
        changed: Changed,
        joined: Callable[[ExecutorNode, list[StoreEntry]], None],
    ) -> None:
        self.scheduler = scheduler
        self.clock = time.monotonic
        self._executor = executor
        self._estimates = estimates
        self._endpoint = endpoint
        self._find, self._changed, self._joined = find, changed, joined
        self._sessions: Sessions | None = None
        self._hosted: set[str] = set()
        self._parked: set[str] = set()
        self._taken_back: set[str] = set()
        self._on_action: Callable[[Action], None] = lambda action: None
        self._on_completed: Callable[[CompletedJob], None] = lambda job: None
        self._nodes: dict[str, ExecutorNode] = {}
        self._drained: set[str] = set()
        self._starts: dict[str, Start] = {}
        self._stops: dict[str, str] = {}
        self._removing: set[str] = set()
        self._tasks = Tasks()
        self._wake = asyncio.Event()
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = math.inf
        self._closed = False
        self._fault: BaseException | None = None

    def set_observers(
        self, on_action: Callable[[Action], None], on_completed: Callable[[CompletedJob], None]
    ) -> None:
        """From now on, `on_action` is called with each action as it is carried out, `on_completed`
        with each job that is over. Both must be quick."""
        self._on_action, self._on_completed = on_action, on_completed

    def set_sessions(self, sessions: Sessions) -> None:
        """From now on, `sessions` runs the jobs of sessions."""
        self._sessions = sessions

    @property
    def nodes(self) -> list[ExecutorNode]:
        """The machines that are there."""
        return list(self._nodes.values())

    # From clients -------------------------------------------------------------------------------

    def submit(self, submission: Submission) -> None:
        """Admits a submission. Raises `Refused`, as the scheduler says."""
        self.scheduler.submit(self.clock(), submission)
        self._wake.set()

    def cancel(self, id: str, reason: str = BY_CLIENT) -> bool:
        """Cancels a submission, and says why; False if it is too late."""
        is_cancelled = self.scheduler.cancel(self.clock(), id, reason)
        self._wake.set()
        return is_cancelled

    def client_present(self, client: str, is_present: bool) -> None:
        """A client came or left that would make material ahead."""
        self.scheduler.client_present(self.clock(), client, is_present)
        self._wake.set()

    def client_listens(self, client: str, is_listening: bool) -> None:
        """A client began or ceased to wait for updates of its jobs."""
        self.scheduler.client_listens(self.clock(), client, is_listening)
        self._wake.set()

    def client_polled(self, client: str) -> None:
        """A client calls for updates of its jobs."""
        if self.scheduler.client_polled(self.clock(), client):
            self._wake.set()

    def party_waits(self, party: str, is_waiting: bool) -> None:
        """A party of sessions began or ceased to wait for its next job."""
        self.scheduler.party_waits(self.clock(), party, is_waiting)
        self._wake.set()

    def park(self, start: Start, outcome: JobOutcome, began: float) -> None:
        """A job that began then has done its work, and from now on only keeps its memory."""
        now = self.clock()
        key = Key(start.model, start.suite, start.batch, start.phase)
        usage = Usage(outcome.seconds, outcome.memory, cores=len(start.cores))
        self.scheduler.park(now, start.job, self._estimates.measured(key, usage))
        self._parked.add(start.job)
        self._on_completed(CompletedJob(start, outcome, began, now))
        self._wake.set()

    def set_aside(self, machine: str, memory: int) -> bool:
        """Keeps memory of a machine from jobs, see the scheduler; whether it is free now. Raises
        `Misuse` if there is no such machine, or jobs would have nothing left."""
        free = self.scheduler.set_aside(self.clock(), machine, memory)
        self._wake.set()
        return free

    def drain_machine(self, name: str) -> None:
        """Takes a machine out once what it has begun is over; others go on. Nothing happens to one
        that is out already. Raises `Misuse` if it cannot be taken out, as the scheduler says."""
        if name in self._drained:
            return
        self.scheduler.drain_machine(self.clock(), name)
        _log.warning("machine is being drained", extra={"machine": name})
        self._wake.set()

    def keep_machine(self, name: str) -> None:
        """Has a machine take jobs again that is being drained, or was. Raises `Misuse` if nobody
        took it out."""
        if not self.scheduler.keep_machine(self.clock(), name):
            self._executor.recall(name)
        self._wake.set()

    def drain(self) -> None:
        """Admits nothing more."""
        self.scheduler.drain(self.clock())
        self._wake.set()

    # Material -----------------------------------------------------------------------------------

    def stock_found(self, entry: StoreEntry, stream: JobStream, machine: str) -> None:
        """Material lies in a machine's store that the scheduler does not know of."""
        age = entry.age_seconds
        self.scheduler.stock_found(self.clock(), entry.id, stream, machine, entry.bytes, age)
        self._wake.set()

    def known_material(self, machine: str) -> set[str]:
        """What is known of a machine's material: unused, in use, or being removed."""
        return self.scheduler.material.names(machine) | self._removing

    def give_up(self, materials: Iterable[str]) -> None:
        """Deletes that of this material which nobody has claimed."""
        for material in materials:
            self.scheduler.stock_gone(self.clock(), material)
        self._wake.set()

    def remove(self, material: str, machine: str) -> None:
        """Deletes material in the background that nobody will use. What cannot be deleted now is
        found again when its machine joins."""

        async def remove() -> None:
            try:
                await self._executor.discard(machine, [material])
            finally:
                self._removing.discard(material)

        self._removing.add(material)
        self._background(remove())

    # The loop -----------------------------------------------------------------------------------

    async def join(self, node: ExecutorNode, *, reserved: bool = False) -> None:
        """A machine is there; a `reserved` one is none of the executor's, and for sessions only."""
        entries = [] if reserved else await self._executor.material(node.name)
        self._nodes[node.name] = node
        self._drained.discard(node.name)
        machine = Machine(node.name, len(node.cores), node.memory, reserved)
        self.scheduler.machine_joined(self.clock(), machine)
        self._joined(node, entries)
        self._wake.set()

    async def run(self) -> None:
        """Drives until `close`. Raises what should never happen: the service cannot go on then."""
        watch = asyncio.create_task(self._watch())
        try:
            while not self._closed:
                self._wake.clear()
                for action in self.scheduler.decide(self.clock()):
                    self._do(action)
                await self._wait_for_work()
                if self._fault is not None:
                    raise self._fault
                if watch.done() and not self._closed:
                    await watch
        finally:
            watch.cancel()
            self._cancel_alarm()

    async def drained(self) -> None:
        """Waits until everything has ended; `drain` first."""
        while not (self.scheduler.drained and not self._tasks):
            await asyncio.sleep(0.05)

    async def close(self) -> None:
        """Stops driving; jobs that run are left to the executor's own `close`."""
        self._closed = True
        self._wake.set()
        await self._tasks.cancel()

    async def _wait_for_work(self) -> None:
        due = self.scheduler.next_event_at()
        if due is not None and due < self._alarm_at:
            # One that is set for an earlier time stays: when it rings, the next one is set.
            self._cancel_alarm()
            seconds = max(0.0, due - self.clock())
            self._alarm = asyncio.get_running_loop().call_later(seconds, self._on_alarm)
            self._alarm_at = due
        await self._wake.wait()

    def _on_alarm(self) -> None:
        self._alarm_at = math.inf
        self._wake.set()

    def _cancel_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = math.inf

    async def _watch(self) -> None:
        async for event in self._executor.events():
            if event.kind == "joined":
                try:
                    await self.join(event.node)
                except PrivetError as error:
                    # It went again meanwhile, or its store cannot be read: it gets no jobs.
                    extra = {"machine": event.node.name, "error": str(error)}
                    _log.warning("machine not taken in", extra=extra)
            elif self._nodes.pop(event.node.name, None) is not None:
                _log.warning("machine lost", extra={"machine": event.node.name})
                self.scheduler.machine_lost(self.clock(), event.node.name)
            self._wake.set()

    # Actions ------------------------------------------------------------------------------------

    def _do(self, action: Action) -> None:
        if isinstance(action, Start):
            self._starts[action.job] = action
            self._background(self._job(action))
        elif isinstance(action, Stop):
            self._stops[action.job] = action.reason
            hosted = self._sessions if action.job in self._hosted else None
            self._background((hosted or self._executor).stop(action.job))
        elif isinstance(action, TakeBack):
            self._taken_back.add(action.job)
            self._background(self._executor.take_back(action.job))
        elif isinstance(action, MaterialGone) and action.reason not in STAYS:
            self.remove(action.material, action.machine)
        elif isinstance(action, Drained):
            self._nodes.pop(action.machine, None)
            self._drained.add(action.machine)
            _log.warning("machine drained", extra={"machine": action.machine})
            self._background(self._executor.release(action.machine))
        self._on_action(action)

    async def _job(self, start: Start) -> None:
        began = self.clock()
        job = self._find(start)
        with tracing.span(
            f"job {_phase(start, job)}",
            parent=None if job is None else job.trace,
            job=start.job,
            model=start.model,
            suite=start.suite,
            machine=start.machine,
            cores=len(start.cores),
            waited=None if job is None else time.time() - job.created,
        ) as span:
            outcome = await self._outcome(start, job)
            span.error = outcome.failure
        self._over(CompletedJob(start, outcome, began, self.clock()))

    async def _outcome(self, start: Start, job: Job | None) -> JobOutcome:
        try:
            return await self._carry_out(start, job)
        except (PrivetError, OSError) as error:
            # No worker came up, or the material went meanwhile: it starts again from a fresh entry.
            return JobOutcome(start.job, "crashed", str(error), start.material)
        finally:
            if job is not None and job.leases.pop(start.job, None) is not None:
                self._changed(job, quietly=True)

    async def _carry_out(self, start: Start, job: Job | None) -> JobOutcome:
        node = self._nodes.get(start.machine)
        if node is None or job is None:
            why: Failure = "machine lost" if node is None else "failed"
            return JobOutcome(start.job, why, "there is nothing to run", start.material)
        if job.version.in_sessions and self._sessions is not None:
            if start.job in self._stops:
                return JobOutcome(start.job, "stopped")
            self._hosted.add(start.job)
            return await self._sessions.run(
                start, tuple(node.cores[index] for index in start.cores)
            )
        grant = self._grant(start, node, job)
        running = await self._executor.run(grant)
        is_published = start.job not in self._stops and running.port != 0
        if is_published:
            self._publish_lease(start, job, grant, running)
        elif start.job in self._stops:
            await self._executor.stop(start.job)
        alarm = asyncio.get_running_loop().call_later(LATE_SECONDS, self._watch_start, running)
        try:
            outcome = await running.outcome()
        finally:
            alarm.cancel()
        if outcome.waited >= grant.grace:
            # It could not be taken back: its client had connected.
            self._taken_back.discard(start.job)
        lapsed = outcome.failure in ("absent", "stopped") and start.job not in self._taken_back
        if is_published and lapsed and not outcome.seconds:
            self.scheduler.client_lapsed(self.clock(), start.client)
        if is_published and outcome.keeps_material and grant.material is not None:
            # Its client was told to come and did not: perhaps it has lost its half of the entry.
            outcome = replace(outcome, keeps_material=False)
            self.remove(grant.material, grant.machine)
        return outcome

    def _watch_start(self, running: RunningJob) -> None:
        """A job has not ended soon: it works, or its client has not come."""

        async def attend() -> None:
            try:
                async with asyncio.timeout(0):
                    has_started = await running.started()
            except TimeoutError:
                self.scheduler.client_late(self.clock(), running.job)
                self._wake.set()
                has_started = await running.started()
            if has_started:
                self.scheduler.client_came(self.clock(), running.job)

        self._background(attend())

    def _grant(self, start: Start, node: ExecutorNode, job: Job) -> Grant:
        return Grant(
            start.job,
            _phase(start, job),
            start.client,
            job.version.program.program_hash,
            job.choice.label,
            start.machine,
            tuple(node.cores[index] for index in start.cores),
            start.memory,
            start.limit_seconds,
            start.material,
            self._grace(start.client),
            tracing.current(),
        )

    def _grace(self, client: str) -> float:
        """Seconds that a client has to come: half as long after each time that it did not."""
        grace = self._endpoint.grace
        halved = grace / (1 << min(self.scheduler.lapses(client), 10))
        return min(grace, max(LEAST_GRACE, halved))

    def _publish_lease(self, start: Start, job: Job, grant: Grant, running: RunningJob) -> None:
        """Tells the client that it may come."""
        job.leases[start.job] = WorkerLease(
            start.job,
            grant.phase,
            running.host,
            running.port,
            self._endpoint.server_name,
            grant.program,
            grant.suite,
            start.material,
            start.batch,
            grant.grace,
            start.limit_seconds,
            self._endpoint.dealer,
        )
        job.state = STATES[grant.phase]
        self._changed(job)

    def _over(self, completed_job: CompletedJob) -> None:
        """Tells the scheduler how a job ended."""
        start, outcome, now = completed_job.start, completed_job.outcome, self.clock()
        self._starts.pop(start.job)
        stopped = self._stops.pop(start.job, None)
        self._hosted.discard(start.job)
        taken_back = start.job in self._taken_back
        self._taken_back.discard(start.job)
        if start.job in self._parked:
            self._parked.discard(start.job)
            self.scheduler.finished(now, start.job)
            self._wake.set()
            return
        key = Key(start.model, start.suite, start.batch, start.phase)
        if outcome.failure is None:
            usage = Usage(outcome.seconds, outcome.memory, outcome.bytes, cores=len(start.cores))
            usage = self._estimates.measured(key, usage)
            self.scheduler.finished(now, start.job, usage, outcome.material)
        else:
            if outcome.failure == "over memory":
                self._estimates.exceeded(key, start.memory)
            rerun = outcome.failure in RERUN or (taken_back and outcome.failure == "absent")
            rerun = rerun and stopped is None
            why = stopped or _reason(outcome)
            self.scheduler.failed(now, start.job, why, rerun, outcome.keeps_material)
        self._on_completed(completed_job)
        self._wake.set()

    def _background(self, work: Awaitable[None]) -> None:
        async def quietly() -> None:
            try:
                await work
            except (PrivetError, OSError) as error:
                _log.warning("not done", extra={"error": str(error)})
            except Exception as error:
                self._fault = error
                self._wake.set()

        self._tasks.start(quietly())


def _phase(start: Start, job: Job | None) -> GrantPhase:
    """What a job does for its client."""
    if start.phase is Phase.PRE:
        return "prepare"
    return "fetch" if job is not None and job.kind == "fetch" else "infer"


def _reason(outcome: JobOutcome) -> str:
    """Why a job failed, in words for its client: no more than it may know."""
    return {
        "absent": "the client did not come in time",
        "failed": f"the session failed: {outcome.message}",
        "stopped": "it was stopped",
        "timed out": "it took longer than its limit",
        "over memory": "it took more memory than it may have",
        "crashed": "the service could not run it to its end",
        "machine lost": "its machine was lost",
    }[str(outcome.failure)]
