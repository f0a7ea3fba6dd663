"""Updates of a client's jobs: each reaches its job, in whatever order answers come."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from privet.gateway import updates as updates_of_jobs
from privet.gateway.calls import Calls
from privet.gateway.jobs import ClientJob
from privet.gateway.updates import JobUpdates


class Heard(ClientJob):
    """A job that counts what it is told."""

    def __init__(self, id: str) -> None:
        super().__init__(id, cast(Any, None), cast(Any, None), cast(Any, None))
        self.seen: list[int] = []

    def update(self, document: dict[str, Any]) -> None:
        self.seen.append(document["sequence"])
        super().update(document)


def job(id: str, sequence: int) -> dict[str, Any]:
    facts: dict[str, Any] = {"id": id, "state": "queued", "outcome": None, "reason": "", "go": []}
    return {**facts, "sequence": sequence}


class Service:
    """A service that holds all polls, and tells from where on they ask."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[int] = asyncio.Queue()

    async def get(self, path: str, *, seen: int, **_: Any) -> Any:
        self.asked.put_nowait(seen)
        await asyncio.sleep(60)
        raise AssertionError("this call is never answered")


def play(act: Callable[[Service, JobUpdates], Awaitable[None]]) -> None:
    async def run() -> None:
        service = Service()
        updates = JobUpdates(cast(Calls, service))
        try:
            await act(service, updates)
        finally:
            await updates.close()

    asyncio.run(run())


def test_an_update_that_overtakes_the_answer_to_its_jobs_call_is_kept() -> None:
    async def act(service: Service, updates: JobUpdates) -> None:
        updates.follow(Heard("a"), 1)
        # A poll tells of b, whose own call told less, and is answered after it.
        await updates.take({"sequence": 3, "jobs": [job("b", 2), job("b", 3)]}, 0)
        b = updates.follow(Heard("b"), 2)
        await updates.take({"sequence": 2, "jobs": [job("b", 2)]}, 1)
        assert b.seen == [3, 2]
        assert await service.asked.get() == 3

    play(act)


def test_the_first_answer_of_a_call_skips_no_change_before_it() -> None:
    async def act(service: Service, updates: JobUpdates) -> None:
        updates.follow(Heard("a"), 1)
        updates.follow(Heard("b"), 4)
        # b's call was made when no change was known here: it tells of those after the third alone.
        await updates.take({"sequence": 4, "jobs": [job("b", 4)]}, None)
        assert await service.asked.get() == 0

    play(act)


def test_what_is_kept_of_jobs_that_nobody_follows_is_bounded() -> None:
    async def act(_: Service, updates: JobUpdates) -> None:
        many = [job(str(number), number) for number in range(1, 2001)]
        await updates.take({"sequence": 2000, "jobs": many}, 0)
        assert updates.follow(Heard("2000"), 2000).seen == [2000]
        assert updates.follow(Heard("1"), 1).seen == []

    play(act)


def test_a_job_that_comes_to_wait_again_is_polled_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, and not when its client looks after jobs at work the next time."""
    monkeypatch.setattr(updates_of_jobs, "AT_WORK_SECONDS", 60.0)

    class Busy(Heard):
        """A job that is at work until it is not."""

        busy = True

        @property
        def is_at_work(self) -> bool:
            return self.busy

    async def act(service: Service, updates: JobUpdates) -> None:
        a, b = Busy("a"), Busy("b")
        for number, entry in enumerate((a, b)):
            updates.follow(entry, number + 1)
        await asyncio.sleep(0.05)
        assert service.asked.empty()
        b.busy = False
        b._waiting()
        async with asyncio.timeout(30.0):
            await service.asked.get()

    play(act)


def test_a_job_that_was_dropped_keeps_nobody_polling() -> None:
    async def act(service: Service, updates: JobUpdates) -> None:
        a = updates.follow(Heard("a"), 1)
        updates.drop(a)
        a._waiting()
        await asyncio.sleep(0.05)
        assert service.asked.empty()

    play(act)
