"""The scheduler's state, and the steps in it that keep it whole.

Whoever moves a pair goes through a method here, so that queues, stock, machines and counters agree.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, replace

from privet.scheduler.actions import Action, Ended, Start, Stop
from privet.scheduler.clients import Clients
from privet.scheduler.limits import Limits
from privet.scheduler.machine import FreeResources, Machine
from privet.scheduler.material import Material
from privet.scheduler.pairs import Pair, PairStage, SubmissionState
from privet.scheduler.policies.policy import Candidate, Capacity, JobStream, Policy
from privet.scheduler.profiles import Demand, Profiles
from privet.scheduler.queues import Queues
from privet.scheduler.snapshot import RunningStatus
from privet.scheduler.submission import Outcome, Phase, Submission
from privet.scheduler.timers import Alarm, Timers

#: How many notices that are over are remembered, to tell their clients what became of them.
REMEMBERED = 10_000


@dataclass(eq=False, slots=True)
class RunState:
    """A job that runs, and its pair; `parked`, it only keeps memory."""

    status: RunningStatus
    pair: Pair
    parked: bool = False


@dataclass(slots=True)
class Late:
    """A job whose client has not come and not called since it started, known `since` a while later.
    From `due` on it is taken back if others wait; `asks`: they were not asked yet whether they are
    there."""

    since: float
    due: float
    asks: bool = True


class State:
    """All that the scheduler knows. Times in seconds on the caller's clock."""

    def __init__(self, profiles: Profiles, policy: Policy, limits: Limits) -> None:
        self.profiles = profiles
        self.policy = policy
        self.limits = limits
        self.resources: dict[str, FreeResources] = {}
        self.capacity = Capacity(0, 0)
        self.queues = Queues(policy.by_client or limits.absent_seconds is not None)
        self.timers = Timers()
        self.running: dict[str, RunState] = {}
        self.parked = 0
        self.running_of: Counter[str] = Counter()
        self.running_for: Counter[str] = Counter()
        self.clients = Clients(limits.absent_seconds)
        self.late: dict[str, Late] = {}
        self.parties: set[str] = set()
        self.entries: dict[str, SubmissionState] = {}
        self.past: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self.making: dict[JobStream, list[Pair]] = {}
        self.pairs_of: Counter[str] = Counter()
        self.counts: Counter[tuple[str, str]] = Counter()
        self.outbox: list[Action] = []
        self.material = Material(profiles, limits, self.timers, self.counts, self.outbox)
        self.draining = False
        self._aheads = 0

    # Entries ------------------------------------------------------------------------------------

    def open(self, entry: SubmissionState) -> None:
        """Admits an entry whose pairs are set."""
        self.entries[entry.id] = entry
        self.pairs_of[entry.submission.client] += entry.open
        timeout = entry.submission.timeout
        if timeout is not None:
            self.timers.set(Alarm.TIMEOUT, entry.id, entry.arrived + timeout)
        self.watch(entry.arrived, entry.submission.client)

    def ahead(self, now: float, stream: JobStream) -> Pair:
        """A pair that no submission asked for."""
        self._aheads += 1
        submission = Submission(
            f"ahead-{self._aheads}", stream.client, stream.model, stream.suite, stream.batch, True
        )
        entry = SubmissionState(submission, now, ahead=True, open=1)
        pair = Pair(stream, entry, None, since=now)
        entry.pairs.append(pair)
        return pair

    def end(self, now: float, entry: SubmissionState, outcome: Outcome, reason: str = "") -> None:
        """Ends a submission, once; what is left of its pairs is given up."""
        if entry.ended:
            return
        entry.ended = True
        self.timers.drop(Alarm.TIMEOUT, entry.id)
        if not entry.ahead:
            self.close_pairs(entry, entry.open)
            self.counts["ended", outcome] += 1
            self.outbox.append(Ended(entry.id, outcome, reason))
        if outcome is not Outcome.DONE:
            for pair in entry.pairs:
                self._give_up(now, pair, entry, outcome, reason)
        if not (entry.submission.notice and outcome is Outcome.DONE and not entry.claimed):
            self.forget(entry, "used" if entry.claimed else str(outcome))

    def close_pairs(self, entry: SubmissionState, count: int) -> None:
        """That many pairs of an entry are over."""
        client = entry.submission.client
        entry.open -= count
        self.pairs_of[client] -= count
        if not self.pairs_of[client]:
            del self.pairs_of[client]

    def forget(self, entry: SubmissionState, fate: str) -> None:
        """Drops an entry; of a notice remains what became of it."""
        if self.entries.pop(entry.id, None) and entry.submission.notice:
            self.past[entry.id] = (entry.submission.client, fate)
            if len(self.past) > REMEMBERED:
                self.past.popitem(last=False)

    def _give_up(
        self, now: float, pair: Pair, entry: SubmissionState, outcome: Outcome, reason: str
    ) -> None:
        if pair.stage is PairStage.OVER or (pair.request not in (None, entry)):
            return
        if entry is not pair.maker and pair.maker.ahead and pair.stage is PairStage.MAKING:
            pair.request = None
            self.making.setdefault(pair.stream, []).append(pair)
            return
        stage, pair.stage = pair.stage, PairStage.OVER
        self.queues.remove(pair)
        if stage in (PairStage.MAKING, PairStage.INFERRING):
            self.stop(pair, reason or str(outcome))
        elif stage in (PairStage.TRANSIT, PairStage.READY) and not pair.alone:
            self.material.release(now, pair)
        if pair.maker is not entry:
            self.end(now, pair.maker, outcome, reason)

    # Queues -------------------------------------------------------------------------------------

    def enqueue(self, now: float, pair: Pair, stage: PairStage) -> None:
        """Puts a pair at the end of the queue of its next job: `PRE` or `READY`."""
        pair.stage, pair.since, pair.reserved = stage, now, None
        if stage is PairStage.PRE and not pair.alone:
            pair.machine = pair.material = None
        elif pair.alone and not pair.in_session:
            pair.machine = None
        phase = Phase.PRE if stage is PairStage.PRE else Phase.ON
        pair.key = self.policy.key(self.candidate(pair, phase))
        self.queues.push(pair, phase)

    def candidate(self, pair: Pair, phase: Phase) -> Candidate:
        """The pair's next job, as a policy sees it."""
        stream, owner = pair.stream, pair.owner
        demand = self.profiles.expected(stream.job(phase))
        remaining_seconds = demand.seconds
        if phase is Phase.PRE:
            remaining_seconds += self.profiles.expected(stream.job(Phase.ON)).seconds
        return Candidate(
            stream.client,
            stream.model,
            stream.suite,
            stream.batch,
            phase,
            owner.arrived,
            pair.since,
            demand.cores,
            demand.seconds,
            remaining_seconds,
            pair.request is not None,
            owner.submission.deadline,
        )

    # Jobs ---------------------------------------------------------------------------------------

    def start(self, now: float, pair: Pair, phase: Phase, machine: str, demand: Demand) -> None:
        """Starts the pair's next job on `machine`, which has room for it."""
        entry = pair.maker if phase is Phase.PRE else pair.owner
        stream = pair.stream
        job = entry.next_job(phase)
        cores = self.resources[machine].take(demand.cores, demand.memory)
        owner = pair.owner
        limit = self.limits.of_job(now, demand.seconds, owner.arrived, owner.submission.timeout)
        self.queues.remove(pair)
        self.parties.difference_update(owner.submission.parties)
        pair.stage = PairStage.MAKING if phase is Phase.PRE else PairStage.INFERRING
        pair.job, pair.machine, pair.since = job, machine, now
        place = (
            *(job, entry.id, phase, stream.client, stream.model, stream.suite, stream.batch),
            *(machine, cores, demand.memory),
        )
        expected_end = now + demand.seconds + owner.submission.lease
        status = RunningStatus(*place, now, expected_end, now + limit)
        self.running[job] = RunState(status, pair)
        self.running_of[stream.model] += 1
        self.running_for[stream.client] += 1
        self.policy.began(now, status)
        self.watch(now, stream.client)
        self.timers.set(Alarm.LIMIT, job, now + limit)
        self.counts["jobs", f"{phase} started"] += 1
        if phase is Phase.ON and not pair.alone:
            self.material.use(pair)
            self.counts["material", "used"] += 1
        elif pair.request is not None and not pair.alone:
            self._make_room(machine)
        self.outbox.append(Start(*place, limit, pair.material, entry.ahead))

    # Clients ------------------------------------------------------------------------------------

    def listens(self, pair: Pair) -> bool:
        """Whether a pair's client would come now, and its parties wait. The client of a session is
        there while it waits; its session is cancelled otherwise."""
        parties = pair.owner.submission.parties
        if parties and not self.parties.issuperset(parties):
            return False
        return pair.in_session or self.expects(pair.stream.client)

    def expects(self, client: str) -> bool:
        """Whether a client would come to one job more: it listens, and if it has lapsed, no job of
        it runs."""
        if not self.clients.listens(client):
            return False
        return not self.clients.lapses(client) or not self.running_for[client]

    def watch(self, now: float, client: str) -> None:
        """Sets or drops the alarm for a client that may have left with jobs waiting. A client one
        of whose jobs runs is there."""
        limit = self.limits.absent_seconds
        if limit is None:
            return
        if self.clients.listens(client) or self.running_for[client] or not self.pairs_of[client]:
            self.timers.drop(Alarm.ABSENT, client)
        elif (Alarm.ABSENT, client) not in self.timers:
            self.timers.set(Alarm.ABSENT, client, now + limit)

    def may_run(self, model: str) -> bool:
        """Whether another job of `model` is within the bounds."""
        limit = self.limits.jobs_per_model
        return limit is None or self.running_of[model] < limit

    def stop(self, pair: Pair, reason: str) -> None:
        """Tells the pair's job to stop; its cores stay taken until it is over."""
        run = self.running[pair.job or ""]
        if not run.status.stopping:
            run.status = replace(run.status, stopping=True)
            self.timers.drop(Alarm.LIMIT, run.status.job)
            self.outbox.append(Stop(run.status.job, reason))

    def park(self, now: float, job: str) -> RunState | None:
        """Frees the cores of a T_pre alone, which keeps its memory for its lease; None if no such
        job runs."""
        run = self.running.get(job)
        if run is None or run.parked:
            return None
        end = now + run.pair.owner.submission.lease
        free = self.resources.get(run.status.machine)
        if free is not None:
            free.release(run.status.cores, 0)
        self.policy.ended(now, run.status)
        run.parked = True
        self.parked += 1
        run.status = replace(run.status, cores=(), expected_end=end, limit_end=end)
        self.running_of[run.status.model] -= 1
        if not run.status.stopping:
            self.timers.set(Alarm.LIMIT, job, end)
        return run

    def leave(self, now: float, job: str, keeps_material: bool = False) -> RunState | None:
        """Frees what a job took; None if no such job runs. `keeps_material`: nobody touched its
        material."""
        run = self.running.pop(job, None)
        if run is not None:
            self.timers.drop(Alarm.LIMIT, job)
            self.late.pop(job, None)
            if run.parked:
                self.parked -= 1
            else:
                self.running_of[run.status.model] -= 1
                self.policy.ended(now, run.status)
            client = run.status.client
            self.running_for[client] -= 1
            if not self.running_for[client]:
                del self.running_for[client]
                self.clients.note_presence(now, client)
            self.watch(now, client)
            if run.status.phase is Phase.ON and not run.pair.alone:
                if keeps_material:
                    self.material.return_unused(now, run.pair)
                else:
                    self.material.finish_use(run.pair)
            free = self.resources.get(run.status.machine)
            if free is not None:
                free.release(run.status.cores, run.status.memory)
        return run

    # Material -----------------------------------------------------------------------------------

    def give_up(self, material: str, reason: str) -> None:
        """Unclaimed material is gone; a notice is forgotten with the last that was made for it."""
        pair = self.material.announced.get(material)
        self.material.discard(material, reason)
        if pair is not None:
            pair.stage = PairStage.OVER
            notice = pair.maker
            notice.pairs.remove(pair)
            if not notice.pairs and notice.ended:
                self.forget(notice, reason)

    def _make_room(self, machine: str) -> None:
        """Gives up the oldest unclaimed material of a machine, until what is being made there
        fits."""
        if self.limits.material_bytes is None:
            return
        making = [run for run in self.running.values() if run.pair.stage is PairStage.MAKING]
        streams = [run.pair.stream for run in making if run.status.machine == machine]
        extra_bytes = sum(
            self.profiles.expected(stream.job(Phase.PRE)).material for stream in streams
        )
        excess = self.material.bytes[machine] + extra_bytes - self.limits.material_bytes
        for entry in self.material.unclaimed(machine) if excess > 0 else ():
            if excess > 0:
                self.give_up(entry.material, "evicted")
                excess -= entry.bytes

    # Machines -----------------------------------------------------------------------------------

    def remove_machine(self, name: str) -> bool:
        """Takes a machine away; whether it was there."""
        was_present = self.resources.pop(name, None) is not None
        self.count_capacity()
        return was_present

    def count_capacity(self) -> None:
        """Adds up what jobs may have that could run anywhere, and on reserved machines."""
        machines = [free.machine for free in self.resources.values() if not free.draining]
        cores, memory = (
            sum(machine.cores for machine in machines),
            sum(machine.memory for machine in machines),
        )
        self.capacity = Capacity(cores, memory)

    @property
    def drained(self) -> bool:
        """Whether nothing is admitted any more and all has ended."""
        live = any(not entry.ended for entry in self.entries.values())
        return self.draining and not live and not self.running

    def add_machine(self, machine: Machine) -> None:
        """Lends a machine to the scheduler."""
        self.resources[machine.name] = FreeResources(machine)
        self.count_capacity()
