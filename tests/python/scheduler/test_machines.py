"""Several machines: spreading, material that pins, loss, and room kept for the first in line."""

from __future__ import annotations

from tests.python.scheduler.bench import Bench, table

from privet.scheduler import (
    GIB,
    Demand,
    Fcfs,
    JobStream,
    Key,
    Limits,
    Machine,
    Outcome,
    Phase,
    Policy,
    Priority,
    Start,
    Usage,
)
from privet.scheduler.policies import Candidate

TWO = (Machine("one", 4, 8 * GIB), Machine("two", 4, 8 * GIB))


def test_t_pre_spreads_and_t_on_stays_with_its_material() -> None:
    bench = Bench(machines=TWO)
    starts = [*bench.submit("a"), *bench.submit("b")]
    assert [action.machine for action in starts if isinstance(action, Start)] == ["one", "two"]
    bench.submit("c", "wide")
    start = bench.finish("b/pre#1")[-1]
    assert isinstance(start, Start)
    assert (start.request, start.machine) == ("b", "two")


def test_a_lost_machine_takes_its_jobs_and_its_material() -> None:
    bench = Bench(machines=TWO)
    bench.submit("a")
    bench.submit("n")
    bench.finish("n/pre#1")
    bench.submit("b", "wide")
    bench.scheduler.machine_lost(0.0, "two")
    bench.decide()
    assert bench.gone() == [("n/pre#1", "machine lost")]
    assert bench.outcomes == {"n": Outcome.DONE}
    bench.finish("a/pre#1")
    bench.finish("a/on#2")
    assert bench.running == ["b/pre#2"], "its first ran on the lost machine"
    bench.scheduler.finished(0.0, "b/pre#1")
    assert bench.running == ["b/pre#2"], "an event from a lost machine is ignored"
    bench.scheduler.machine_joined(0.0, TWO[1])
    assert bench.starts(bench.submit("r", to="n")) == ["r/pre#1"], "nothing survived the loss"


def test_a_loss_is_survived_a_bounded_number_of_times() -> None:
    bench = Bench(machines=TWO[:1])
    bench.submit("a", batch=2)
    for number in range(3):
        assert bench.outcomes == {}, number
        bench.scheduler.machine_lost(bench.now, "one")
        bench.wait(1.0)
        if number < 2:
            bench.scheduler.machine_joined(bench.now, TWO[0])
            bench.decide()
            bench.finish(bench.running[0])
    assert bench.outcomes == {"a": Outcome.FAILED}


def test_without_machines_jobs_wait_a_while_for_one() -> None:
    bench = Bench(machines=())
    assert bench.submit("a") == []
    assert bench.scheduler.next_event_at() == 60.0
    bench.wait(59.0)
    bench.scheduler.machine_joined(bench.now, TWO[0])
    assert bench.starts(bench.decide()) == ["a/pre#1"]
    other = Bench(machines=())
    other.submit("a")
    other.wait(60.0)
    assert other.outcomes == {"a": Outcome.FAILED}


def test_a_wide_job_does_not_starve_behind_narrow_ones() -> None:
    bench = Bench()
    bench.submit("s0")
    bench.wait(1.0)
    bench.submit("w", "wide")
    for number in range(1, 20):
        bench.submit(f"s{number}")
    assert bench.running == ["s0/pre#1"], "those that would outlast the first do not pass"
    bench.wait(9.0)
    bench.finish("s0/pre#1")
    assert bench.running == ["s0/on#2"], "nor do they now, with three cores idle"
    bench.wait(4.0)
    assert bench.starts(bench.finish("s0/on#2")) == ["w/pre#1"]


def test_what_ends_before_the_room_is_needed_may_pass() -> None:
    bench = Bench()
    bench.submit("a", "heavy")
    bench.wait(1.0)
    bench.scheduler.stock_found(1.0, "old", JobStream("alice", "small", "fss", 1), "here")
    bench.submit("w", "wide")
    assert bench.starts(bench.submit("s")) == ["s/on#1"], "4 s, and the heavy job takes 9 more"
    assert bench.starts(bench.submit("t")) == [], "10 s are too long"


def steps_until_started(limits: Limits) -> int | None:
    """A wide job among narrow ones that come and end one by one, so that a core is always busy:
    after how many of them it starts."""
    bench = Bench(limits=limits)
    bench.submit("s0")
    bench.wait(1.0)
    bench.submit("w", "wide")
    for number in range(1, 40):
        bench.submit(f"s{number}")
        bench.wait(5.0)
        bench.finish(bench.running[0])
        if "w/pre#1" in bench.running:
            return number
    return None


def test_only_room_kept_or_patience_lets_a_wide_job_start() -> None:
    assert steps_until_started(Limits(reserve=False)) is None
    assert steps_until_started(Limits(reserve=False, patience=50.0)) == 13
    assert steps_until_started(Limits(patience=50.0)) == steps_until_started(Limits()) == 2


class Newest(Policy):
    """The opposite of fair: the newest first."""

    def key(self, job: Candidate) -> float:
        """Minus the time of entry."""
        return -job.queued


def test_patience_bounds_a_wait_under_any_policy() -> None:
    bench = Bench(Newest(), limits=Limits(patience=100.0))
    bench.submit("first", "wide")
    bench.submit("old", "wide")
    for number in range(40):
        bench.wait(1.0)
        bench.submit(f"w{number}", "wide")
        if number % 10 == 9:
            bench.finish(*bench.running)
    assert not any(job.startswith("old") for job in bench.starts())
    bench.wait(60.0)
    bench.finish(*bench.running)
    assert bench.running == ["old/pre#1"]


def test_profiles_corrected_by_runs_hold_for_what_waits_already() -> None:
    bench = Bench(Fcfs())
    bench.submit("w", "wide")
    bench.submit("a", "heavy")
    bench.submit("b", "heavy")
    bench.scheduler.finished(0.0, "w/pre#1")
    bench.decide()
    bench.scheduler.finished(0.0, "w/on#2")
    bench.decide()
    assert bench.running == ["a/pre#1"]
    profiles = table()
    assert profiles.rows() == bench.scheduler.profiles.rows()
    bench.scheduler.finished(4.0, "a/pre#1", Usage(20.0, 3 * GIB))
    rows = {(row["model"], row["phase"]): row["seconds"] for row in bench.scheduler.profiles.rows()}
    assert rows["heavy", "pre"] == 12.0


def test_priority_lets_short_jobs_pass_until_age_weighs_more() -> None:
    for beta, first in ((0.0, "s"), (1.0, "s"), (10.0, "w2")):
        profiles = table()
        profiles.set(Key("quick", "fss", 1, Phase.PRE), Demand(4, GIB, 1.0))
        bench = Bench(Priority(beta), profiles=profiles)
        bench.submit("w1", "wide")
        bench.submit("w2", "wide")
        bench.wait(5.0)
        bench.submit("s", "quick")
        bench.fail("w1/pre#1")
        assert bench.running == [f"{first}/pre#1"], beta
