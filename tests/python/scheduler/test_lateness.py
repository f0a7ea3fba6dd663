"""Clients that seem to listen and let their jobs wait: stopped, or cut off."""

from __future__ import annotations

import heapq
import itertools

import pytest
from tests.python.scheduler.bench import Bench, table

from privet.scheduler import (
    GIB,
    Action,
    Fcfs,
    Limits,
    Machine,
    Outcome,
    Phase,
    Probe,
    Scheduler,
    Start,
    Submission,
    TakeBack,
    named,
)
from privet.scheduler.lateness import MOST_ASKED

ONE_CORE = (Machine("here", 1, 8 * GIB),)
WATCHED = Limits(absent_seconds=30.0)
ANSWER = WATCHED.answer_seconds
GRACE = 15.0
"""Seconds that a service gives a client to come when its job has started."""

LATE = 1.5
"""Seconds after which a service says that a client is late."""

POLICIES = ("fair+priority", "fcfs", "priority")


def seconds(policy: str, count: int, cores: int = 1, *, reported: bool = True) -> float:
    """How long alice waits for a prediction where so many clients asked, began to listen and were
    stopped a second before her, in simulated seconds. A stopped client neither comes to its job nor
    calls; `reported`, the scheduler hears that it is late."""
    machine = Machine("here", cores, 8 * GIB)
    scheduler = Scheduler((machine,), table(), named(policy), WATCHED)
    turns = itertools.count()
    events: list[tuple[float, int, str, str]] = [(1.0, next(turns), "ask", "")]
    for number in range(count):
        scheduler.client_listens(0.0, f"c{number}", True)
        scheduler.submit(0.0, Submission(f"r{number}", f"c{number}", "small", "fss"))

    def later(at: float, kind: str, job: str) -> None:
        heapq.heappush(events, (at, next(turns), kind, job))

    now, over = 0.0, set[str]()
    while True:
        for action in scheduler.decide(now):
            match action:
                case Start(job=job, client="alice", phase=phase):
                    later(now + {"pre": 10.0, "on": 4.0}[str(phase)], "finish", job)
                case Start(job=job):
                    later(now + LATE, "late", job)
                    later(now + GRACE, "absent", job)
                case Probe(client="alice"):
                    later(now, "call", "")
                case TakeBack(job=job):
                    later(now, "back", job)
        due = scheduler.next_event_at()
        now = min(events[0][0], events[0][0] if due is None else due)
        while events and events[0][0] <= now:
            _, _, kind, job = heapq.heappop(events)
            match kind:
                case "ask":
                    scheduler.client_listens(now, "alice", True)
                    scheduler.submit(now, Submission("a", "alice", "small", "fss"))
                case "call":
                    scheduler.client_polled(now, "alice")
                case "finish":
                    scheduler.finished(now, job)
                    if job.startswith("a/on"):
                        return now - 1.0
                case "late" if reported and job not in over:
                    scheduler.client_late(now, job)
                case "absent" | "back" if job not in over:
                    over.add(job)
                    if kind == "absent":
                        scheduler.client_lapsed(now, job.partition("/")[0].replace("r", "c"))
                    scheduler.failed(now, job, "it did not come", rerun=kind == "back")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("cores", [1, 4])
