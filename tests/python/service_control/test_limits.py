"""Token buckets: what they let through in any stretch of time, and how long they tell to wait."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.service import jobs as service_jobs
from privet.service import limits
from privet.service.jobs import Job, Jobs
from privet.service.limits import Bucket, Buckets


@given(st.floats(0.1, 50), st.floats(1, 20), st.lists(st.floats(0, 3), min_size=1, max_size=80))
def test_no_stretch_of_time_gets_more_than_its_share(
    rate: float, size: float, gaps: list[float]
) -> None:
    bucket, now, times = Bucket(rate, size, 0.0), 0.0, []
    for gap in gaps:
        now += gap
        if bucket.take(now) == 0.0:
            times.append(now)
    for first, start in enumerate(times):
        for count, end in enumerate(times[first:], 1):
            assert count <= size + rate * (end - start) + 1e-6


@given(st.floats(0.1, 50), st.integers(1, 20))
def test_whoever_waits_as_told_is_served(rate: float, size: int) -> None:
    bucket = Bucket(rate, size, 0.0)
    for _ in range(size):
        assert bucket.take(0.0) == 0.0
    wait = bucket.take(0.0)
    assert wait > 0.0
    assert bucket.take(0.99 * wait) > 0.0
    assert bucket.take(wait + 1e-6) == 0.0


@given(st.floats(0.1, 50), st.integers(1, 20), st.floats(0, 1000))
def test_what_was_given_at_once_is_waited_for(rate: float, size: int, extra: float) -> None:
    bucket = Bucket(rate, size, 0.0)
    assert bucket.take(0.0) == 0.0
    bucket.charge(0.0, extra)
    wait = bucket.take(0.0)
    assert wait == pytest.approx(max(0.0, (extra + 2 - size) / rate))
    if wait:
        assert bucket.take(wait + 1e-6) == 0.0


def test_names_have_buckets_of_their_own() -> None:
    buckets = Buckets()
    assert buckets.take(("a",), 1, 1, 0.0) == 0.0
    assert buckets.take(("b",), 1, 1, 0.0) == 0.0
    assert buckets.take(("a",), 1, 1, 0.0) > 0.0


def test_a_new_rate_takes_effect() -> None:
    buckets = Buckets()
    assert buckets.take(("a",), 1, 1, 0.0) == 0.0
    assert buckets.take(("a",), 2, 1, 0.0) == 0.0


def test_the_number_of_buckets_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_CLIENTS", 2)
    buckets = Buckets()
    for name in "aba":
        buckets.take((name,), 1, 3, 0.0)
    buckets.take(("c",), 1, 3, 0.0)
    # b was used longest ago; a still knows that it took two.
    assert buckets.take(("a",), 1, 3, 0.0) == 0.0
    assert buckets.take(("a",), 1, 3, 0.0) > 0.0


@given(
    st.lists(
        st.tuples(
            st.integers(0, 5),
            st.sampled_from(("queued", "preparing", "prepared", "inferring", "ended")),
        )
    )
)
def test_counts_of_open_jobs_are_those_of_the_jobs(changes: list[tuple[int, Any]]) -> None:
    jobs, kinds = Jobs(), ("notice", "request", "ahead", "session")
    by_number: dict[int, Job] = {}
    for number, state in changes:
        if number not in by_number:
            version: Any = SimpleNamespace(model=f"m{number % 2}")
            kind: Any = kinds[number % len(kinds)]
            client, none = f"c{number % 3}", cast(Any, None)
            by_number[number] = Job(f"{number}", client, kind, version, none, 1, None, 0.0)
            jobs.add(by_number[number])
        if by_number[number].state != "ended":
            by_number[number].state = state
            jobs.changed(by_number[number])
    is_open = [
        job
        for job in by_number.values()
        if job.kind != "ahead"
        and job.state != "ended"
        and (job.kind == "request" or job.state != "prepared")
    ]
    assert {job.id for job in jobs.open()} == {job.id for job in is_open}
    assert jobs.count_open() == len(is_open)
    for model in ("m0", "m1"):
        of_model = [job for job in is_open if job.version.model == model]
        assert jobs.count_open(model) == len(of_model)
        for client in ("c0", "c1", "c2"):
            assert jobs.count_open(model, client) == sum(job.client == client for job in of_model)
            live = {
                job.id
                for job in by_number.values()
                if (job.client, job.state != "ended") == (client, 1)
            }
            assert {job.id for job in jobs.live_of(client)} == live


def test_a_job_that_ended_is_never_open_again() -> None:
    """A machine that was lost may still tell that it begins."""
    jobs, none = Jobs(), cast(Any, None)
    job = Job("j", "c", "request", cast(Any, SimpleNamespace(model="m")), none, 1, None, 0.0)
    jobs.add(job)
    job.state = "ended"
    jobs.changed(job)
    job.state = "preparing"
    jobs.changed(job)
    assert (jobs.count_open(), jobs.count_open("m", "c"), jobs.open()) == (0, 0, [])


def test_of_jobs_that_ended_those_that_changed_last_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service_jobs, "KEPT", 4)
    jobs, none, version = Jobs(), cast(Any, None), cast(Any, SimpleNamespace(model="m"))

    def add(id: str, client: str = "c") -> Job:
        job = Job(id, client, "request", version, none, 1, None, 0.0, f"key-{id}")
        jobs.add(job)
        return job

    def end(job: Job) -> None:
        job.state = "ended"
        jobs.changed(job)

    by_id = {id: add(id) for id in "abcd"}
    other = add("o", "another")
    for id in "bca":
        end(by_id[id])
    end(other)
    jobs.changed(by_id["b"], quietly=True)
    for id in "ef":
        add(id)
    ids = {id for id in "abcdefo" if jobs.find(id) is not None}
    # c and then a were the first to change; d, e and f live.
    assert ids == set("bdefo")
    assert {id for id in "abcdef" if jobs.keyed("c", f"key-{id}")} == set("bdef")
    for id in "gh":
        add(id)
    assert {id for id in "bdefgh" if jobs.of_client("c", id)} == set("defgh")


def test_of_all_jobs_that_ended_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client has its own bound, and however many clients there are, so has the service."""
    monkeypatch.setattr(service_jobs, "MOST_ENDED", 3)
    jobs, none, version = Jobs(), cast(Any, None), cast(Any, SimpleNamespace(model="m"))
    live = Job("live", "c", "request", version, none, 1, None, 0.0, "key")
    jobs.add(live)
    for number in range(6):
        job = Job(f"{number}", f"c{number}", "request", version, none, 1, None, 0.0, "key")
        jobs.add(job)
        job.state = "ended"
        jobs.changed(job)
    jobs.add(Job("last", "c", "request", version, none, 1, None, 0.0))
    assert {id for id in (*"012345", "live", "last") if jobs.find(id)} == {*"345", "live", "last"}
    clients = ("c", *(f"c{number}" for number in range(6)))
    assert {client for client in clients if jobs.keyed(client, "key")} == {"c", "c3", "c4", "c5"}
