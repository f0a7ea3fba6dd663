"""What happens when a job ends, a machine goes, or something comes due."""

from __future__ import annotations

import math

from privet.scheduler.pairs import Pair, PairStage
from privet.scheduler.profiles import Key, Usage
from privet.scheduler.state import State
from privet.scheduler.submission import Outcome, Phase
from privet.scheduler.timers import Alarm

LEFT = "its client has left: nobody waits for it"


def finished(state: State, now: float, job: str, usage: Usage | None, material: str | None) -> None:
    """A job did what it should; `material` names the entry that a T_pre left."""
    run = state.running.get(job)
    if run is None:
        return
    if run.status.phase is Phase.PRE and not run.pair.alone:
        state.material.check_new(material or job)
    state.leave(now, job)
    status, pair = run.status, run.pair
    if not pair.in_session:
        state.clients.on_job_done(status.client)
    state.counts["jobs", f"{status.phase} finished"] += 1
    if usage is not None:
        key = Key(status.model, status.suite, status.batch, status.phase)
        state.profiles.observe(key, usage)
    if pair.alone:
        _complete_pair(state, now, pair)
    elif status.phase is Phase.PRE:
        _prepared(state, now, pair, material or job, usage.material if usage is not None else 0)
    elif pair.stage is PairStage.INFERRING:
        _complete_pair(state, now, pair)


def _complete_pair(state: State, now: float, pair: Pair) -> None:
    if pair.stage is PairStage.OVER:
        return
    pair.stage = PairStage.OVER
    owner = pair.owner
    state.close_pairs(owner, 1)
    if not owner.open:
        state.end(now, owner, Outcome.DONE)
        if pair.alone:
            state.forget(owner, str(Outcome.DONE))


def park(state: State, now: float, job: str, usage: Usage | None) -> None:
    """A T_pre alone did what it should, and keeps its memory."""
    run = state.park(now, job)
    if run is not None and usage is not None:
        status = run.status
        state.profiles.observe(Key(status.model, status.suite, status.batch, status.phase), usage)


def _prepared(state: State, now: float, pair: Pair, material: str, bytes: int) -> None:
    maker, is_making = pair.maker, pair.stage is PairStage.MAKING
    state.material.add_made(now, pair, material, bytes)
    if not is_making:
        state.material.release(now, pair)
        return
    if pair.request is not None:
        state.enqueue(now, pair, PairStage.READY)
    elif maker.ahead:
        _unlist(state, pair)
        pair.stage = PairStage.OVER
        state.material.release(now, pair)
    else:
        pair.stage, pair.since = PairStage.TRANSIT, now
        state.material.announce(now, pair)
    if maker.submission.notice and not maker.ahead and not maker.ended:
        state.close_pairs(maker, 1)
        if not maker.open:
            state.end(now, maker, Outcome.DONE)


def failed(
    state: State, now: float, job: str, reason: str, rerun: bool, keeps_material: bool
) -> None:
    """A job ended without a result; what material it had is given up unless the job
    `keeps_material`."""
    run = state.leave(now, job, keeps_material)
    if run is None:
        return
    pair = run.pair
    state.counts["jobs", f"{run.status.phase} failed"] += 1
    if run.status.phase is Phase.ON and not pair.alone:
        state.counts["material", "given up"] += 1
    if pair.stage not in (PairStage.MAKING, PairStage.INFERRING):
        return
    if pair.request is None and pair.maker.ahead:
        _unlist(state, pair)
        pair.stage = PairStage.OVER
    else:
        _rerun(state, now, pair, reason, rerun)


def _rerun(state: State, now: float, pair: Pair, reason: str, rerun: bool) -> None:
    """Runs a pair again from a fresh T_pre, if it has one, or fails its submission."""
    if rerun and not pair.in_session and pair.reruns < state.limits.reruns:
        pair.reruns += 1
        state.counts["jobs", "rerun"] += 1
        if pair.alone:
            state.enqueue(now, pair, PairStage.READY)
            return
        if pair.request is not None and pair.request.submission.ready:
            _take_another(state, now, pair, reason)
            return
        made_once = pair.material is not None
        if pair.request is not None and (made_once or pair.maker.ahead or pair.maker.ended):
            pair.maker = pair.request
        state.enqueue(now, pair, PairStage.PRE)
    else:
        pair.stage = PairStage.OVER
        state.end(now, pair.owner, Outcome.FAILED, reason)
        state.end(now, pair.maker, Outcome.FAILED, reason)


