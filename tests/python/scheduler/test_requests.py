"""Requests from submission to answer: two jobs, batches, cancel, timeouts, reruns, refusals."""

from __future__ import annotations

import pytest
from tests.python.scheduler.bench import Bench, table

from privet.errors import Misuse
from privet.scheduler import (
    GIB,
    Demand,
    JobStream,
    Key,
    Limits,
    Machine,
    Outcome,
    Phase,
    Refused,
    Start,
    Submission,
    Why,
)


def test_a_request_is_prepared_and_then_inferred(bench: Bench) -> None:
    (pre,) = bench.submit("r")
    assert isinstance(pre, Start)
    assert (pre.job, pre.phase, pre.cores, pre.memory) == ("r/pre#1", "pre", (0,), GIB)
    assert pre.material is None
    bench.now = 10.0
    start = bench.finish("r/pre#1")[-1]
    assert isinstance(start, Start)
    assert (start.job, start.phase, start.material, start.machine) == (
        "r/on#2",
        "on",
        "r/pre#1",
        "here",
    )
    bench.finish("r/on#2")
    assert bench.outcomes == {"r": Outcome.DONE}
    assert bench.running == []


def test_the_material_is_called_as_the_executor_calls_it(bench: Bench) -> None:
    bench.submit("r")
    bench.scheduler.finished(1.0, "r/pre#1", material="entry 7")
    bench.now = 1.0
    start = bench.decide()[-1]
    assert isinstance(start, Start)
    assert start.material == "entry 7"


def test_a_large_batch_is_split_and_ends_when_all_have() -> None:
    profiles = table()
    profiles.set_at_once("small", "fss", 2)
    bench = Bench(profiles=profiles)
    starts = [action for action in bench.submit("r", batch=5) if isinstance(action, Start)]
    assert [start.batch for start in starts] == [2, 2, 1]
    bench.finish(*(start.job for start in starts))
    for job in bench.running:
        assert bench.outcomes == {}
        bench.finish(job)
    assert bench.outcomes == {"r": Outcome.DONE}


def test_jobs_never_exceed_cores_or_memory(bench: Bench) -> None:
    for number in range(6):
        bench.submit(f"r{number}")
    assert len(bench.running) == 4
    other = Bench()
    other.submit("r1", "heavy")
    other.submit("r2", "heavy")
    assert other.running == ["r1/pre#1"]


def test_cancel_frees_what_waits_and_stops_what_runs(bench: Bench) -> None:
    for number in range(5):
        bench.submit(f"r{number}")
    assert bench.scheduler.cancel(0.0, "r4")
    assert bench.scheduler.cancel(0.0, "r0")
    bench.decide()
    assert bench.outcomes == {"r4": Outcome.CANCELLED, "r0": Outcome.CANCELLED}
    assert bench.stops() == ["r0/pre#1"]
    assert not bench.scheduler.cancel(0.0, "r0")
    assert len(bench.running) == 4, "the core is taken until the job is over"
    bench.fail("r0/pre#1")
    assert len(bench.running) == 3


def test_a_cancelled_requests_material_serves_the_next(bench: Bench) -> None:
    bench.submit("n")
    bench.finish("n/pre#1")
    bench.submit("w", "wide")
    bench.submit("r", to="n")
    assert bench.queues()["ready"] == ["r"]
    bench.scheduler.cancel(0.0, "r")
    bench.decide()
    assert bench.running == ["w/pre#1"]
    bench.submit("d")
    assert bench.starts(bench.fail("w/pre#1")) == ["d/on#1"], "no T_pre: an entry is in stock"


def test_material_of_an_earlier_run_is_used_once(bench: Bench) -> None:
    bench.scheduler.stock_found(0.0, "old", JobStream("alice", "small", "fss", 1), "here")
    (start,) = bench.submit("r1")
    assert isinstance(start, Start)
    assert (start.phase, start.material) == ("on", "old")
    assert bench.starts(bench.submit("r2")) == ["r2/pre#1"]
    with pytest.raises(Misuse, match="known"):
        bench.scheduler.stock_found(0.0, "old", JobStream("alice", "small", "fss", 1), "here")


def test_material_deleted_outside_is_forgotten(bench: Bench) -> None:
    bench.scheduler.stock_found(0.0, "old", JobStream("alice", "small", "fss", 1), "here")
    assert bench.scheduler.stock_gone(0.0, "old")
    assert not bench.scheduler.stock_gone(0.0, "old")
    bench.submit("n")
    bench.finish("n/pre#1")
    assert bench.scheduler.stock_gone(0.0, "n/pre#1")
    assert bench.starts(bench.submit("s", to="n")) == ["s/pre#1"]
    assert bench.starts(bench.submit("r")) == ["r/pre#1"]


def test_a_timeout_ends_a_request_that_waits_or_runs(bench: Bench) -> None:
    bench.submit("r1", "wide", timeout=5.0)
    bench.submit("r2", "wide", timeout=7.0)
    assert bench.scheduler.next_event_at() == 5.0
    bench.wait(5.0)
    assert bench.outcomes == {"r1": Outcome.TIMED_OUT}
    assert bench.stops() == ["r1/pre#1"]
    bench.wait(2.0)
    assert bench.outcomes["r2"] is Outcome.TIMED_OUT
    bench.fail("r1/pre#1")
    assert bench.running == []


