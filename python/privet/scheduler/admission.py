"""What happens when a submission arrives (the paper's Procedure 1)."""

from __future__ import annotations

from collections import Counter

from privet.errors import Misuse
from privet.scheduler.pairs import Pair, PairStage, SubmissionState
from privet.scheduler.policies.policy import JobStream
from privet.scheduler.profiles import Key
from privet.scheduler.state import State
from privet.scheduler.submission import PHASES, Phase, Refused, Submission, Why
from privet.scheduler.timers import Alarm

#: What became of a notice, and what a request that refers to it is told. A notice that came to
#: nothing by no fault of its client (failed, timed out, lost) is no reason to refuse: the request
#: is prepared for by itself.
_FATES = {
    "cancelled": (Why.CANCELLED_NOTICE, "was cancelled"),
    "used": (Why.USED_NOTICE, "was used by another request"),
}


def admit(state: State, now: float, submission: Submission) -> None:
    """Admits a submission, or raises `Refused`."""
    batches, notice = check(state, submission)
    entry = SubmissionState(submission, now)
    state.counts["submitted", "notice" if submission.notice else "request"] += 1
    pairs = list(notice.pairs) if notice is not None else []
    if submission.only is None:
        state.policy.submitted(now, submission, batches)
    for batch in batches:
        stream = JobStream(submission.client, submission.model, submission.suite, batch)
        if submission.only is None:
            _pair(state, now, entry, stream, pairs)
        else:
            _alone(state, now, entry, stream)
    entry.open = len(entry.pairs)
    state.open(entry)
    if notice is not None:
        notice.claimed = True
        state.timers.drop(Alarm.TIMEOUT, notice.id)
        if notice.ended:
            state.forget(notice, "used")


def check(state: State, submission: Submission) -> tuple[list[int], SubmissionState | None]:
    """The batches of a submission's pairs, and the notice that it refers to. Raises `Refused` if it
    cannot be admitted now."""
    try:
        batches = _check(state, submission)
        notice = _notice(state, submission) if submission.refers_to is not None else None
        if submission.ready:
            _check_ready(state, submission, batches, notice)
    except Refused as refusal:
        state.counts["refused", refusal.why] += 1
        raise
    return batches, notice


def _check(state: State, submission: Submission) -> list[int]:
    """The batches of the submission's pairs."""
    if submission.id.startswith("ahead-"):
        raise Misuse(f"ids such as {submission.id} are the scheduler's own")
    if submission.id in state.entries or submission.id in state.past:
        raise Refused(Why.DUPLICATE, f"there was a submission {submission.id} already")
    if state.draining:
        raise Refused(Why.DRAINING, "the service is shutting down and takes nothing new")
    model, suite = submission.model, submission.suite
    pairs = state.profiles.pairs(model, suite, submission.batch)
    if not state.limits.of_pairs(pairs, pairs):
        raise Refused(Why.TOO_LARGE, f"{submission.batch} samples are too many for one request")
    client = state.pairs_of[submission.client] + pairs
    if not state.limits.of_pairs(client, state.pairs_of.total() + pairs):
        raise Refused(Why.FULL, "too many jobs wait; try again later")
    batches = state.profiles.split(model, suite, submission.batch)
    if submission.machine and submission.machine not in state.resources:
        raise Refused(Why.FULL, f"machine {submission.machine} is not there; try again later")
    resources = [
        free for free in state.resources.values() if free.is_for(submission.machine or None)
    ]
    largest_memory = max((free.usable_memory for free in resources), default=None)
    for batch in set(batches):
        for phase in (submission.only,) if submission.only is not None else PHASES:
            memory = state.profiles.estimate(Key(model, suite, batch, phase)).memory
            if largest_memory is not None and memory > largest_memory:
                raise Refused(
                    Why.TOO_LARGE,
                    f"{batch} samples of {model} need {memory} bytes; no machine has that many "
                    f"({largest_memory})",
                )
    return batches


