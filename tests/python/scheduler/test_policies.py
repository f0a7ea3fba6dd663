"""What each policy prefers."""

from __future__ import annotations

import pytest
from tests.python.scheduler.bench import Bench, table

from privet.errors import Misuse
from privet.scheduler import (
    GIB,
    AheadPolicy,
    Budget,
    Deadline,
    Demand,
    Fair,
    Fcfs,
    Key,
    Limits,
    Machine,
    Phase,
    Profiles,
    Scaling,
    Shared,
    Start,
    Usage,
    named,
)
from privet.scheduler.policies import Urgent

ONE_CORE = (Machine("here", 1, 8 * GIB),)


def order(bench: Bench, count: int, seconds: float = 0.0) -> list[str]:
    """The next requests whose T_pre starts, jobs failing one by one after so many seconds."""
    sequence = []
    for _ in range(count):
        (job,) = bench.running
        sequence.append(job.split("/")[0])
        bench.now += seconds
        bench.fail(job)
    return sequence


def test_fcfs_is_the_order_of_arrival() -> None:
    bench = Bench(Fcfs(), ONE_CORE)
    for id in ("a", "b", "n", "c"):
        bench.submit(id)
        bench.now += 1.0
    assert order(bench, 4) == ["a", "b", "n", "c"]


def test_deadline_takes_the_latest_start_first() -> None:
    bench = Bench(Deadline(), ONE_CORE)
    bench.submit("first")
    bench.submit("late", deadline=300.0)
    bench.submit("soon", deadline=20.0)
    bench.submit("none")
    bench.submit("n")
    assert order(bench, 5) == ["first", "soon", "none", "n", "late"]


def test_deadline_hurries_a_notice_when_its_request_comes() -> None:
    bench = Bench(Deadline(), ONE_CORE)
    bench.submit("first")
    bench.submit("n")
    bench.submit("other")
    bench.submit("r", to="n", deadline=10.0)
    bench.fail("first/pre#1")
    assert bench.running == ["n/pre#1"]


def test_fair_serves_clients_in_turn_not_requests() -> None:
    bench = Bench(Fair(), ONE_CORE)
    for number in range(4):
        bench.submit(f"a{number}", client="alice")
    for number in range(2):
        bench.submit(f"b{number}", client="bob")
    assert order(bench, 6, 10.0) == ["a0", "b0", "a1", "b1", "a2", "a3"]


def test_fair_weights_are_shares() -> None:
    bench = Bench(Fair(weights={"alice": 3.0}), ONE_CORE)
    for number in range(9):
        bench.submit(f"a{number}", client="alice")
    for number in range(9):
        bench.submit(f"b{number}", client="bob")
    assert sum(id.startswith("a") for id in order(bench, 8, 10.0)) == 6


def test_fair_lets_nobody_save_up() -> None:
    bench = Bench(Fair(), ONE_CORE)
    for number in range(6):
        bench.submit(f"a{number}", client="alice")
    assert order(bench, 4, 10.0) == ["a0", "a1", "a2", "a3"]
    for number in range(4):
        bench.submit(f"b{number}", client="bob")
    assert order(bench, 4, 10.0) == ["a4", "b0", "a5", "b1"]


def test_fair_charges_what_a_job_took_and_not_what_it_was_thought_to_take() -> None:
    bench = Bench(Fair(), ONE_CORE)
    for number in range(6):
        bench.submit(f"a{number}", client="alice")
    for number in range(6):
        bench.submit(f"b{number}", client="bob")
    sequence = []
    for _ in range(8):
        (job,) = bench.running
        sequence.append(job[0])
        # Alice lets the core idle; each of her jobs takes three times as long as it should.
        bench.now += 30.0 if job.startswith("a") else 10.0
        bench.fail(job)
    assert sequence.count("b") == 6


@pytest.mark.parametrize(
    ("name", "expected"),
    [("fair", ["b", "long", "short"]), ("fair+priority", ["b", "short", "long"])],
)
def test_fair_leaves_a_clients_own_order_to_another_policy(name: str, expected: list[str]) -> None:
    profiles = table()
    profiles.set(Key("slow", "fss", 1, Phase.PRE), Demand(1, GIB, 99.0))
    bench = Bench(named(name), ONE_CORE, profiles=profiles)
    bench.submit("b", client="bob")
    bench.submit("long", "slow")
    bench.submit("short")
    assert order(bench, 3, 10.0) == expected
    assert named(name).name == name
    with pytest.raises(Misuse, match="no policy"):
        named("fair+fair+fcfs")


