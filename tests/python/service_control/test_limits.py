"""Token buckets: what they let through in any stretch of time, and how long they tell to wait."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.service import limits
from privet.service.limits import Bucket, Buckets


@given(st.floats(0.1, 50), st.floats(1, 20), st.lists(st.floats(0, 3), min_size=1, max_size=80))
def test_no_stretch_of_time_gets_more_than_its_share(
    rate: float, size: float, gaps: list[float]
) -> None:
    bucket, now, taken = Bucket(rate, size, 0.0), 0.0, []
    for gap in gaps:
        now += gap
        if bucket.take(now) == 0.0:
            taken.append(now)
    for first, start in enumerate(taken):
        for count, end in enumerate(taken[first:], 1):
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
def test_what_was_given_at_once_is_waited_for(rate: float, size: int, more: float) -> None:
    bucket = Bucket(rate, size, 0.0)
    assert bucket.take(0.0) == 0.0
    bucket.charge(0.0, more)
    wait = bucket.take(0.0)
    assert wait == pytest.approx(max(0.0, (more + 2 - size) / rate))
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
