"""A machine is taken out while others serve: nothing accepted is lost, and nothing new comes."""

from __future__ import annotations

import pytest
from tests.python.scheduler.bench import Bench
from tests.python.scheduler.test_machines import TWO

from privet.errors import Misuse
from privet.scheduler import (
    GIB,
    Drained,
    JobStream,
    Machine,
    MaterialGone,
    Outcome,
    named,
)

STREAM = JobStream("alice", "small", "fss", 1)


def test_a_drained_machine_ends_its_jobs_and_goes() -> None:
    bench = Bench(machines=TWO)
    bench.submit("a")
    bench.submit("b")
    assert bench.places() == {"a/pre#1": "one", "b/pre#1": "two"}
    bench.scheduler.drain_machine(0.0, "two")
    for name in ("c", "d", "e", "f"):
        bench.submit(name)
    assert {bench.places()[f"{name}/pre#1"] for name in "cde"} == {"one"}
    assert "f/pre#1" not in bench.running, "it waits, though three cores of the other are free"
    bench.finish("b/pre#1")
    assert bench.places()["b/on#2"] == "two", "its material lies there"
    assert bench.finish("b/on#2")[-1] == Drained("two")
    assert bench.outcomes == {"b": Outcome.DONE}
    assert not bench.scheduler.keep_machine(0.0, "two"), "it is gone"
    bench.finish("a/pre#1", "c/pre#1", "d/pre#1", "e/pre#1")
    while bench.running:
        bench.finish(bench.running[0])
    assert set(bench.outcomes.values()) == {Outcome.DONE}
    assert len(bench.outcomes) == 6


def test_material_on_a_drained_machine_is_left_and_offered_again() -> None:
    bench = Bench(machines=TWO)
    bench.scheduler.stock_found(0.0, "old", STREAM, "two")
    bench.scheduler.drain_machine(0.0, "two")
    assert bench.decide() == [MaterialGone("old", "two", "machine drained"), Drained("two")]
    assert bench.starts(bench.submit("a")) == ["a/pre#1"]
    bench.scheduler.machine_joined(0.0, TWO[1])
    bench.scheduler.stock_found(0.0, "old", STREAM, "two")
    assert bench.starts(bench.submit("b")) == ["b/on#1"]


def test_a_notice_with_material_on_a_drained_machine_ends_and_its_request_is_served() -> None:
    bench = Bench(machines=TWO)
    bench.submit("a")
    bench.submit("n")
    assert bench.places()["n/pre#1"] == "two"
    bench.scheduler.drain_machine(0.0, "two")
    assert bench.finish("n/pre#1")[-1] == Drained("two")
    assert bench.gone() == [("n/pre#1", "machine drained")]
    assert bench.starts(bench.submit("r", to="n")) == ["r/pre#1"]
    assert bench.places()["r/pre#1"] == "one"


def test_material_of_a_cancelled_request_on_a_drained_machine_is_not_used() -> None:
    bench = Bench(machines=TWO)
    for name in ("a", "b"):
        bench.submit(name)
    assert bench.places()["b/pre#1"] == "two"
    bench.scheduler.drain_machine(0.0, "two")
    bench.scheduler.cancel(0.0, "b")
    bench.decide()
    assert bench.finish("b/pre#1")[-1] == Drained("two"), "it had done its work already"
    assert bench.gone() == [("b/pre#1", "machine drained")]
    assert bench.starts(bench.submit("c")) == ["c/pre#1"]


def test_jobs_ahead_on_a_drained_machine_are_stopped() -> None:
    bench = Bench(named("ahead+fcfs"), machines=TWO)
    bench.scheduler.client_present(0.0, "alice", True)
    for number in range(4):
        bench.submit(f"r{number}")
        bench.wait(1.0)
    while not any(job.startswith("ahead") for job in bench.running):
        bench.finish(bench.running[0])
    machine = bench.places()[bench.running[-1]]
    bench.scheduler.drain_machine(bench.now, machine)
    bench.decide()
    stops = bench.stops()
    assert stops
    assert all(job.startswith("ahead") and bench.places()[job] == machine for job in stops)
    for job in stops:
        bench.fail(job)
    while (jobs := [name for name in bench.running if bench.places()[name] == machine]) != []:
        assert not jobs[0].startswith("ahead") or jobs[0] not in stops
        bench.finish(jobs[0])
    assert Drained(machine) in bench.actions


def test_a_drain_can_be_taken_back() -> None:
    bench = Bench(machines=TWO)
    bench.submit("a")
    bench.submit("b")
    bench.scheduler.drain_machine(0.0, "two")
    assert bench.scheduler.drains("two")
    assert not bench.scheduler.keep_machine(0.0, "one"), "nobody drains it"
    assert bench.scheduler.keep_machine(0.0, "two")
    assert not bench.scheduler.drains("two")
    assert not bench.scheduler.keep_machine(0.0, "two")
    bench.finish("b/pre#1")
    assert bench.finish("b/on#2")[-1] != Drained("two")
    bench.submit("c")
    assert bench.places()["c/pre#1"] == "two"


def test_a_machine_that_jobs_need_is_not_drained() -> None:
    bench = Bench(machines=(Machine("one", 4, 3 * GIB), Machine("two", 4, 8 * GIB)))
    bench.scheduler.drain_machine(0.0, "one")
    with pytest.raises(Misuse, match="the only machine that takes jobs"):
        bench.scheduler.drain_machine(0.0, "two")
    bench.scheduler.keep_machine(0.0, "one")
    with pytest.raises(Misuse, match="no machine three"):
        bench.scheduler.drain_machine(0.0, "three")
    bench.submit("a", "heavy")
    bench.submit("b", "heavy")
    assert bench.running == ["a/pre#1"]
    with pytest.raises(
        Misuse, match=r"jobs of heavy wait that need \d+ bytes, which two alone has"
    ):
        bench.scheduler.drain_machine(0.0, "two")
    assert not bench.scheduler.drains("two")


def test_a_reserved_machine_is_not_drained() -> None:
    bench = Bench(machines=(*TWO, Machine("apart", 4, GIB, reserved=True)))
    with pytest.raises(Misuse, match="no machine apart"):
        bench.scheduler.drain_machine(0.0, "apart")


def test_a_drained_machine_may_be_lost_as_any_other() -> None:
    bench = Bench(machines=TWO)
    bench.submit("a")
    bench.submit("b")
    bench.scheduler.drain_machine(0.0, "two")
    bench.scheduler.machine_lost(0.0, "two")
    bench.decide()
    assert bench.places()["b/pre#2"] == "one"
    assert Drained("two") not in bench.actions


def test_room_reserved_on_a_drained_machine_is_reserved_elsewhere() -> None:
    """A wide job first in line has room kept on the machine that is free sooner; when that one is
    taken out, it must not starve behind narrow jobs that come and end on the other."""
    bench = Bench(machines=TWO)
    bench.submit("s0")
    bench.submit("s1", "wide")
    assert bench.places() == {"s0/pre#1": "one", "s1/pre#1": "two"}
    bench.wait(5.0)
    bench.fail("s0/pre#1")
    bench.submit("s2")
    bench.submit("w", "wide")
    bench.wait(1.0)
    bench.scheduler.drain_machine(bench.now, "two")
    bench.decide()
    bench.submit("s3")
    assert bench.running == ["s1/pre#1", "s2/pre#1"], "room is kept for w"
    bench.finish("s2/pre#1")
    bench.finish("s2/on#2")
    assert bench.places()["w/pre#1"] == "one"
