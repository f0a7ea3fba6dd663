"""Clients that listen and let their jobs wait.

A grant that nobody comes to holds cores, and behind it others may wait who would not come either:
each would hold them in its turn. So when a client is late, all who wait are asked at the same time,
and the job is taken back if any of them calls whose job could have its place. That is no fault of
the client, which may be slow: a job is taken back once, and it has its whole time with the next.
"""

from __future__ import annotations

from itertools import islice

from privet.scheduler.actions import Probe, TakeBack
from privet.scheduler.snapshot import RunningStatus
from privet.scheduler.state import Late, State

MOST_ASKED = 100
"""Clients that are asked at a time for one late job, at most: each answer is a call."""


def on_late(state: State, now: float, job: str) -> None:
    """The client of a job has not come for a while."""
    run = state.running.get(job)
    if run is None or state.limits.absent_seconds is None or run.status.stopping:
        return
    if run.pair.reruns:
        return  # It would fail in the end for being slow.
    client, clients = run.status.client, state.clients
    if not clients.was_recalled(client) and not clients.called_after(client, run.status.started):
        state.late[job] = Late(now, now + state.limits.answer_seconds)


def on_call(state: State, now: float, client: str) -> bool:
    """A client has called; whether that may change a decision: it listens again, or others may be
    late for its sake."""
    for job in [job for job in state.late if state.running[job].status.client == client]:
        del state.late[job]
    was_silent = state.clients.on_call(now, client)
    if was_silent:
        state.watch(now, client)
    return was_silent or bool(state.late)


def come_due(state: State, now: float) -> None:
    """Those who were asked and have not called by `now` are silent."""
    for client in state.clients.overdue(now):
        state.clients.mark_silent(now, client)
        state.watch(now, client)


def check(state: State, now: float) -> bool:
    """Asks those who wait behind a late job, once all is started that can be, and takes the job
    back if one of them is there; whether any was, whose client then listens no more."""
    if not state.queues:
        return False
    count = len(state.late)
    for job, lateness in list(state.late.items()):
        run = state.running[job].status
        is_due = now >= lateness.due and not run.stopping
        is_awaited = is_due and _is_awaited(state, run)
        if lateness.asks or (is_due and not is_awaited):
            # Of more than are asked at a time, the next when those before are silent.
            lateness.asks = False
            _ask(state, now, lateness.since)
        if is_awaited:
            del state.late[job]
            state.clients.recall(run.client)
            if state.clients.listens(run.client):
                # If it is there it says so.
                state.outbox.append(Probe(run.client))
                state.clients.mark_silent(now, run.client)
            state.outbox.append(TakeBack(job))
    return len(state.late) < count


def next_at(state: State, now: float) -> float | None:
    """When something is due."""
    answer = state.clients.answer_due()
    times = [] if answer is None else [answer]
    if state.queues:
        times += [lateness.due for lateness in state.late.values() if lateness.due > now]
    return min(times, default=None)


def _ask(state: State, now: float, since: float) -> None:
    """Asks clients that wait and have not called since a time, however many jobs are late none more
    often than it has time to answer."""
    clients, answer = state.clients, state.limits.answer_seconds
    waiting = dict.fromkeys(lane.first()[2].stream.client for lane in state.queues.lanes())
    doubtful = (
        client
        for client in waiting
        if clients.listens(client)
        and not clients.called_after(client, since)
        and not clients.answered_after(client, now - answer)
    )
    for client in islice(doubtful, MOST_ASKED):
        if clients.ask(client, now + answer):
            state.outbox.append(Probe(client))


def _is_awaited(state: State, run: RunningStatus) -> bool:
    """Whether another client waits that has called since a job started, or one in its session, and
    whose job could have that one's place."""
    place = state.resources[run.machine]
    pairs = (
        lane.first()[2]
        for lane in state.queues.lanes()
        if lane.client != run.client and place.is_for(lane.machine)
    )
    return any(
        state.listens(pair)
        and (pair.in_session or state.clients.called_after(pair.stream.client, run.started))
        for pair in pairs
    )
