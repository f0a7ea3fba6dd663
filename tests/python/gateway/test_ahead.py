"""Material kept ahead at a service: what is announced first, and when it is tried again."""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import pytest

from privet.errors import NotAccepted, PeerError, Short
from privet.gateway import ServiceClient, Terms
from privet.gateway.ahead import (
    FIRST_DELAY_SECONDS,
    LONGEST_DELAY_SECONDS,
    Ahead,
    Delay,
    LevelEvent,
)

SOON = 20.0


class FakeNotice:
    """A notice whose material is ready at once, until it is ended."""

    is_ready = True
    id, reason = "n", "the test ended it"

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    async def ready(self) -> None:
        return

    async def over(self) -> None:
        await self.ended.wait()


class FakeClient:
    """A service's client that keeps `room` entries at most, and fails as `failing` says."""

    def __init__(self, room: int = 1000) -> None:
        self.room = room
        self.failing: dict[str, Exception] = {}
        self.left: Sequence[FakeNotice] = ()
        self.jobs: list[tuple[str, FakeNotice]] = []

    async def prepared(self, model: str, terms: Terms) -> Sequence[FakeNotice]:
        return self.left

    async def has_room(self, model: str, terms: Terms, entries: int) -> bool:
        return len(self.jobs) + entries <= self.room

    async def notify(self, model: str, terms: Terms) -> FakeNotice:
        if model in self.failing:
            raise self.failing[model]
        self.jobs.append((model, FakeNotice()))
        return self.jobs[-1][1]

    def bytes(self) -> int:
        return len(self.jobs)

    @property
    def models(self) -> list[str]:
        return [model for model, _ in self.jobs]


def keep(
    client: FakeClient,
    levels: dict[str, int],
    condition: Callable[[FakeClient, list[LevelEvent]], bool],
    act: Callable[[Ahead], Awaitable[None]] | None = None,
) -> list[LevelEvent]:
    """Keeps levels until something holds; the events."""
    events: list[LevelEvent] = []

    async def run() -> None:
        async with (
            Ahead(cast(ServiceClient, client), Terms(), levels, events.append) as ahead,
            asyncio.timeout(SOON),
        ):
            while not condition(client, events):
                await asyncio.sleep(0.01)
            if act is not None:
                await act(ahead)

    asyncio.run(run())
    return events


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which stands still."""
    clock = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    return clock


def test_each_failure_is_followed_by_a_longer_delay(now: list[float]) -> None:
    delay, seconds = Delay(), []
    for _ in range(9):
        seconds.append(delay.failed())
        assert not delay.is_over
        now[0] += seconds[-1]
        assert delay.is_over
    assert seconds[:3] == [FIRST_DELAY_SECONDS, 2 * FIRST_DELAY_SECONDS, 4 * FIRST_DELAY_SECONDS]
    assert seconds[-1] == LONGEST_DELAY_SECONDS
    delay.succeeded()
    assert delay.failed() == FIRST_DELAY_SECONDS


def test_failures_side_by_side_count_once(now: list[float]) -> None:
    delay = Delay()
    assert delay.failed() == FIRST_DELAY_SECONDS
    now[0] += FIRST_DELAY_SECONDS / 2
    assert delay.failed() == FIRST_DELAY_SECONDS / 2
    now[0] += FIRST_DELAY_SECONDS / 2
    assert delay.is_over
    assert delay.failed() == 2 * FIRST_DELAY_SECONDS


def test_the_smallest_part_of_a_level_comes_first() -> None:
    client, levels = FakeClient(), {"first": 6, "second": 3}
    events = keep(
        client,
        levels,
        lambda fake, events: (
            len(fake.jobs) == 9 and sum(level.ready for level in events[-1].levels) >= 8
        ),
    )
    assert [(level.ready, level.wanted) for level in events[-1].levels] in (
        [(6, 6), (3, 3)],
        [(6, 6), (2, 3)],
    )
    progress = dict.fromkeys(levels, 0.0)
    for model in client.models:
        assert progress[model] == min(progress.values())
        progress[model] += 1 / levels[model]


def test_a_full_disk_is_told_once() -> None:
    client = FakeClient(room=3)

    async def rest(_: Ahead) -> None:
        await asyncio.sleep(0.1)

    events = keep(
        client,
        {"first": 100},
        lambda _, events: any(event.kind == "full" for event in events),
        rest,
    )
    assert client.models == ["first"] * 3
    assert [event.model for event in events if event.kind == "full"] == ["first"]


def test_a_model_that_fails_holds_up_no_other() -> None:
    client = FakeClient()
    client.failing["gone"] = PeerError("there is no such model")
    events = keep(
        client,
        {"gone": 1, "first": 2},
        lambda fake, events: (
            len(fake.jobs) == 2 and any(event.kind == "waiting" for event in events)
        ),
    )
    delays = [event for event in events if event.kind == "waiting"]
    assert {event.model for event in delays} == {"gone"}
    assert delays[0].error is client.failing["gone"]
    assert delays[0].seconds == pytest.approx(FIRST_DELAY_SECONDS, abs=0.1)


@pytest.mark.parametrize("method", ["notify", "has_room", "bytes"])
def test_without_files_it_is_tried_again_later(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, calls = FakeClient(), 0
    works = getattr(client, method)

    def fails(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise OSError(errno.EMFILE, "Too many open files")
        return works(*arguments, **options)

    monkeypatch.setattr(client, method, fails)
    start = time.monotonic()
    events = keep(client, {"first": 1}, lambda fake, _: len(fake.jobs) == 1)
    if method != "bytes":
        # It waits for the first delay, and for twice that.
        assert time.monotonic() - start > 2 * FIRST_DELAY_SECONDS
        delays = [event for event in events if event.kind == "waiting"]
        assert all(isinstance(event.error, Short) for event in delays)
        assert delays


def test_what_the_policy_does_not_accept_is_not_asked_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = FakeClient()
    client.failing["first"] = NotAccepted("truncation one-bit")
    events = keep(
        client, {"first": 1, "second": 1}, lambda fake, _: bool(fake.jobs and caplog.records)
    )
    assert client.models == ["second"]
    assert not any(event.kind == "waiting" for event in events)
    assert "no material is kept ready for first" in caplog.text


def test_what_is_taken_or_ends_is_replaced() -> None:
    client = FakeClient()

    async def take(ahead: Ahead) -> None:
        first = client.jobs[0][1]
        assert cast(Any, ahead.take("first")) is first
        assert ahead.take("other") is None
        while len(client.jobs) < 3:
            await asyncio.sleep(0.01)
        client.jobs[1][1].ended.set()
        while len(client.jobs) < 4:
            await asyncio.sleep(0.01)

    keep(client, {"first": 2}, lambda fake, _: len(fake.jobs) == 2, take)


def test_what_an_earlier_gateway_left_counts() -> None:
    client = FakeClient()

    async def rest(_: Ahead) -> None:
        await asyncio.sleep(0.1)

    client.left = [FakeNotice(), FakeNotice(), FakeNotice()]
    events = keep(client, {"first": 2}, lambda _, events: bool(events), rest)
    assert events[-1].levels[0].ready == 2
    assert client.jobs == []


def test_a_listener_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    client = FakeClient()

    async def run() -> None:
        def fail(_: LevelEvent) -> None:
            raise RuntimeError

        async with Ahead(cast(ServiceClient, client), Terms(), {"first": 1}, fail):
            while not client.jobs:
                await asyncio.sleep(0.01)

    asyncio.run(run())
    assert "on_event raised" in caplog.text