def test_fifty_stopped_clients_delay_another_by_a_moment(
    policy: str, cores: int, figures: list[str]
) -> None:
    alone = seconds(policy, 0, cores)
    assert alone == 14.0
    crowded = seconds(policy, 50, cores)
    assert crowded <= alone + LATE + ANSWER
    # The control: nobody tells the scheduler that they are late.
    stalled = seconds(policy, 50, cores, reported=False)
    assert stalled > 50 // cores * GRACE
    figures.append(
        f"beside 50 stopped clients, {cores} cores: {crowded:g} s; without the rule {stalled:g} s "
        f"({policy})"
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_more_stopped_clients_than_are_asked_at_a_time(policy: str) -> None:
    alone = seconds(policy, 0)
    assert seconds(policy, 2 * MOST_ASKED + 50) <= alone + 3 * (LATE + ANSWER)


def test_no_job_is_taken_back_for_one_that_could_not_have_its_place() -> None:
    machines = (Machine("here", 1, 8 * GIB), Machine("there", 1, 8 * GIB, reserved=True))
    bench = Bench(Fcfs(), machines, WATCHED)
    bench.scheduler.client_listens(0.0, "bob", True)
    bench.submit("b", client="bob")
    for number in range(2):
        bench.scheduler.submit(
            bench.now,
            Submission(
                f"k{number}", "c", "small", "fss", notice=True, only=Phase.PRE, machine="there"
            ),
        )
    bench.decide()
    bench.wait(LATE)
    bench.scheduler.client_late(bench.now, "b/pre#1")
    assert not [action for action in bench.wait(GRACE) if isinstance(action, TakeBack)]


def two(clients: int = 1) -> Bench:
    """One core, which a job of bob's has; others who listen wait since a second later."""
    bench = Bench(Fcfs(), ONE_CORE, WATCHED)
    for client in ["bob", *(f"c{number}" for number in range(clients))]:
        bench.scheduler.client_listens(bench.now, client, True)
        bench.submit("b" if client == "bob" else client, client=client)
    assert bench.running == ["b/pre#1"]
    bench.wait(LATE)
    bench.scheduler.client_late(bench.now, "b/pre#1")
    return bench


def back(job: str) -> list[Action]:
    """Bob is asked, too: if he is there he says so, and his job may start again."""
    return [Probe("bob"), TakeBack(job)]


def probed(bench: Bench) -> list[str]:
    return [action.client for action in bench.actions if isinstance(action, Probe)]


def test_a_job_is_taken_back_once_another_client_has_called() -> None:
    bench = two()
    assert bench.decide() == [Probe("c0")]
    assert bench.scheduler.next_event_at() == LATE + ANSWER
    bench.wait(0.5)
    bench.scheduler.client_polled(bench.now, "c0")
    assert bench.wait(ANSWER - 0.75) == []
    assert bench.wait(0.25) == back("b/pre#1")
    assert bench.wait(ANSWER) == [], "once"
    # It waits again; its client has to call before it starts.
    bench.scheduler.failed(bench.now, "b/pre#1", "it did not come", rerun=True)
    assert bench.starts(bench.decide()) == ["c0/pre#1"]
    bench.finish("c0/pre#1")
    bench.finish("c0/on#2")
    assert bench.running == []
    assert bench.scheduler.client_polled(bench.now, "bob")
    assert bench.starts(bench.decide()) == ["b/pre#2"]
    bench.finish("b/pre#2")
    bench.finish("b/on#3")
    assert bench.outcomes == {"c0": Outcome.DONE, "b": Outcome.DONE}


def test_a_client_from_which_a_job_was_taken_back_has_its_whole_time_next() -> None:
    """So a slow client is served in the end; one that calls and does not come lapses then."""
    bench = two()
    bench.decide()
    bench.scheduler.client_polled(bench.now, "c0")
    assert bench.wait(ANSWER) == back("b/pre#1")
    bench.scheduler.failed(bench.now, "b/pre#1", "it did not come", rerun=True)
    assert bench.starts(bench.decide()) == ["c0/pre#1"]
    bench.scheduler.client_polled(bench.now, "bob")
    bench.finish("c0/pre#1")
    bench.finish("c0/on#2")
    assert bench.running == ["b/pre#2"]
    bench.submit("again", client="c0")

    def late(job: str) -> list[Action]:
        bench.now += LATE
        bench.scheduler.client_late(bench.now, job)
        bench.decide()
        bench.scheduler.client_polled(bench.now, "c0")
        return bench.wait(GRACE - LATE)

    assert late("b/pre#2") == []
    # No more of this request is taken back: it would fail in the end.
    bench.finish("b/pre#2")
    assert bench.running == ["b/on#3"]
    assert late("b/on#3") == []
    bench.finish("b/on#3")
    # With the next request all is as before.
    bench.submit("more", client="bob")
    bench.finish("again/pre#1")
    bench.finish("again/on#2")
    bench.submit("third", client="c0")
    assert bench.running == ["more/pre#1"]
    assert late("more/pre#1") == back("more/pre#1")


def test_a_client_that_calls_or_comes_keeps_its_job() -> None:
    for comes in (False, True):
        bench = two()
        bench.decide()
        if comes:
            bench.scheduler.client_came(bench.now, "b/pre#1")
        else:
            bench.scheduler.client_polled(bench.now, "bob")
        bench.scheduler.client_polled(bench.now, "c0")
        assert bench.wait(GRACE) == []
    # Nor is one late that has called since its job started.
    bench = Bench(Fcfs(), ONE_CORE, WATCHED)
    bench.scheduler.client_listens(0.0, "bob", True)
    bench.submit("b", client="bob")
    bench.now = LATE
    bench.scheduler.client_polled(1.0, "bob")
    bench.scheduler.client_late(LATE, "b/pre#1")
    bench.scheduler.client_listens(LATE, "alice", True)
    bench.submit("a")
    assert bench.wait(GRACE) == []


def test_a_late_client_has_its_whole_time_while_nobody_else_is_there() -> None:
    bench = two(clients=0)
    assert bench.wait(GRACE - LATE - ANSWER) == []
    # Whoever comes then need not wait any more.
    bench.scheduler.client_listens(bench.now, "alice", True)
    assert bench.submit("a") == back("b/pre#1")
    # Nor do clients help that are stopped as well.
    bench = two(clients=3)
    assert len(bench.decide()) == 3
    assert bench.wait(ANSWER) == []
    assert bench.scheduler.next_event_at() == LATE + ANSWER + 30.0
    bench.scheduler.client_polled(bench.now, "c1")
    assert bench.decide() == back("b/pre#1")


def test_the_jobs_of_silent_clients_are_cancelled_in_the_end() -> None:
    bench = two(clients=2)
    bench.decide()
    bench.wait(ANSWER)
    # The call of one that is stopped ends when its time is over: that shows nothing.
    bench.wait(20.0)
    bench.scheduler.client_listens(bench.now, "c0", False)
    bench.scheduler.client_polled(bench.now, "c1")
    bench.wait(10.0)
    assert bench.outcomes == {"c0": Outcome.CANCELLED}


def test_one_late_job_has_a_bounded_number_of_clients_asked() -> None:
    bench = two(clients=3 * MOST_ASKED)
    bench.decide()
    assert len(set(probed(bench))) == MOST_ASKED
    bench.wait(ANSWER / 2)
    assert len(probed(bench)) == MOST_ASKED
    # Those who are silent make room for others.
    bench.wait(ANSWER / 2)
    assert len(set(probed(bench))) == len(probed(bench)) == 2 * MOST_ASKED


def test_who_waits_is_asked_no_more_often_than_it_can_answer() -> None:
    bench = Bench(Fcfs(), (Machine("here", 3, 8 * GIB),), WATCHED)
    for client in ("one", "two", "three", "alice"):
        bench.scheduler.client_listens(bench.now, client, True)
        bench.submit(client, client=client)
    bench.wait(LATE)
    for client in ("one", "two", "three"):
        bench.scheduler.client_late(bench.now, f"{client}/pre#1")
        bench.decide()
        bench.wait(ANSWER / 10)
        bench.scheduler.client_polled(bench.now, "alice")
    assert probed(bench) == ["alice"]


def test_a_session_waits_without_calls() -> None:
    bench = two(clients=0)
    bench.scheduler.submit(
        bench.now, Submission("k", "c", "small", "fss", notice=True, only=Phase.PRE, machine="here")
    )
    bench.decide()
    assert bench.wait(ANSWER) == back("b/pre#1")


def test_without_the_limit_nobody_is_late() -> None:
    bench = Bench(Fcfs(), ONE_CORE)
    bench.submit("b", client="bob")
    bench.submit("a")
    bench.scheduler.client_late(0.0, "b/pre#1")
    assert bench.wait(GRACE) == []
