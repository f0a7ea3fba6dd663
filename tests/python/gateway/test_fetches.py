"""Fetches of what a client keeps: one task for all who wait, whoever hangs up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from privet.errors import JobFailed, NotAccepted, PeerBusy
from privet.gateway import Offer, ServiceClient, Terms, attempt
from privet.gateway import client as module
from privet.gateway.catalog import Admitted
from privet.gateway.jobs import ClientJob, Fetch
from privet.runtime import Credentials
from privet.suites import Gmw

TERMS = Terms(Gmw(encrypts="weights", rounds="log"))


def offer(program: str) -> Offer:
    """A model of which a client keeps something."""
    plan = SimpleNamespace(suite="suite")
    model = SimpleNamespace(program=program, name=program)
    return cast(Offer, SimpleNamespace(model=model, plan=lambda *_: plan))


class Updates:
    """Updates of jobs, which a test ends."""

    def __init__(self) -> None:
        self.jobs: dict[str, ClientJob] = {}

    def follow(self, job: Fetch, _sequence: int) -> Fetch:
        self.jobs[job.id] = job
        return job

    def drop(self, job: ClientJob) -> None:
        self.jobs.pop(job.id, None)

    async def close(self) -> None:
        pass


class Service:
    """What the client sees of its service and its disk."""

    def __init__(self) -> None:
        self.updates = Updates()
        self.kept: set[str] = set()
        self.asked: list[str] = []
        self.withdrawn: list[str] = []
        self.is_busy = False

    async def submit(self, _what: str, offer: Offer, _terms: Terms, **_: Any) -> Admitted:
        self.asked.append(offer.model.program)
        if self.is_busy:
            self.kept.add(offer.model.program)
            raise PeerBusy("you fetch weights now")
        return Admitted(str(len(self.asked)), 1, None)

    async def withdraw(self, job: ClientJob) -> None:
        self.withdrawn.append(job.id)

    async def end(self, outcome: str = "done", *, lost: bool = False) -> None:
        """Ends the job that runs."""
        while not self.updates.jobs:
            await asyncio.sleep(0.001)
        (job,) = self.updates.jobs.values()
        job.end(outcome, outcome, is_lost=lost)
        self.updates.drop(job)


Act = Callable[[ServiceClient, Service], Awaitable[None]]


@pytest.fixture
def play(
    key_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Act], None]:
    def run(act: Act) -> None:
        async def main() -> None:
            service = Service()
            names = lambda program, _suite: frozenset({program} & service.kept)  # noqa: E731
            store = SimpleNamespace(kept_names=names)
            monkeypatch.setattr(attempt, "MaterialStore", lambda *_, **__: store)
            monkeypatch.setattr(module, "forecast", lambda _: SimpleNamespace(kept_bytes=1))
            credentials = Credentials.from_directory(key_folder, "client")
            client = ServiceClient("https://localhost:1", credentials, state=tmp_path)
            monkeypatch.setattr(client, "_updates", service.updates)
            monkeypatch.setattr(client, "_submit", service.submit)
            monkeypatch.setattr(client, "_withdraw", service.withdraw)
            try:
                async with asyncio.timeout(10):
                    await act(client, service)
            finally:
                await client.close()
            assert not client._fetches

        asyncio.run(main())

    return run


def test_who_hangs_up_leaves_the_fetch_to_the_others(play: Callable[[Act], None]) -> None:
    async def act(client: ServiceClient, service: Service) -> None:
        for _ in range(4):
            task = asyncio.create_task(client._fetch(offer("a"), TERMS))
            await asyncio.sleep(0.02)
            task.cancel()
        last = asyncio.create_task(client._fetch(offer("a"), TERMS))
        await asyncio.sleep(0.02)
        assert (service.asked, service.withdrawn) == (["a"], [])
        await service.end()
        await last
        assert service.asked == ["a"]

    play(act)


def test_what_is_here_waits_for_no_other_fetch(play: Callable[[Act], None]) -> None:
    async def act(client: ServiceClient, service: Service) -> None:
        service.kept = {"b"}
        fetch = asyncio.create_task(client._fetch(offer("a"), TERMS))
        await asyncio.sleep(0.02)
        assert await client._fetch(offer("b"), TERMS) is None
        assert service.asked == ["a"]
        # Another that is not here comes after it: the service lets a client fetch one at a time.
        other = asyncio.create_task(client._fetch(offer("c"), TERMS))
        await asyncio.sleep(0.02)
        assert service.asked == ["a"]
        for task in (fetch, other):
            await service.end()
            await task
        assert service.asked == ["a", "c"]

    play(act)


def test_a_callers_timeout_holds_and_the_fetch_goes_on(play: Callable[[Act], None]) -> None:
    async def act(client: ServiceClient, service: Service) -> None:
        with pytest.raises(JobFailed, match=r"had not come within 0\.05 s") as excinfo:
            await client._fetch(offer("a"), TERMS, 0.05)
        assert excinfo.value.outcome == "timed out"
        task = asyncio.create_task(client._fetch(offer("a"), TERMS, 5.0))
        await asyncio.sleep(0.1)
        await service.end()
        left = await task
        assert left is not None
        assert 0 < left < 4.9
        assert service.asked == ["a"]

    play(act)


def test_what_broke_off_because_the_time_was_over_is_no_cause(play: Callable[[Act], None]) -> None:
    """It was told as a certificate that is not allowed, since the worker had no grant any more."""

    async def act(client: ServiceClient, service: Service) -> None:
        for outcome, is_refused in (("timed out", False), ("failed", True)):
            job = Fetch("j", offer("a"), TERMS, client._executor)
            job.error = NotAccepted("there is no grant for this client here")
            job.end(outcome, "it did not end in time")
            failure = job.failure()
            assert ("no grant" in str(failure)) is is_refused
            assert failure.__cause__ is job.error

    play(act)


def test_a_service_that_was_restarted_is_asked_again(play: Callable[[Act], None]) -> None:
    async def act(client: ServiceClient, service: Service) -> None:
        task = asyncio.create_task(client._fetch(offer("a"), TERMS))
        await service.end("failed", lost=True)
        await service.end()
        await task
        assert service.asked == ["a", "a"]
        task = asyncio.create_task(client._fetch(offer("a"), TERMS))
        await service.end("failed")
        with pytest.raises(JobFailed, match="failed"):
            await task
        assert service.asked == ["a", "a", "a"]

    play(act)


def test_what_another_process_has_fetched_is_not_asked_for_again(
    play: Callable[[Act], None],
) -> None:
    async def act(client: ServiceClient, service: Service) -> None:
        service.is_busy = True
        await client._fetch(offer("a"), TERMS)
        assert service.asked == ["a"]

    play(act)


def test_a_client_that_is_closed_ends_its_fetch(play: Callable[[Act], None]) -> None:
    async def act(client: ServiceClient, service: Service) -> None:
        task = asyncio.create_task(client._fetch(offer("a"), TERMS))
        while not service.updates.jobs:
            await asyncio.sleep(0.001)
        await client.close()
        with pytest.raises(JobFailed, match="was closed"):
            await task
        assert service.withdrawn == ["1"]

    play(act)
