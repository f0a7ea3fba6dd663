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
    testbed = bench()
    assert testbed.starts(testbed.submit("b", client="bob")) == []
    assert testbed.starts(testbed.submit("a")) == ["a/pre#1"]
    testbed.finish("a/pre#1")
    testbed.finish("a/on#2")
    assert testbed.running == []
    testbed.scheduler.client_listens(testbed.now, "bob", True)
    assert testbed.starts(testbed.decide()) == ["b/pre#1"]


def test_what_waits_for_a_client_that_has_left_is_cancelled() -> None:
    testbed = bench()
    testbed.submit("b1", client="bob")
    testbed.submit("nb", client="bob")
    testbed.wait(20.0)
    testbed.submit("b2", client="bob")
    assert testbed.scheduler.next_event_at() == 30.0
    assert not testbed.outcomes
    testbed.wait(10.0)
    assert testbed.outcomes == {"b1": Outcome.CANCELLED, "nb": Outcome.CANCELLED}
    assert testbed.scheduler.next_event_at() == 50.0
    testbed.wait(20.0)
    assert testbed.outcomes["b2"] is Outcome.CANCELLED
    assert testbed.scheduler.next_event_at() is None


def test_a_client_that_comes_back_in_time_finds_its_jobs() -> None:
    testbed = bench()
    testbed.submit("a1")
    testbed.submit("a2")
    testbed.scheduler.client_listens(testbed.now, "alice", False)
    # Its first job runs with it, for longer than the service waits: it has not left.
    testbed.wait(100.0)
    assert not testbed.outcomes
    testbed.fail("a1/pre#1")
    testbed.wait(29.0)
    testbed.scheduler.client_listens(testbed.now, "alice", True)
    assert testbed.starts(testbed.decide()) == ["a2/pre#1"]
    testbed.scheduler.client_listens(testbed.now, "alice", False)
    testbed.fail("a2/pre#1")
    testbed.submit("a3")
    testbed.wait(30.0)
    assert testbed.outcomes["a3"] is Outcome.CANCELLED


def test_material_of_a_client_that_has_left_stays() -> None:
    testbed = bench()
    testbed.submit("n")
    testbed.finish("n/pre#1")
    testbed.scheduler.client_listens(testbed.now, "alice", False)
    testbed.wait(100.0)
    assert testbed.outcomes == {"n": Outcome.DONE}
    testbed.scheduler.client_listens(testbed.now, "alice", True)
    testbed.submit("a", to="n")
    assert testbed.running == ["a/on#1"]


def test_without_the_limit_clients_are_always_there() -> None:
    testbed = Bench(Fcfs(), ONE_CORE)
    testbed.submit("b", client="bob")
    testbed.scheduler.client_listens(0.0, "bob", False)
    testbed.wait(1000.0)
    assert testbed.starts() == ["b/pre#1"]
    assert not testbed.outcomes


def test_a_session_is_there_by_itself() -> None:
    testbed = bench()
    keys = Submission("k", "bob", "small", "fss", notice=True, only=Phase.PRE, machine="here")
    testbed.scheduler.submit(testbed.now, keys)
    assert testbed.starts(testbed.decide()) == ["k/pre#1"]
    testbed.wait(59.0)
    assert not testbed.outcomes


def seconds(policy: Policy, limits: Limits, abandoned: int, *, listens: bool = False) -> float:
    """How long alice waits for a prediction on one core after bob asked for many and never comes,
    in simulated seconds: a job that starts for bob fails when his grace is over."""
    scheduler = Scheduler(ONE_CORE, table(), policy, limits)
    scheduler.client_listens(0.0, "alice", True)
    scheduler.client_listens(0.0, "bob", listens)
    for number in range(abandoned):
        scheduler.submit(0.0, Submission(f"b{number}", "bob", "small", "fss"))
    ends: list[tuple[float, str, str]] = []
    stops: set[str] = set()
    now, has_asked, start = 0.0, False, 1.0
    while True:
        for action in scheduler.decide(now):
            if isinstance(action, Start):
                duration = {"pre": 10.0, "on": 4.0}[str(action.phase)]
                duration = GRACE if action.client == "bob" else duration
                heapq.heappush(ends, (now + duration, action.client, action.job))
            elif isinstance(action, Stop):
                stops.add(action.job)
        if not has_asked and now >= start:
            scheduler.submit(now, Submission("a", "alice", "small", "fss"))
            has_asked = True
            continue
        due = [
            event for event in (scheduler.next_event_at(), ends[0][0] if ends else None) if event
        ]
        now = max(now, min(due)) if has_asked else max(now, min([start, *due]))
        while ends and ends[0][0] <= now:
            _, client, job = heapq.heappop(ends)
            if client == "bob":
                scheduler.failed(now, job, "the client did not come in time")
            else:
                scheduler.finished(now, job)
                if job.startswith("a/on"):
                    return now - start


