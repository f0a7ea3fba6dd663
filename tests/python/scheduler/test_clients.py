"""Clients that do not come: nobody else waits for them."""

from __future__ import annotations

import heapq

import pytest
from tests.python.scheduler.bench import Bench, table

from privet.scheduler import (
    GIB,
    Fair,
    Fcfs,
    Limits,
    Machine,
    Outcome,
    Phase,
    Policy,
    Scheduler,
    Start,
    Stop,
    Submission,
    named,
)
from privet.scheduler.clients import KEPT
from privet.scheduler.queues import Queues

ONE_CORE = (Machine("here", 1, 8 * GIB),)
WATCHED = Limits(absent_seconds=30.0)
GRACE = 15.0
"""Seconds that a service gives a client to come when its job has started."""


def bench(policy: Policy | None = None) -> Bench:
    """Two clients on one core: alice listens, bob does not."""
    setup = Bench(policy or Fcfs(), ONE_CORE, WATCHED)
    setup.scheduler.client_listens(0.0, "alice", True)
    return setup


def test_a_job_starts_only_while_its_client_listens() -> None:
    it = bench()
    assert it.starts(it.submit("b", client="bob")) == []
    assert it.starts(it.submit("a")) == ["a/pre#1"]
    it.finish("a/pre#1")
    it.finish("a/on#2")
    assert it.running == []
    it.scheduler.client_listens(it.now, "bob", True)
    assert it.starts(it.decide()) == ["b/pre#1"]


def test_what_waits_for_a_client_that_has_left_is_cancelled() -> None:
    it = bench()
    it.submit("b1", client="bob")
    it.submit("nb", client="bob")
    it.wait(20.0)
    it.submit("b2", client="bob")
    assert it.scheduler.next_event_at() == 30.0
    assert not it.outcomes
    it.wait(10.0)
    assert it.outcomes == {"b1": Outcome.CANCELLED, "nb": Outcome.CANCELLED}
    assert it.scheduler.next_event_at() == 50.0
    it.wait(20.0)
    assert it.outcomes["b2"] is Outcome.CANCELLED
    assert it.scheduler.next_event_at() is None


def test_a_client_that_comes_back_in_time_finds_its_jobs() -> None:
    it = bench()
    it.submit("a1")
    it.submit("a2")
    it.scheduler.client_listens(it.now, "alice", False)
    # Its first job runs with it, for longer than the service waits: it has not left.
    it.wait(100.0)
    assert not it.outcomes
    it.fail("a1/pre#1")
    it.wait(29.0)
    it.scheduler.client_listens(it.now, "alice", True)
    assert it.starts(it.decide()) == ["a2/pre#1"]
    it.scheduler.client_listens(it.now, "alice", False)
    it.fail("a2/pre#1")
    it.submit("a3")
    it.wait(30.0)
    assert it.outcomes["a3"] is Outcome.CANCELLED


def test_material_of_a_client_that_has_left_stays() -> None:
    it = bench()
    it.submit("n")
    it.finish("n/pre#1")
    it.scheduler.client_listens(it.now, "alice", False)
    it.wait(100.0)
    assert it.outcomes == {"n": Outcome.DONE}
    it.scheduler.client_listens(it.now, "alice", True)
    it.submit("a", to="n")
    assert it.running == ["a/on#1"]


def test_without_the_limit_clients_are_always_there() -> None:
    it = Bench(Fcfs(), ONE_CORE)
    it.submit("b", client="bob")
    it.scheduler.client_listens(0.0, "bob", False)
    it.wait(1000.0)
    assert it.starts() == ["b/pre#1"]
    assert not it.outcomes


def test_a_session_is_there_by_itself() -> None:
    it = bench()
    keys = Submission("k", "bob", "small", "fss", notice=True, only=Phase.PRE, machine="here")
    it.scheduler.submit(it.now, keys)
    assert it.starts(it.decide()) == ["k/pre#1"]
    it.wait(59.0)
    assert not it.outcomes


def seconds(policy: Policy, limits: Limits, abandoned: int, *, listens: bool = False) -> float:
    """How long alice waits for a prediction on one core after bob asked for many and never comes,
    in simulated seconds: a job that starts for bob fails when his grace is over."""
    scheduler = Scheduler(ONE_CORE, table(), policy, limits)
    scheduler.client_listens(0.0, "alice", True)
    scheduler.client_listens(0.0, "bob", listens)
    for number in range(abandoned):
        scheduler.submit(0.0, Submission(f"b{number}", "bob", "small", "fss"))
    ends: list[tuple[float, str, str]] = []
    stopped: set[str] = set()
    now, asked, began = 0.0, False, 1.0
    while True:
        for action in scheduler.decide(now):
            if isinstance(action, Start):
                took = {"pre": 10.0, "on": 4.0}[str(action.phase)]
                took = GRACE if action.client == "bob" else took
                heapq.heappush(ends, (now + took, action.client, action.job))
            elif isinstance(action, Stop):
                stopped.add(action.job)
        if not asked and now >= began:
            scheduler.submit(now, Submission("a", "alice", "small", "fss"))
            asked = True
            continue
        due = [it for it in (scheduler.next_event_at(), ends[0][0] if ends else None) if it]
        now = max(now, min(due)) if asked else max(now, min([began, *due]))
        while ends and ends[0][0] <= now:
            _, client, job = heapq.heappop(ends)
            if client == "bob":
                scheduler.failed(now, job, "the client did not come in time")
            else:
                scheduler.finished(now, job)
                if job.startswith("a/on"):
                    return now - began


