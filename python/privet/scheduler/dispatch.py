"""Which jobs start now (the paper's Procedure 2).

Jobs start in the order of the policy as long as they fit; the first of each phase that does not fit
gets a reservation. Whoever has waited longer than its patience goes first.
"""

from __future__ import annotations

import heapq
from collections import Counter

from privet.scheduler.pairs import Pair
from privet.scheduler.placement import Placement
from privet.scheduler.policies.policy import JobStream, View
from privet.scheduler.profiles import Demand, Key
from privet.scheduler.queues import Lane
from privet.scheduler.state import State
from privet.scheduler.submission import PHASES, Outcome, Phase

Head = tuple[bool, float, bool, float, int, Lane]
"""The first job of a lane: whether its client has lapsed, its client's share, whether it yields to
the other phase, its key, its turn, and the lane."""


class Dispatch:
    """One decision at `now`."""

    def __init__(self, state: State, now: float) -> None:
        self._state = state
        self._now = now
        self._placement = Placement(
            now,
            state.resources,
            lambda: (run.status for run in state.running.values()),
        )
        self._held_phases: set[Phase] = set()
        self._jobs = 0

    def run(self) -> bool:
        """Starts what can start; whether anything did. What starts can change what the policy and
        the reservations leave to others, so call it on a fresh object until nothing does."""
        if not self._state.queues and not self._state.policy.may_wish:
            return False
        before = len(self._state.running)
        if self._state.queues:
            self._homeless()
        if self._placement.full:
            # Nothing can start, and room is kept for a job only where something could.
            return False
        self._jobs = self._about()
        if self._state.queues:
            self._elders()
            self._in_order()
        self._wishes()
        return len(self._state.running) > before

    def _about(self) -> int:
        """Jobs that run or could run, those made ahead aside; starting one does not change it."""
        state = self._state
        limit = state.limits.jobs_per_model
        if limit is None:
            ahead = sum(len(pairs) for pairs in state.making.values())
            return len(state.running) - state.parked - ahead + len(state.queues)
        by_model = Counter(state.running_of)
        for stream, pairs in state.making.items():
            by_model[stream.model] -= len(pairs)
        for lane in state.queues.lanes():
            by_model[lane.job.model] += len(lane.heap)
        return sum(min(limit, count) for count in by_model.values())

    def _elders(self) -> None:
        """Jobs beyond their patience, the oldest first."""
        queues = self._state.queues
        latest = self._now - self._state.limits.patience
        heads = [pair for phase in PHASES if (pair := queues.oldest(phase)) is not None]
        for head in sorted(heads, key=lambda pair: pair.since):
            phase = queues.lane(head).job.phase
            oldest: Pair | None = head
            while oldest is not None and oldest.since <= latest:
                lane = queues.lane(oldest)
                if not self._state.listens(oldest):
                    break
                if not self._start(lane, oldest):
                    if self._state.may_run(lane.job.model):
                        self._hold(lane, oldest)
                    break
                oldest = queues.oldest(phase)

    def _in_order(self) -> None:
        """All others, in the order of the policy."""
        stopped: set[Phase] = set()
        heads = [self._head(lane) for lane in self._state.queues.lanes()]
        heapq.heapify(heads)
        while heads and not self._placement.full:
            _, share, *_, lane = heapq.heappop(heads)
            pair = lane.first()[2]
            if lane.job.phase in stopped or not self._state.listens(pair):
                continue
            if share < self._share(lane):
                # Another job of this client has started meanwhile.
                heapq.heappush(heads, self._head(lane))
            elif self._start(lane, pair):
                if lane.heap:
                    heapq.heappush(heads, self._head(lane))
            else:
                if lane.job.phase in self._state.limits.in_line:
                    stopped.add(lane.job.phase)
                if self._keeps(lane):
                    self._hold(lane, pair)

    def _head(self, lane: Lane) -> Head:
        """The first job of a lane that is not empty."""
        key, turn, pair = lane.first()
        later = self._state.policy.online_first and lane.job.phase is Phase.PRE
        lapsed = self._state.clients.lapses(pair.stream.client) > 0
        return lapsed, self._share(lane), later, key, turn, lane

    def _share(self, lane: Lane) -> float:
        """What the lane's client had so far, where clients have shares."""
        return 0.0 if lane.client is None else self._state.policy.share(lane.client)

    def _start(self, lane: Lane, pair: Pair) -> bool:
        """Starts a job whose client listens, if it fits now."""
        state = self._state
        if self._placement.full or not state.may_run(lane.job.model):
            return False
        lease = pair.owner.submission.lease
        place = self._placement.find(self._demand(lane.job), lane.machine, lease)
        if place is None:
            return False
        machine, demand = place
        state.start(self._now, pair, lane.job.phase, machine, demand)
        self._placement.started(machine, demand, lease)
        return True

    def _demand(self, job: Key) -> Demand:
        """What a job is given, on the cores that the policy grants."""
        state = self._state
        demand = state.profiles.estimate(job)
        cores = state.policy.cores(demand, self._jobs, state.capacity)
        return demand.on(cores)

    def _keeps(self, lane: Lane) -> bool:
        """Whether room is to be kept for a lane's head, which does not fit."""
        is_held = lane.job.phase in self._held_phases
        return self._state.limits.reserve and not is_held and self._state.may_run(lane.job.model)

    def _hold(self, lane: Lane, pair: Pair) -> None:
        """Keeps room for a job, on the machine where some was kept for it before."""
        resources = self._state.resources
        before = resources.get(pair.reserved or "")
        stays = before is not None and before.is_for(lane.machine)
        pinned = lane.machine or (pair.reserved if stays else None)
        pair.reserved = self._placement.reserve(self._demand(lane.job), pinned)
        if pair.reserved is not None:
            self._held_phases.add(lane.job.phase)

    def _homeless(self) -> None:
        """Fails jobs for which no machine has been large enough for long."""
        state = self._state
        for kind in state.queues.kinds():
            job, machine = kind
            if state.profiles.estimate(job).memory > self._largest(machine):
                state.queues.homeless.add(kind)
                for lane in state.queues.of(kind):
                    self._wait_for_home(lane)
            elif kind in state.queues.homeless:
                state.queues.homeless.discard(kind)
                for lane in state.queues.of(kind):
                    lane.homeless_since = None

    def _wait_for_home(self, lane: Lane) -> None:
        """Fails the jobs of a lane that no machine is large enough for, if that is so for long."""
        state = self._state
        if lane.homeless_since is None:
            lane.homeless_since = self._now
        if self._now >= lane.homeless_since + state.limits.homeless_seconds:
            for pair in lane.heap:
                if pair in lane.heap:
                    reason = "no machine has the memory that it needs"
                    state.end(self._now, pair.owner, Outcome.FAILED, reason)

    def _largest(self, machine: str | None) -> int:
        """The most memory that a job has anywhere, or on `machine` if it must run there; -1 if it
        can run nowhere."""
        resources = self._state.resources.values()
        return max((free.usable_memory for free in resources if free.is_for(machine)), default=-1)

    def _wishes(self) -> None:
        """Makes material ahead, as the policy wishes, with what is left."""
        state = self._state
        if state.draining or not state.policy.may_wish:
            return
        for stream in state.policy.wishes(self._now, look(state)):
            self._make(stream)

    def _make(self, stream: JobStream) -> None:
        """Starts a T_pre that nobody asked for, if it fits now."""
        state = self._state
        place = self._placement.find(self._demand(stream.job(Phase.PRE)), None)
        is_present = state.expects(stream.client)
        if place is None or not is_present or not state.may_run(stream.model):
            return
        pair = state.ahead(self._now, stream)
        state.making.setdefault(stream, []).append(pair)
        state.start(self._now, pair, Phase.PRE, *place)
        self._placement.started(*place)


def look(state: State) -> View:
    """What the policy sees when it wishes."""
    free = state.material.free()
    size, cores = state.material.free_bytes, 0
    for stream, pairs in state.making.items():
        free[stream] = free.get(stream, 0) + len(pairs)
        for pair in pairs:
            size += state.profiles.expected(stream.job(Phase.PRE)).material
            cores += len(state.running[pair.job or ""].status.cores)
    return View(free, size, cores, state.resources, state.profiles)