@pytest.mark.parametrize("name", ["fair+priority", "fcfs", "priority"])
def test_fifty_abandoned_requests_delay_nobody(name: str, figures: list[str]) -> None:
    alone = seconds(named(name), WATCHED, 0)
    with_abandoned = seconds(named(name), WATCHED, 50)
    assert with_abandoned == alone == 14.0
    # The control: the same policy where clients are taken to be there.
    stalled = seconds(named("fcfs"), Limits(), 50)
    assert stalled > 50 * GRACE
    figures.append(
        f"50 abandoned requests: {with_abandoned:g} s; without the rule {stalled:g} s ({name})"
    )


def test_a_client_that_listens_and_never_comes_delays_others_by_one_grace() -> None:
    """It has the core when the other asks, and then waits its turn."""
    with_abandoned = seconds(named("fair+priority"), WATCHED, 50, listens=True)
    assert with_abandoned <= 14.0 + GRACE
    # The control: in the order of arrival the other waits for all of them.
    assert seconds(Fcfs(), WATCHED, 50, listens=True) > 50 * GRACE


def lapse(testbed: Bench, *jobs: str) -> None:
    """Bob was told to come to jobs and did not."""
    for job in jobs:
        testbed.scheduler.client_lapsed(testbed.now, "bob")
        testbed.scheduler.failed(testbed.now, job, "the client did not come in time")
    testbed.decide()


def crowded() -> Bench:
    """Four cores; bob listens and has asked for many, alice listens."""
    testbed = Bench(Fcfs(), limits=WATCHED)
    for client in ("alice", "bob"):
        testbed.scheduler.client_listens(0.0, client, True)
    for number in range(12):
        testbed.submit(f"b{number}", client="bob")
    return testbed


def test_a_client_that_did_not_come_has_one_job_at_a_time_after_all_others() -> None:
    testbed = crowded()
    first = testbed.running
    assert len(first) == 4
    testbed.submit("a")
    lapse(testbed, *first)
    assert len(testbed.running) == 2
    assert "a/pre#1" in testbed.running
    # Others go first, although bob asked before.
    (bobs,) = (job for job in testbed.running if job != "a/pre#1")
    for name in ("a2", "a3", "a4", "a5"):
        testbed.submit(name)
    lapse(testbed, bobs)
    assert sorted(job[0] for job in testbed.running) == ["a"] * 4
    # The control: jobs that end otherwise leave four to bob, before alice.
    testbed = crowded()
    testbed.submit("a")
    for job in testbed.running:
        testbed.fail(job)
    assert [job[0] for job in testbed.running] == ["b"] * 4


def test_a_client_that_comes_again_is_served_as_before() -> None:
    testbed = crowded()
    lapse(testbed, *testbed.running)
    (job,) = testbed.running
    assert testbed.scheduler.lapses("bob") == 4
    testbed.finish(job)
    assert testbed.scheduler.lapses("bob") == 0
    assert len(testbed.running) == 4


def test_lapses_are_remembered_of_a_bounded_number_of_clients() -> None:
    testbed = Bench(Fcfs(), limits=WATCHED)
    for number in range(3 * KEPT):
        testbed.scheduler.client_lapsed(0.0, f"c{number}")
    remembered = [testbed.scheduler.lapses(f"c{number}") for number in range(3 * KEPT)]
    assert sum(remembered) == KEPT
    assert remembered[-1] == 1


@pytest.mark.parametrize("clients", [1, 5])
def test_many_requests_of_others_delay_a_client_by_a_job_of_each(clients: int) -> None:
    testbed = Bench(Fair(named("priority")), ONE_CORE, WATCHED)
    for client in range(clients):
        testbed.scheduler.client_listens(0.0, f"c{client}", True)
        for number in range(50):
            testbed.submit(f"c{client}-{number}", client=f"c{client}")
    testbed.scheduler.client_listens(0.0, "alice", True)
    testbed.submit("a")
    for _ in range(4 * clients):
        testbed.now += 10.0
        testbed.finish(*testbed.running)
        if testbed.outcomes.get("a") is Outcome.DONE:
            break
    assert testbed.outcomes.get("a") is Outcome.DONE
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
    assert [action.request for action in bench.decide() if isinstance(action, Start)] == ["r0"]

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
    assert [action.request for action in bench.decide() if isinstance(action, Start)] == ["r0"]