def test_urgent_counts_all_work_left_and_lets_notices_give_way() -> None:
    profiles = table()
    profiles.set(Key("slow", "fss", 1, Phase.PRE), Demand(1, GIB, 1.0))
    profiles.set(Key("slow", "fss", 1, Phase.ON), Demand(1, GIB, 60.0))
    bench = Bench(Urgent(), ONE_CORE, profiles=profiles)
    for id, model in (("first", "small"), ("slow", "slow"), ("n", "small"), ("small", "small")):
        bench.submit(id, model)
    assert order(bench, 4) == ["first", "small", "n", "slow"]
    bench = Bench(Urgent(), ONE_CORE)
    for id in ("first", "n", "small"):
        bench.submit(id)
    bench.submit("r", to="n")
    bench.fail("first/pre#1")
    assert bench.running == ["small/pre#1"], "equals by order of entry, and the notice came anew"
    bench.fail("small/pre#1")
    assert bench.running == ["n/pre#1"]


def steady(bench: Bench, requests: int, gap: float = 5.0) -> None:
    """Requests at an even pace, each served to its end."""
    for number in range(requests):
        bench.submit(f"r{number}")
        while any(job.startswith("r") for job in bench.running):
            bench.finish(*(job for job in bench.running if job.startswith("r")))
        bench.wait(gap)


def test_ahead_makes_material_for_a_steady_stream_within_its_budget() -> None:
    policy = AheadPolicy(Fcfs(), Budget(entries=2, cores=0.5), horizon=20.0)
    bench = Bench(policy)
    bench.scheduler.client_present(0.0, "alice", True)
    steady(bench, 2)
    ahead = [job for job in bench.running if job.startswith("ahead")]
    assert len(ahead) == 2, "half of four cores"
    bench.finish(*ahead)
    assert len(bench.running) == 0, "two entries are enough"
    assert sum(bench.scheduler.snapshot(bench.now).stock.values()) == 2
    start = bench.submit("r9")[0]
    assert isinstance(start, Start)
    assert start.phase is Phase.ON
    assert start.material == ahead[0]


def test_ahead_counts_bytes() -> None:
    bench = Bench(AheadPolicy(Fcfs(), Budget(bytes=150), horizon=100.0))
    bench.scheduler.client_present(0.0, "alice", True)
    steady(bench, 2)
    assert len([job for job in bench.running if job.startswith("ahead")]) == 1


def test_a_request_takes_over_what_is_being_made_ahead() -> None:
    bench = Bench(AheadPolicy(Fcfs(), Budget(cores=0.25)))
    bench.scheduler.client_present(0.0, "alice", True)
    steady(bench, 2)
    (ahead,) = bench.running
    assert "r9/pre#1" not in bench.starts(bench.submit("r9"))
    assert bench.queues()["waiting"] == ["r9"]
    assert bench.starts(bench.finish(ahead))[0] == "r9/on#1"


def test_ahead_leaves_absent_and_quiet_clients_alone() -> None:
    bench = Bench(AheadPolicy(Fcfs(), horizon=20.0))
    steady(bench, 2)
    assert bench.running == [], "alice has not said that she is there"
    bench.wait(10_000.0)
    bench.scheduler.client_present(bench.now, "alice", True)
    bench.decide()
    (job,) = bench.running
    bench.finish(job)
    assert bench.running == [], "a stream gone quiet gets one entry at most"


def test_ahead_stops_for_a_drain() -> None:
    bench = Bench(AheadPolicy(Fcfs()))
    bench.scheduler.client_present(0.0, "alice", True)
    steady(bench, 2)
    jobs = bench.running
    assert jobs
    bench.scheduler.drain(bench.now)
    bench.decide()
    assert sorted(bench.stops()) == sorted(jobs)
    for job in jobs:
        bench.fail(job)
    assert bench.scheduler.drained


