"""When a source of material is tried again."""

from __future__ import annotations

import pytest

from privet.runtime.refill import FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS, Made, Source


class Silent(Source):
    """A source that makes nothing."""

    async def has_room(self) -> bool:
        return True

    async def make(self) -> Made | None:
        return None

    def rest(self) -> None:
        return


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which stands still."""
    found = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: found[0])
    return found


def test_each_failure_is_followed_by_a_longer_delay(now: list[float]) -> None:
    source, delays = Silent("m", 1), []
    for _ in range(9):
        delays.append(source.put_off())
        assert not source.is_due
        now[0] += delays[-1]
        assert source.is_due
    assert delays[:3] == [FIRST_DELAY_SECONDS, 2 * FIRST_DELAY_SECONDS, 4 * FIRST_DELAY_SECONDS]
    assert delays[-1] == LONGEST_DELAY_SECONDS
    source.succeeded()
    assert source.put_off() == FIRST_DELAY_SECONDS


def test_failures_side_by_side_count_once(now: list[float]) -> None:
    source = Silent("m", 20)
    assert source.put_off() == FIRST_DELAY_SECONDS
    now[0] += FIRST_DELAY_SECONDS / 2
    assert source.put_off() == FIRST_DELAY_SECONDS / 2
    now[0] += FIRST_DELAY_SECONDS / 2
    assert source.is_due
    assert source.put_off() == 2 * FIRST_DELAY_SECONDS
