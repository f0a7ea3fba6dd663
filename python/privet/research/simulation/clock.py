"""The scheduler under a simulated clock: the same code as in the service, jobs that only take time.

Every decision is audited (`privet.research.simulation.audit`): a run either keeps every rule or
raises. The paper's sequential server is simulated beside it."""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from privet.research.simulation.audit import Audit
from privet.research.simulation.record import InputRecord, JobRecord, SimulationRecord
from privet.research.simulation.workload import Arrival
from privet.scheduler import (
    Ended,
    Key,
    Limits,
    Machine,
    Outcome,
    Phase,
    Policy,
    Profiles,
    Scheduler,
    Start,
    Stop,
    Usage,
)


@dataclass(frozen=True)
class Setup:
    """What a run happens on. `truth` says what jobs really take; the scheduler starts with a copy
    (`scheduler_profiles`) and corrects it. Each job differs from the truth by at most the share
    `jitter`."""

    machines: Sequence[Machine]
    truth: Profiles
    limits: Limits = field(default_factory=Limits)
    jitter: float = 0.05
    seed: int = 0

    def scheduler_profiles(self) -> Profiles:
        """The scheduler's own table."""
        table = Profiles(scaling=self.truth.scaling)
        table.load(self.truth.rows())
        return table

    @property
    def cores(self) -> int:
        return sum(machine.cores for machine in self.machines)


class Clock:
    """One run; `run` gives its record."""

    def __init__(self, setup: Setup, policy: Policy) -> None:
        self._setup = setup
        self._scheduler = Scheduler(
            setup.machines, setup.scheduler_profiles(), policy, setup.limits
        )
        self._audit = Audit()
        for machine in setup.machines:
            self._audit.joined(machine)
        self._chance = random.Random(f"jitter {setup.seed}")
        self._ends: list[tuple[float, str]] = []
        self._started: dict[str, tuple[float, Start]] = {}
        self._arrived: dict[str, float] = {}
        self._record = SimulationRecord(policy.name, setup.cores)

    def run(self, arrivals: Iterable[Arrival]) -> SimulationRecord:
        """Submits all, then drains; until everything has ended."""
        waiting = list(arrivals)[::-1]
        for client in sorted({arrival.submission.client for arrival in waiting}):
            self._scheduler.client_present(0.0, client, True)
        drained = False
        while waiting or self._ends or not drained:
            now, ended = self._next(waiting)
            if ended is not None:
                self._finish(now, ended)
            elif waiting and waiting[-1].at <= now:
                submission = waiting.pop().submission
                self._arrived[submission.id] = now
                self._scheduler.submit(now, submission)
                self._audit.submitted(now, submission)
            if not waiting and not drained:
                self._scheduler.drain(now)
                drained = True
            self._decide(now)
        self._audit.closed()
        self._record.audited = self._audit.events
        return self._record

    def _next(self, waiting: list[Arrival]) -> tuple[float, str | None]:
        """When the next thing happens, and the job that ends then, if it is that."""
        times = [self._scheduler.next_event_at()]
        times.append(waiting[-1].at if waiting else None)
        soonest = min((at for at in times if at is not None), default=float("inf"))
        if self._ends and self._ends[0][0] <= soonest:
            return heapq.heappop(self._ends)
        return soonest, None

    def _decide(self, now: float) -> None:
        began = time.perf_counter()
        actions = self._scheduler.decide(now)
        self._record.decision_seconds.append(time.perf_counter() - began)
        self._audit.actions(now, actions)
        killed = False
        for action in actions:
            match action:
                case Start():
                    heapq.heappush(self._ends, (now + self._length(action), action.job))
                    self._started[action.job] = (now, action)
                case Stop(job=job):
                    killed = True
                    self._kill(now, job)
                case Ended(id=id, outcome=outcome) if not id.startswith("n"):
                    self._record.outcomes[id] = outcome
        if killed:
            self._decide(now)

    def _length(self, start: Start) -> float:
        """Seconds that a job takes, on the cores that it got."""
        truth = self._setup.truth
        demand = truth.expected(Key(start.model, start.suite, start.batch, start.phase))
        return demand.on(len(start.cores)).seconds * (
            1 + self._setup.jitter * self._chance.uniform(-1, 1)
        )

    def _finish(self, now: float, job: str) -> None:
        began, start = self._log(now, job, is_done=True)
        self._audit.over(job, job)
        truth = self._setup.truth.expected(Key(start.model, start.suite, start.batch, start.phase))
        usage = Usage(now - began, truth.memory, truth.material, len(start.cores))
        self._scheduler.finished(now, job, usage)
        if start.phase is Phase.ON:
            owner = (start.request, start.model, start.client, start.batch)
            arrived = self._arrived[start.request]
            self._record.inputs.append(InputRecord(*owner, arrived, began, now))

    def _kill(self, now: float, job: str) -> None:
        self._ends = [end for end in self._ends if end[1] != job]
        heapq.heapify(self._ends)
        self._log(now, job, is_done=False)
        self._audit.over(job)
        self._scheduler.failed(now, job, "stopped")

    def _log(self, now: float, job: str, is_done: bool) -> tuple[float, Start]:
        began, start = self._started.pop(job)
        owner = (start.request, start.model, start.client, start.phase)
        place = (start.machine, start.cores, start.memory)
        self._record.jobs.append(JobRecord(job, *owner, *place, began, now, is_done))
        return began, start


def sequential(
    machine: Machine, truth: Profiles, arrivals: Sequence[Arrival], jitter: float, seed: int
) -> SimulationRecord:
    """Runs the requests of `arrivals` (notices mean nothing here) one by one.

    `truth` says what jobs take, `jitter` by which share of it at most each differs.
    """
    chance = random.Random(f"jitter {seed}")
    record = SimulationRecord("sequential", machine.cores)
    cores = tuple(range(machine.cores))
    now = 0.0
    for arrival in arrivals:
        submission = arrival.submission
        if submission.notice:
            continue
        now = max(now, arrival.at)
        for number, batch in enumerate(
            truth.split(submission.model, submission.suite, submission.batch)
        ):
            for phase in Phase:
                demand = truth.expected(Key(submission.model, submission.suite, batch, phase))
                duration = demand.on(machine.cores).seconds
                end = now + duration * (1 + jitter * chance.uniform(-1, 1))
                job = f"{submission.id}/{phase}#{number}"
                place = (machine.name, cores, demand.memory)
                record.jobs.append(
                    JobRecord(
                        job,
                        submission.id,
                        submission.model,
                        submission.client,
                        phase,
                        *place,
                        now,
                        end,
                    )
                )
                if phase is Phase.ON:
                    owner = (submission.id, submission.model, submission.client, batch)
                    record.inputs.append(InputRecord(*owner, arrival.at, now, end))
                now = end
        record.outcomes[submission.id] = Outcome.DONE
    return record
