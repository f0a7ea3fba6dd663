"""A job of a client: what is said of its end, in whatever order the service and the worker tell."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from privet.errors import (
    JobFailed,
    LinkError,
    MaterialError,
    NobodyListens,
    PeerMisbehaved,
    PrivetError,
)
from privet.gateway import jobs
from privet.gateway.jobs import Request


class Attempt:
    """A preparation that ends by the word of its worker or, without one, when it is stopped."""

    def __init__(self, lease: Any, *_: Any) -> None:
        self.lease = lease
        self.stopped = asyncio.Event()
        self.was_refused = False
        self.dealer_is_away = False

    def stop(self) -> None:
        self.stopped.set()


class Executor:
    """Runs attempts that end after `seconds` with the word of the worker."""

    def __init__(self, seconds: float, stopped: PrivetError | None = None) -> None:
        self.worker_client = None
        self.seconds = seconds
        self.stopped = stopped or LinkError("the link was stopped")

    async def prepare(self, attempt: Attempt) -> str:
        try:
            async with asyncio.timeout(self.seconds):
                await attempt.stopped.wait()
        except TimeoutError:
            raise MaterialError("the weights have to be fetched first") from None
        raise self.stopped


def job(executor: Executor) -> Request:
    """A request with an attempt under way."""
    placeholder = cast(Any, SimpleNamespace())
    request = Request(
        "a", placeholder, placeholder, cast(Any, executor), [placeholder], lambda _: None
    )
    request._begin(cast(Any, SimpleNamespace(phase="prepare", job="a/pre#1", suite="gmw")))
    return request


@pytest.mark.parametrize(
    ("seconds", "ends"), [(0.05, MaterialError), (60.0, JobFailed)], ids=["told", "silent"]
)
def test_the_reason_from_the_worker_counts_though_that_of_the_service_arrives_first(
    monkeypatch: pytest.MonkeyPatch, seconds: float, ends: type[PrivetError]
) -> None:
    """The service said that the job failed, and the client cut the link before it had read why: it
    did not fetch again what it had to."""
    monkeypatch.setattr(jobs, "Attempt", Attempt)
    monkeypatch.setattr(jobs, "LAST_WORDS_SECONDS", 0.2)

    async def act() -> None:
        request = job(Executor(seconds))
        await asyncio.sleep(0)
        request.end("failed", "the session failed")
        with pytest.raises(ends):
            async with asyncio.timeout(10):
                await request.results()
        assert not request.attempts

    asyncio.run(act())


@pytest.mark.parametrize(
    ("lost", "ends"), [(True, JobFailed), (False, PeerMisbehaved)], ids=["gone", "there"]
)
def test_who_has_the_port_of_a_worker_of_a_service_that_is_gone_does_not_speak_for_it(
    monkeypatch: pytest.MonkeyPatch, lost: bool, ends: type[PrivetError]
) -> None:
    """The request failed for good, in place of being asked anew of the service that followed."""
    monkeypatch.setattr(jobs, "Attempt", Attempt)

    async def act() -> None:
        request = job(Executor(60.0, PeerMisbehaved("the certificate is of another authority")))
        await asyncio.sleep(0)
        request.end("timed out", "it is gone", is_lost=lost)
        with pytest.raises(ends):
            async with asyncio.timeout(10):
                await request.results()

    asyncio.run(act())


LEASE = {
    "phase": "prepare",
    "host": "here",
    "port": 1,
    "program": "p",
    "suite": "gmw",
    "material": None,
    "grace": 15.0,
    "seconds": 60.0,
    "dealer": None,
}


@pytest.mark.parametrize(
    ("leased", "grace", "tries"), [(True, 15.0, 4), (False, 15.0, 1), (True, 0.1, 1)]
)
def test_a_worker_that_refuses_connections_is_knocked_at_again_while_it_is_leased(
    monkeypatch: pytest.MonkeyPatch, leased: bool, grace: float, tries: int
) -> None:
    """As one behind a proxy that starts anew. In between, the service is heard."""
    heard: list[str] = []

    class Refused(Executor):
        async def prepare(self, attempt: Attempt) -> str:
            heard.append("try")
            attempt.was_refused = heard.count("try") < 4
            raise NobodyListens("nothing listens there")

    monkeypatch.setattr(jobs, "Attempt", Attempt)
    monkeypatch.setattr(jobs, "RETRY_SECONDS", 0.02)
    if grace < 1.0:
        monkeypatch.setattr(jobs, "RETRY_SECONDS", 0.15)

    async def act() -> None:
        none = cast(Any, SimpleNamespace())
        request = Request("a", none, none, cast(Any, Refused(0.0)), [none], lambda _: None)
        request.on_waiting(lambda: heard.append("waits"))
        words = {"state": "preparing", "outcome": None, "reason": ""}
        lease = {**LEASE, "job": "a/pre#1", "grace": grace}
        request.update({**words, "sequence": 1, "go": [lease]})
        if not leased:
            request.update({**words, "sequence": 2, "go": []})
        await asyncio.sleep(0.4)
        assert heard == ["try", "waits"] * tries
        await request.stop()

    asyncio.run(act())


@pytest.mark.parametrize("is_dealer", [True, False])
def test_a_dealer_that_is_not_there_ends_a_request_at_once(
    monkeypatch: pytest.MonkeyPatch, is_dealer: bool
) -> None:
    """The worker waits for this client at the dealer, for half a minute. The control: what went
    wrong with the worker's link is for the service to judge."""

    class Away(Executor):
        async def prepare(self, attempt: Attempt) -> str:
            attempt.dealer_is_away = is_dealer
            raise LinkError("nobody listens at localhost:7401")

    monkeypatch.setattr(jobs, "Attempt", Attempt)

    async def act() -> None:
        request = job(Away(0.0))
        with pytest.raises(LinkError if is_dealer else TimeoutError, match=r"7401|^$"):
            async with asyncio.timeout(0.3):
                await request.results()
        await request.stop()

    asyncio.run(act())