@pytest.mark.parametrize("name", ["fair+priority", "fcfs", "priority"])
def test_fifty_abandoned_requests_delay_nobody(name: str, figures: list[str]) -> None:
    alone = seconds(named(name), WATCHED, 0)
    beside = seconds(named(name), WATCHED, 50)
    assert beside == alone == 14.0
    # The control: the same policy where clients are taken to be there.
    stalled = seconds(named("fcfs"), Limits(), 50)
    assert stalled > 50 * GRACE
    figures.append(f"50 abandoned requests: {beside:g} s; without the rule {stalled:g} s ({name})")


def test_a_client_that_listens_and_never_comes_delays_others_by_one_grace() -> None:
    """It has the core when the other asks, and then waits its turn."""
    beside = seconds(named("fair+priority"), WATCHED, 50, listens=True)
    assert beside <= 14.0 + GRACE
    # The control: in the order of arrival the other waits for all of them.
    assert seconds(Fcfs(), WATCHED, 50, listens=True) > 50 * GRACE


def lapse(it: Bench, *jobs: str) -> None:
    """Bob was told to come to jobs and did not."""
    for job in jobs:
        it.scheduler.client_lapsed(it.now, "bob")
        it.scheduler.failed(it.now, job, "the client did not come in time")
    it.decide()


def crowded() -> Bench:
    """Four cores; bob listens and has asked for many, alice listens."""
    it = Bench(Fcfs(), limits=WATCHED)
    for client in ("alice", "bob"):
        it.scheduler.client_listens(0.0, client, True)
    for number in range(12):
        it.submit(f"b{number}", client="bob")
    return it


def test_a_client_that_did_not_come_has_one_job_at_a_time_after_all_others() -> None:
    it = crowded()
    first = it.running
    assert len(first) == 4
    it.submit("a")
    lapse(it, *first)
    assert len(it.running) == 2
    assert "a/pre#1" in it.running
    # Others go first, although bob asked before.
    (bobs,) = (job for job in it.running if job != "a/pre#1")
    for name in ("a2", "a3", "a4", "a5"):
        it.submit(name)
    lapse(it, bobs)
    assert sorted(job[0] for job in it.running) == ["a"] * 4
    # The control: jobs that end otherwise leave four to bob, before alice.
    it = crowded()
    it.submit("a")
    for job in it.running:
        it.fail(job)
    assert [job[0] for job in it.running] == ["b"] * 4


def test_a_client_that_comes_again_is_served_as_before() -> None:
    it = crowded()
    lapse(it, *it.running)
    (job,) = it.running
    assert it.scheduler.lapses("bob") == 4
    it.finish(job)
    assert it.scheduler.lapses("bob") == 0
    assert len(it.running) == 4


def test_lapses_are_remembered_of_a_bounded_number_of_clients() -> None:
    it = Bench(Fcfs(), limits=WATCHED)
    for number in range(3 * KEPT):
        it.scheduler.client_lapsed(0.0, f"c{number}")
    remembered = [it.scheduler.lapses(f"c{number}") for number in range(3 * KEPT)]
    assert sum(remembered) == KEPT
    assert remembered[-1] == 1


@pytest.mark.parametrize("clients", [1, 5])
def test_many_requests_of_others_delay_a_client_by_a_job_of_each(clients: int) -> None:
    it = Bench(Fair(named("priority")), ONE_CORE, WATCHED)
    for client in range(clients):
        it.scheduler.client_listens(0.0, f"c{client}", True)
        for number in range(50):
            it.submit(f"c{client}-{number}", client=f"c{client}")
    it.scheduler.client_listens(0.0, "alice", True)
    it.submit("a")
    for _ in range(4 * clients):
        it.now += 10.0
        it.finish(*it.running)
        if it.outcomes.get("a") is Outcome.DONE:
            break
    assert it.outcomes.get("a") is Outcome.DONE
    # The control: by arrival, it waits for all.
    late = Bench(Fcfs(), ONE_CORE)
    for number in range(50):
        late.submit(f"c-{number}", client="c")
    late.submit("a")
    for _ in range(50):
        late.finish(*late.running)
    assert "a" not in late.outcomes


def test_no_client_is_looked_at_while_nothing_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call of a client makes a decision: it must not cost more the more clients wait."""
    bench = Bench(named("fair+priority"), ONE_CORE, WATCHED)
    for client in map(str, range(10)):
        bench.scheduler.client_listens(0.0, client, True)
        bench.scheduler.submit(0.0, Submission(f"r{client}", client, "small", "fss"))
    assert [it.request for it in bench.decide() if isinstance(it, Start)] == ["r0"]

    def lanes(_queues: Queues) -> None:
        raise AssertionError("a lane was looked at")

    with monkeypatch.context() as patch:
        patch.setattr(Queues, "lanes", lanes)
        bench.scheduler.client_listens(0.0, "9", False)
        bench.scheduler.client_listens(0.0, "9", True)
        assert bench.decide() == []
        assert bench.scheduler.next_event_at() is not None
        bench.scheduler.finished(0.0, "r0/pre#1")
        with pytest.raises(AssertionError, match="looked at"):
            bench.decide()
    assert [it.request for it in bench.decide() if isinstance(it, Start)] == ["r0"]