def test_a_job_beyond_its_limit_is_stopped_and_may_run_again() -> None:
    bench = Bench(limits=Limits(job_factor=2.0, job_floor=1.0))
    bench.submit("r")
    assert bench.scheduler.next_event_at() == 20.0
    bench.wait(20.0)
    assert bench.stops() == ["r/pre#1"]
    assert bench.outcomes == {}
    assert bench.starts(bench.fail("r/pre#1", rerun=True)) == ["r/pre#2"]


def test_reruns_start_from_fresh_material_and_are_bounded(bench: Bench) -> None:
    bench.submit("r")
    bench.finish("r/pre#1")
    assert bench.starts(bench.fail("r/on#2", rerun=True)) == ["r/pre#3"]
    start = bench.finish("r/pre#3")[-1]
    assert isinstance(start, Start)
    assert start.material == "r/pre#3"
    bench.fail("r/on#4", rerun=True)
    assert bench.running == ["r/pre#5"]
    bench.fail("r/pre#5", rerun=True)
    assert bench.outcomes == {"r": Outcome.FAILED}


def test_a_failure_that_must_not_be_repeated_ends_the_request(bench: Bench) -> None:
    bench.submit("r", batch=2)
    bench.fail("r/pre#1")
    assert bench.outcomes == {"r": Outcome.FAILED}
    assert bench.stops() == ["r/pre#2"]


@pytest.mark.parametrize(
    ("submission", "reason"),
    [
        (Submission("r", "bob", "small", "fss"), Why.DUPLICATE),
        (Submission("x", "bob", "heavy", "fss", 4), Why.TOO_LARGE),
        (Submission("x", "bob", "heavy", "fss", 10**12), Why.TOO_LARGE),
        (Submission("x", "bob", "giant", "fss"), Why.TOO_LARGE),
        (Submission("x", "alice", "small", "fss", 3), Why.FULL),
    ],
)
def test_what_cannot_be_admitted_is_refused(submission: Submission, reason: Why) -> None:
    profiles = table()
    profiles.set(Key("giant", "fss", 1, Phase.ON), Demand(1, 9 * GIB, 1.0))
    bench = Bench(profiles=profiles, limits=Limits(queue=8, queue_per_client=3))
    bench.submit("r")
    before = bench.scheduler.snapshot(0.0)
    with pytest.raises(Refused) as refusal:
        bench.scheduler.submit(0.0, submission)
    assert refusal.value.why is reason
    assert refusal.value.retry == (reason is Why.FULL)
    after = bench.scheduler.snapshot(0.0)
    assert (after.pre, after.running) == (before.pre, before.running)
    assert after.counters.refused == {reason: 1}


def test_what_cannot_be_is_told_and_changes_nothing(bench: Bench) -> None:
    with pytest.raises(Misuse, match="own"):
        bench.submit("ahead-1")
    with pytest.raises(Misuse, match="slash"):
        bench.submit("a/b")
    bench.submit("a")
    bench.submit("n")
    bench.scheduler.finished(0.0, "n/pre#1", material="entry")
    with pytest.raises(Misuse, match="known"):
        bench.scheduler.finished(0.0, "a/pre#1", material="entry")
    assert bench.running == ["a/pre#1"]
    with pytest.raises(Misuse, match="already"):
        bench.scheduler.machine_joined(0.0, Machine("here", 1, 1))


def test_time_must_not_run_back(bench: Bench) -> None:
    bench.wait(5.0)
    with pytest.raises(Misuse, match="runs back"):
        bench.scheduler.decide(4.0)
    with pytest.raises(Misuse):
        bench.scheduler.decide(float("nan"))


def test_drain_admits_nothing_and_ends_all(bench: Bench) -> None:
    bench.submit("r1", "wide")
    bench.submit("r2")
    bench.submit("n1")
    bench.scheduler.drain(0.0)
    bench.decide()
    assert bench.outcomes == {"n1": Outcome.CANCELLED}
    with pytest.raises(Refused) as refusal:
        bench.submit("r3")
    assert refusal.value.why is Why.DRAINING
    while bench.running:
        assert not bench.scheduler.drained
        bench.finish(*bench.running)
    assert bench.scheduler.drained
    assert set(bench.outcomes.values()) == {Outcome.CANCELLED, Outcome.DONE}


def test_a_job_that_no_machine_can_hold_fails_after_a_while() -> None:
    bench = Bench(machines=[Machine("big", 4, 16 * GIB), Machine("here", 4, 2 * GIB)])
    bench.submit("a", "wide")
    bench.submit("b", "wide")
    bench.submit("c", "heavy")
    bench.scheduler.machine_lost(0.0, "big")
    bench.decide()
    alarm = bench.scheduler.next_event_at()
    assert alarm == 60.0
    bench.wait(alarm)
    assert bench.outcomes == {"c": Outcome.FAILED}