def _notice(state: State, submission: Submission) -> SubmissionState | None:
    """The notice that a request refers to; None if it came to nothing by no fault of the client."""
    id = submission.refers_to or ""
    notice = state.entries.get(id)
    if notice is not None and notice.submission.only is not None:
        raise Refused(Why.UNKNOWN_NOTICE, f"there is no notice {id}")
    if notice is None or not notice.submission.notice:
        client, fate = state.past.get(id, (None, ""))
        if client is None:
            raise Refused(Why.UNKNOWN_NOTICE, f"there is no notice {id}")
        if client != submission.client:
            raise Refused(Why.FOREIGN_NOTICE, f"notice {id} is another client's")
        if fate in _FATES:
            why, text = _FATES[fate]
            raise Refused(why, f"notice {id} {text}")
        return None
    announced = notice.submission
    if announced.client != submission.client:
        raise Refused(Why.FOREIGN_NOTICE, f"notice {id} is another client's")
    if notice.claimed:
        raise Refused(Why.USED_NOTICE, f"notice {id} was used by another request")
    if (announced.model, announced.suite, announced.batch) != (
        submission.model,
        submission.suite,
        submission.batch,
    ):
        raise Refused(
            Why.OTHER_NOTICE,
            f"notice {id} announced {announced.batch} of {announced.model} under {announced.suite}",
        )
    return notice


def _check_ready(
    state: State, submission: Submission, batches: list[int], notice: SubmissionState | None
) -> None:
    """Refuses a request unless each of its pairs finds material that lies ready."""
    needed = Counter(
        JobStream(submission.client, submission.model, submission.suite, batch) for batch in batches
    )
    announced = [] if notice is None else notice.pairs
    if any(pair.stage not in (PairStage.TRANSIT, PairStage.READY) for pair in announced):
        raise Refused(Why.NOT_READY, f"the material of notice {submission.refers_to} is not ready")
    needed.subtract(pair.stream for pair in announced)
    free = state.material.free()
    if any(count > free.get(stream, 0) for stream, count in needed.items()):
        raise Refused(
            Why.NOT_READY, f"no material is ready for {submission.batch} samples of these"
        )


def _pair(
    state: State, now: float, entry: SubmissionState, stream: JobStream, noticed: list[Pair]
) -> None:
    """Finds a pair for `stream`: the notice's, one whose material is there or is being made ahead,
    or a new one."""
    pair = next((pair for pair in noticed if pair.stream == stream), None)
    if pair is not None:
        noticed.remove(pair)
        _claim(state, now, entry, pair)
        return
    if not entry.submission.notice:
        ready = state.material.take(stream)
        if ready is not None:
            pair = Pair(stream, entry, entry, machine=ready.machine, material=ready.material)
            entry.pairs.append(pair)
            state.enqueue(now, pair, PairStage.READY)
            return
        ahead = state.making.get(stream)
        if ahead:
            pair = ahead.pop(0)
            if not ahead:
                del state.making[stream]
            _claim(state, now, entry, pair)
            return
    pair = Pair(stream, entry, None if entry.submission.notice else entry)
    entry.pairs.append(pair)
    state.enqueue(now, pair, PairStage.PRE)


def _alone(state: State, now: float, entry: SubmissionState, stream: JobStream) -> None:
    submission = entry.submission
    request = None if submission.notice else entry
    pair = Pair(stream, entry, request, machine=submission.machine or None)
    entry.pairs.append(pair)
    state.enqueue(now, pair, PairStage.PRE if submission.only is Phase.PRE else PairStage.READY)


def _claim(state: State, now: float, entry: SubmissionState, pair: Pair) -> None:
    """A request takes over a pair that was begun for a notice, or ahead."""
    pair.request = entry
    entry.pairs.append(pair)
    if pair.stage is PairStage.TRANSIT:
        state.material.claim(pair)
        state.enqueue(now, pair, PairStage.READY)
    elif pair.stage is PairStage.PRE:
        key = state.policy.claimed(state.candidate(pair, Phase.PRE), pair.key)
        if key != pair.key:
            pair.key = key
            state.queues.push(pair, Phase.PRE)
