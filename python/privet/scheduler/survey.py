"""The scheduler's state, read: snapshot, backlog, and when something is due."""

from __future__ import annotations

import heapq
import math
from collections import Counter

from privet.scheduler import lateness
from privet.scheduler.pairs import Pair, PairStage
from privet.scheduler.policies.policy import JobStream
from privet.scheduler.snapshot import MachineLoad, Queued, QueueLine, SchedulerCounters, Snapshot
from privet.scheduler.state import State
from privet.scheduler.submission import PHASES, Outcome


def next_event_at(state: State, now: float) -> float | None:
    """The earliest time after `now` at which a decision may differ; see `Scheduler`."""
    times = [state.timers.next_at(), state.policy.next_event_at(now), lateness.next_at(state, now)]
    for phase in PHASES:
        oldest = state.queues.oldest(phase)
        if oldest is not None and oldest.since + state.limits.patience > now:
            times.append(oldest.since + state.limits.patience)
    for kind in state.queues.homeless:
        for lane in state.queues.of(kind):
            if lane.homeless_since is not None:
                times.append(lane.homeless_since + state.limits.homeless_seconds)
    upcoming = [time for time in times if time is not None and time < math.inf]
    return min(upcoming, default=None)


def backlog_seconds(state: State) -> float:
    """Core seconds that wait, by the cores there are; infinite without a machine."""
    cores = state.capacity.cores
    total = 0.0
    for lane in state.queues.lanes():
        demand = state.profiles.expected(lane.job)
        total += len(lane.heap) * demand.cores * demand.seconds
    return total / cores if cores else (math.inf if total else 0.0)


def snapshot(state: State, now: float, limit: int) -> Snapshot:
    """See `Snapshot`; of each queue its first `limit`."""
    queued: dict[PairStage, list[Pair]] = {stage: [] for stage in PairStage}
    for lane in state.queues.lanes():
        for pair in lane.heap:
            queued[pair.stage].append(pair)
    transit = list(state.material.announced.values())
    making = [run.pair for run in state.running.values() if run.pair.stage is PairStage.MAKING]
    waiting = [
        pair
        for pair in (*queued[PairStage.PRE], *making)
        if pair.request is not None and pair.maker is not pair.request
    ]
    return Snapshot(
        now,
        state.policy.name,
        state.draining,
        state.drained,
        _line(queued[PairStage.PRE], limit),
        _line(transit, limit),
        _line(waiting, limit),
        _line(queued[PairStage.READY], limit),
        tuple(run.status for run in state.running.values()),
        tuple(_load(state, name) for name in state.resources),
        {_names(stream): count for stream, count in state.material.free().items()},
        Counter(_names(pair.stream) for pair in transit),
        _counters(state),
    )


def _line(pairs: list[Pair], limit: int) -> QueueLine:
    first = heapq.nsmallest(limit, pairs, key=lambda pair: pair.since)
    return QueueLine(len(pairs), tuple(_queued(pair) for pair in first))


def _names(stream: JobStream) -> tuple[str, str, str, int]:
    return stream.client, stream.model, stream.suite, stream.batch


def _queued(pair: Pair) -> Queued:
    stream = pair.stream
    request = pair.request.id if pair.request is not None else None
    notice = pair.maker.id if pair.maker is not pair.request else None
    return Queued(request, notice, *_names(stream), pair.since)


def _load(state: State, name: str) -> MachineLoad:
    free = state.resources[name]
    machine = free.machine
    usage = (machine.cores - free.cores, machine.memory - free.memory)
    return MachineLoad(name, machine.cores, machine.memory, *usage, free.draining)


def _counters(state: State) -> SchedulerCounters:
    groups: dict[str, dict[str, int]] = {}
    for (group, name), count in state.counts.items():
        groups.setdefault(group, {})[str(name)] = count
    submitted = groups.get("submitted", {})
    return SchedulerCounters(
        submitted.get("request", 0),
        submitted.get("notice", 0),
        groups.get("refused", {}),
        {Outcome(name): count for name, count in groups.get("ended", {}).items()},
        groups.get("jobs", {}),
        groups.get("material", {}),
    )