def _take_another(state: State, now: float, pair: Pair, reason: str) -> None:
    """Gives a request that nothing is made for other material that lies ready, or fails it."""
    ready = state.material.take(pair.stream)
    if ready is None:
        pair.stage = PairStage.OVER
        reason = f"{reason}; no other material is ready"
        state.end(now, pair.owner, Outcome.FAILED, reason)
        state.end(now, pair.maker, Outcome.FAILED, reason)
        return
    if pair.request is not None:
        pair.maker = pair.request
    pair.machine, pair.material = ready.machine, ready.material
    state.enqueue(now, pair, PairStage.READY)


def _unlist(state: State, pair: Pair) -> None:
    ahead = state.making[pair.stream]
    ahead.remove(pair)
    if not ahead:
        del state.making[pair.stream]


def machine_lost(state: State, now: float, name: str) -> None:
    """A machine is gone, with its jobs and its material."""
    if not state.remove_machine(name):
        return
    for entry in state.material.unclaimed(name):
        state.give_up(entry.material, "machine lost")
    # All that is struck leaves first: what one loss ends must not find another's remains.
    struck = [*_waiting_on(state, name), *_running_on(state, now, name)]
    for pair in struck:
        if not pair.owner.ended:
            _rerun(state, now, pair, f"machine {name} was lost", rerun=True)


def _waiting_on(state: State, machine: str) -> list[Pair]:
    """Takes out the pairs whose material lay on `machine`."""
    struck = [
        pair for lane in state.queues.lanes() if lane.machine == machine for pair in lane.heap
    ]
    for pair in struck:
        state.queues.remove(pair)
        if not pair.alone:
            state.material.discard(pair.material or "", "machine lost")
        pair.stage = PairStage.OVER
    return struck


def _running_on(state: State, now: float, machine: str) -> list[Pair]:
    """Takes out what ran on `machine`; the pairs that a submission waits for."""
    struck = []
    for job, run in list(state.running.items()):
        pair = run.pair
        if run.status.machine != machine:
            continue
        state.leave(now, job)
        state.counts["jobs", f"{run.status.phase} failed"] += 1
        if run.status.phase is Phase.ON and not pair.alone:
            state.counts["material", "given up"] += 1
        if pair.stage in (PairStage.MAKING, PairStage.INFERRING):
            if pair.request is None and pair.maker.ahead:
                _unlist(state, pair)
            else:
                struck.append(pair)
            pair.stage = PairStage.OVER
    return struck


def come_due(state: State, now: float) -> None:
    """Timeouts, limits of jobs, expiry of material and clients that stay away, by `now`."""
    for alarm, name in state.timers.due(now):
        if alarm is Alarm.TIMEOUT:
            entry = state.entries[name]
            reason = (
                f"it did not end within its timeout of {entry.submission.timeout:g} s, queues "
                "included: a longer one may be asked for, up to `[limits] timeout` of the model"
            )
            state.end(now, entry, Outcome.TIMED_OUT, reason)
        elif alarm is Alarm.LIMIT:
            state.stop(state.running[name].pair, "ran longer than its limit")
        elif alarm is Alarm.ABSENT:
            _absent(state, now, name)
        else:
            state.give_up(name, "expired")


def _absent(state: State, now: float, client: str) -> None:
    """Cancels what has waited for a client for too long; the rest is looked at when it is due."""
    later = math.inf
    for entry in list(state.entries.values()):
        submission = entry.submission
        if submission.client != client or entry.ended or entry.claimed or submission.machine:
            continue
        due = state.clients.due(client, entry.arrived)
        if due <= now:
            state.end(now, entry, Outcome.CANCELLED, LEFT)
        else:
            later = min(later, due)
    if later < math.inf:
        state.timers.set(Alarm.ABSENT, client, later)


def give_up_notices(state: State, now: float) -> None:
    """For a drain: ends the notices that no request took over, and stops what is made ahead."""
    for entry in list(state.entries.values()):
        if entry.submission.notice and not entry.claimed and not entry.ended:
            state.end(now, entry, Outcome.CANCELLED, "the service is shutting down")
    for pairs in state.making.values():
        for pair in pairs:
            pair.stage = PairStage.OVER
            state.stop(pair, "the service is shutting down")
    state.making.clear()
