"""Jobs alone: the keys of a session, which keep memory for a lease, and inferences in one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from privet.errors import Misuse
from privet.scheduler import (
    GIB,
    Action,
    Demand,
    Ended,
    Key,
    Limits,
    Machine,
    Outcome,
    Phase,
    Policy,
    Priority,
    Profiles,
    Refused,
    Scheduler,
    Start,
    Stop,
    Submission,
    Usage,
    Why,
)

LEASE = 100.0


def make(policy: Policy | None = None) -> Scheduler:
    """One machine of two cores and 8 GiB; keys take 2 GiB, a request of `large` 7 GiB."""
    table = Profiles()
    table.set(Key("keyed", "ckks", 1, Phase.PRE), Demand(1, 2 * GIB, 1.0))
    table.set(Key("keyed", "ckks", 1, Phase.ON), Demand(2, GIB, 3.0))
    for phase in Phase:
        table.set(Key("large", "gmw", 1, phase), Demand(1, 7 * GIB, 4.0))
    return Scheduler([Machine("here", 2, 8 * GIB)], table, policy, Limits(homeless_seconds=1e6))


def session(id: str) -> Submission:
    """The keys of a session."""
    return Submission(
        id, id, "keyed", "ckks", notice=True, only=Phase.PRE, machine="here", lease=LEASE
    )


def inference(id: str, timeout: float | None = None) -> Submission:
    """An inference in some session."""
    return Submission(id, "alice", "keyed", "ckks", timeout=timeout, only=Phase.ON, machine="here")


def starts(actions: list[Action]) -> list[str]:
    """The jobs that start."""
    return [action.job for action in actions if isinstance(action, Start)]


def test_keys_keep_memory_and_give_cores_back() -> None:
    scheduler = make()
    scheduler.submit(0.0, session("s"))
    assert starts(scheduler.decide(0.0)) == ["s/pre#1"]
    scheduler.park(1.0, "s/pre#1", Usage(1.0))
    (load,) = scheduler.snapshot(1.0).machines
    assert (load.cores_taken, load.memory_taken) == (0, 2 * GIB)
    scheduler.submit(1.0, inference("i"))
    assert starts(scheduler.decide(1.0)) == ["i/on#1"]
    scheduler.finished(2.0, "i/on#1", Usage(1.0))
    scheduler.finished(3.0, "s/pre#1")
    ends = [action for action in scheduler.decide(3.0) if isinstance(action, Ended)]
    assert [(end.id, end.outcome) for end in ends] == [("i", Outcome.DONE), ("s", Outcome.DONE)]
    (load,) = scheduler.snapshot(3.0).machines
    assert (load.cores_taken, load.memory_taken) == (0, 0)
    assert scheduler.snapshot(3.0).counters.material == {}


def test_an_inference_waits_for_cores_in_its_turn() -> None:
    scheduler = make()
    scheduler.submit(0.0, inference("first"))
    scheduler.submit(0.0, inference("second"))
    scheduler.submit(0.0, inference("third", timeout=2.0))
    assert starts(scheduler.decide(0.0)) == ["first/on#1"]
    assert scheduler.snapshot(0.0).ready.length == 2
    assert [action.id for action in scheduler.decide(2.0) if isinstance(action, Ended)] == ["third"]
    scheduler.finished(3.0, "first/on#1")
    assert starts(scheduler.decide(3.0)) == ["second/on#1"]


def test_a_lease_ends_a_session() -> None:
    scheduler = make()
    scheduler.submit(0.0, session("s"))
    scheduler.decide(0.0)
    scheduler.park(1.0, "s/pre#1")
    assert scheduler.next_event_at() == 1.0 + LEASE
    stops = [action.job for action in scheduler.decide(1.0 + LEASE) if isinstance(action, Stop)]
    assert stops == ["s/pre#1"]


def test_a_drain_stops_sessions_and_lets_inferences_end() -> None:
    scheduler = make()
    scheduler.submit(0.0, session("s"))
    scheduler.decide(0.0)
    scheduler.park(1.0, "s/pre#1")
    scheduler.submit(1.0, inference("i"))
    scheduler.decide(1.0)
    scheduler.drain(2.0)
    actions = scheduler.decide(2.0)
    assert [action.job for action in actions if isinstance(action, Stop)] == ["s/pre#1"]
    scheduler.finished(3.0, "i/on#1")
    scheduler.finished(3.0, "s/pre#1")
    outcomes = {
        action.id: action.outcome for action in scheduler.decide(3.0) if isinstance(action, Ended)
    }
    assert outcomes == {"i": Outcome.DONE}
    assert scheduler.drained


def test_what_cannot_fit_is_refused_with_the_figure() -> None:
    scheduler = make()
    assert scheduler.set_aside(0.0, "here", 7 * GIB)
    with pytest.raises(Refused, match=f"need {2 * GIB} bytes.*{GIB}") as excinfo:
        scheduler.submit(0.0, session("s"))
    assert excinfo.value.why is Why.TOO_LARGE
    scheduler.submit(0.0, inference("i"))
    with pytest.raises(Misuse, match="all that jobs have"):
        scheduler.set_aside(0.0, "here", GIB)


def test_what_is_set_aside_waits_for_jobs_that_run() -> None:
    scheduler = make()
    scheduler.submit(0.0, Submission("r", "alice", "large", "gmw"))
    scheduler.decide(0.0)
    assert not scheduler.set_aside(0.0, "here", 2 * GIB)
    assert scheduler.set_aside(0.0, "here", 0) is False
    scheduler.failed(1.0, "r/pre#1", "it broke")
    assert scheduler.set_aside(1.0, "here", 0)


def test_a_session_is_no_notice_to_refer_to() -> None:
    scheduler = make()
    scheduler.submit(0.0, session("s"))
    with pytest.raises(Refused) as excinfo:
        scheduler.submit(0.0, Submission("r", "s", "keyed", "ckks", refers_to="s"))
    assert excinfo.value.why is Why.UNKNOWN_NOTICE


def test_a_reserved_machine_is_for_those_who_name_it() -> None:
    scheduler = make()
    scheduler.machine_joined(0.0, Machine("apart", 4, 16 * GIB, reserved=True))
    for id in ("a", "b", "c"):
        scheduler.submit(0.0, Submission(id, "alice", "large", "gmw"))
    submission = Submission("n", "bob", "keyed", "ckks", only=Phase.ON, machine="apart")
    scheduler.submit(0.0, submission)
    start_actions = [action for action in scheduler.decide(0.0) if isinstance(action, Start)]
    assert {(start.request, start.machine) for start in start_actions} == {
        ("a", "here"),
        ("n", "apart"),
    }
    scheduler.machine_lost(1.0, "here")
    scheduler.decide(1.0)
    with pytest.raises(Refused):
        scheduler.submit(1.0, inference("i"))


@pytest.mark.parametrize("policy", [Policy, Priority])
def test_sessions_that_keep_coming_starve_no_large_job(policy: Callable[[], Policy]) -> None:
    """Sessions stay as long as they may, and more come than fit; one large job among them."""
    scheduler = make(policy())
    resting: dict[str, float] = {}
    start: float | None = None
    for second in range(1000):
        now = float(second)
        if second % 20 == 0:
            scheduler.submit(now, session(f"s{second}"))
        if second == 90:
            scheduler.submit(now, Submission("big", "bob", "large", "gmw"))
        for action in scheduler.decide(now):
            if isinstance(action, Start) and action.request == "big":
                start = now
            elif isinstance(action, Start):
                resting[action.job] = now + 1.0
            elif isinstance(action, Stop):
                scheduler.finished(now, action.job)
        for job, due in list(resting.items()):
            if due <= now:
                scheduler.park(now, job)
                del resting[job]
        if start is not None:
            break
    assert start is not None
    assert start <= 90 + 3 * LEASE


def test_an_inference_without_material_needs_its_client_and_any_machine() -> None:
    table = Profiles()
    table.set(Key("small", "stream", 1, Phase.ON), Demand(1, GIB, 3.0))
    limits = Limits(absent_seconds=10.0, reruns=1)
    scheduler = Scheduler([Machine("here", 1, 8 * GIB)], table, Policy(), limits)

    def submit(id: str, client: str, now: float) -> list[Action]:
        scheduler.submit(now, Submission(id, client, "small", "stream", only=Phase.ON))
        return scheduler.decide(now)

    # Nobody would come: it waits, and is cancelled in the end.
    assert starts(submit("lost", "bob", 0.0)) == []
    assert [action.id for action in scheduler.decide(10.0) if isinstance(action, Ended)] == ["lost"]
    scheduler.client_listens(10.0, "alice", True)
    (start,) = [action for action in submit("r", "alice", 10.0) if isinstance(action, Start)]
    assert (start.phase, start.machine, start.material) == (Phase.ON, "here", None)
    # Its machine is lost: it runs again on another, and a second time it fails.
    scheduler.machine_joined(11.0, Machine("there", 1, 8 * GIB))
    scheduler.machine_lost(11.0, "here")
    (start,) = [action for action in scheduler.decide(11.0) if isinstance(action, Start)]
    assert (start.job, start.machine) == ("r/on#2", "there")
    scheduler.failed(12.0, start.job, "it crashed", rerun=True)
    ends = [action for action in scheduler.decide(12.0) if isinstance(action, Ended)]
    assert [(end.id, end.outcome, end.reason) for end in ends] == [
        ("r", Outcome.FAILED, "it crashed")
    ]
    assert submit("s", "alice", 12.0)
    scheduler.finished(13.0, "s/on#1", Usage(1.0))
    assert [action.outcome for action in scheduler.decide(13.0) if isinstance(action, Ended)] == [
        Outcome.DONE
    ]
    assert scheduler.snapshot(13.0).counters.material == {}


def test_what_no_job_alone_can_be_is_refused() -> None:
    for wrong in (
        {"machine": "here"},
        {"only": Phase.PRE, "notice": True},
        {"only": Phase.ON, "notice": True},
        {"only": Phase.ON, "refers_to": "n"},
    ):
        with pytest.raises(Misuse):
            Submission("a", "alice", "keyed", "ckks", **wrong)


def together(id: str) -> Submission:
    """The keys of a session that take two others."""
    return Submission(
        id,
        id,
        "keyed",
        "ckks",
        notice=True,
        only=Phase.PRE,
        machine="here",
        lease=LEASE,
        parties=("member 0", "member 1"),
    )


def test_a_job_waits_for_all_its_parties_and_holds_nothing_meanwhile() -> None:
    scheduler = make()
    scheduler.party_waits(0.0, "member 0", True)
    scheduler.submit(0.0, together("s"))
    scheduler.submit(0.0, inference("other"))
    assert starts(scheduler.decide(0.0)) == ["other/on#1"]
    scheduler.finished(1.0, "other/on#1")
    assert starts(scheduler.decide(1.0)) == []
    (load,) = scheduler.snapshot(1.0).machines
    assert (load.cores_taken, load.memory_taken) == (0, 0)
    scheduler.party_waits(2.0, "member 1", True)
    scheduler.party_waits(2.0, "member 0", False)
    assert starts(scheduler.decide(2.0)) == []
    scheduler.party_waits(3.0, "member 0", True)
    assert starts(scheduler.decide(3.0)) == ["s/pre#1"]


def test_a_party_takes_part_in_one_job_at_a_time() -> None:
    scheduler = make()
    for party in ("member 0", "member 1"):
        scheduler.party_waits(0.0, party, True)
    scheduler.submit(0.0, together("s"))
    scheduler.submit(0.0, together("t"))
    assert starts(scheduler.decide(0.0)) == ["s/pre#1"]
    scheduler.finished(1.0, "s/pre#1")
    assert starts(scheduler.decide(1.0)) == []
    for party in ("member 0", "member 1"):
        scheduler.party_waits(2.0, party, True)
    assert starts(scheduler.decide(2.0)) == ["t/pre#1"]


def test_jobs_beyond_their_patience_do_not_wait_behind_absent_parties() -> None:
    scheduler = make()
    scheduler.submit(0.0, together("s"))
    late = Limits().patience + 1.0
    scheduler.submit(late, inference("t"))
    assert starts(scheduler.decide(late)) == ["t/on#1"]


def test_only_jobs_of_a_session_wait_for_parties() -> None:
    with pytest.raises(Misuse, match="wait for parties"):
        Submission("r", "alice", "m", "gmw", parties=("member 0",))