def test_shared_gives_all_cores_to_one_job_and_few_to_each_of_many() -> None:
    bench = Bench(Shared(Fcfs()))
    (alone,) = bench.submit("a", "wide")
    assert isinstance(alone, Start)
    assert len(alone.cores) == 4
    for id in "bcd":
        bench.submit(id, "wide")
    starts = [action for action in bench.fail("a/pre#1") if isinstance(action, Start)]
    assert [len(start.cores) for start in starts] == [1, 1, 1]


def test_shared_gives_cores_for_memory() -> None:
    profiles = table()
    profiles.set(Key("heavy", "fss", 1, Phase.PRE), Demand(4, 6 * GIB, 10.0))
    bench = Bench(Shared(Fcfs()), profiles=profiles)
    bench.submit("a", "wide")
    for id in "bcd":
        bench.submit(id, "heavy")
    starts = [action for action in bench.fail("a/pre#1") if isinstance(action, Start)]
    assert [len(start.cores) for start in starts] == [3], "three quarters of the memory"


@pytest.mark.parametrize("name", ["", "nope", "ahead", "ahead+ahead+fcfs", "fcfs+ahead"])
def test_policies_have_names(name: str) -> None:
    with pytest.raises(Misuse, match="no policy"):
        named(name)
    assert named("shared+ahead+fair").name == "shared+ahead+fair"


def test_one_model_may_be_held_to_one_job() -> None:
    bench = Bench(limits=Limits(jobs_per_model=1))
    for id in ("a", "b"):
        bench.submit(id)
    bench.submit("h", "heavy")
    assert bench.running == ["a/pre#1", "h/pre#1"]
    assert bench.starts(bench.finish("a/pre#1")) == ["a/on#2"]


def test_profiles_average_time_and_keep_the_most_memory() -> None:
    profiles = Profiles(weight=0.5, decay=0.75, headroom=1.5)
    key = Key("m", "fss", 1, Phase.PRE)
    profiles.set(key, Demand(2, 1000, 10.0))
    profiles.observe(key, Usage(20.0, 2000, 7))
    assert profiles.expected(key) == Demand(2, 2000, 15.0, 7)
    profiles.observe(key, Usage(15.0, 1000))
    assert profiles.expected(key) == Demand(2, 1750, 15.0, 7)
    assert profiles.estimate(key).memory == 2625


def test_profiles_scale_batches_and_cores_and_guess_the_unknown() -> None:
    profiles = Profiles(scaling=Scaling(serial=0.5))
    profiles.set(Key("m", "fss", 4, Phase.ON), Demand(1, 400, 8.0))
    assert profiles.expected(Key("m", "fss", 2, Phase.ON)) == Demand(1, 200, 4.0)
    assert profiles.expected(Key("x", "fss", 3, Phase.ON)).seconds == 15.0
    profiles.observe(Key("m", "fss", 4, Phase.ON), Usage(6.0, cores=2))
    assert profiles.expected(Key("m", "fss", 4, Phase.ON)).seconds == 8.0, "6 s on 2 are 8 on 1"
    copy = Profiles()
    copy.load(profiles.rows())
    assert copy.rows() == profiles.rows()


def test_a_job_can_have_a_law_of_its_own() -> None:
    profiles = Profiles(scaling=Scaling())
    key, plain = Key("m", "fss", 1, Phase.ON), Key("p", "fss", 1, Phase.ON)
    profiles.set(key, Demand(1, 1, 8.0, scaling=Scaling(serial=1.0)))
    profiles.set(plain, Demand(1, 1, 8.0))
    assert profiles.expected(key).on(4).seconds == 8.0
    assert profiles.expected(plain).on(4).seconds == 2.0
    copy = Profiles()
    copy.load(profiles.rows())
    assert copy.expected(key).on(4).seconds == 8.0
    assert [("serial" in row) for row in profiles.rows()] == [True, False]
    with pytest.raises(Misuse):
        Scaling(serial=1.5)


def test_many_cores_can_be_too_many() -> None:
    law = Scaling(crosstalk=1 / 256)
    assert law.speedup(1) == 1.0
    assert max(range(1, 97), key=law.speedup) == 16
    assert law.moved(10.0, 16, 16) == 10.0
    assert law.moved(law.moved(10.0, 16, 96), 96, 16) == pytest.approx(10.0)
