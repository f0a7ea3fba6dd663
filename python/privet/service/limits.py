"""Limits on what clients may ask, and which clients are there.

Every answer of a model tells a little about its weights, whatever protects the computation: with
enough answers of its choice a client can train a copy. Cryptography does not prevent that, a bound
on the rate of inferences per client slows it down. The bucket lets short bursts through, since
people and batches come in bursts, and holds the average.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from privet.errors import PeerBusy
from privet.service.jobs import Jobs
from privet.service.repository import Version

MOST_CLIENTS = 10_000
"""Buckets that are kept; the one that was used longest ago goes first, and it is full by then."""


@dataclass(frozen=True)
class ServiceLimits:
    """What clients may ask of the whole service.

    Of one client: inferences and notices in a minute on the average, calls of any kind in a second
    on the average, and calls that wait for updates at once; a whole minute's or second's worth may
    come at once. Of all: jobs that wait or run at once. `body_bytes` bounds the body of a call.
    """

    requests_per_minute: float = 600.0
    calls_per_second: float = 100.0
    queued: int = 1000
    long_polls: int = 64
    body_bytes: int = 16 * 1024


class Exhausted(PeerBusy):
    """A client has had its answers, or its fetches; some are free again in so many `seconds`.
    `reason` is a word for metrics and programs."""

    def __init__(self, message: str, seconds: float, reason: str = "answers") -> None:
        super().__init__(message)
        self.seconds = seconds
        self.reason = reason


class Bucket:
    """A token bucket: `rate` tokens a second, at most `size` at once, full at first."""

    def __init__(self, rate: float, size: float, now: float) -> None:
        self._rate = rate
        self._size = size
        self._tokens = size
        self._at = now

    def take(self, now: float) -> float:
        """Takes a token; 0.0, or if there is none, in how many seconds to retry.

        A bucket of less than one gives all that it holds once it is full.
        """
        self.charge(now, 0.0)
        count = min(1.0, self._size)
        if self._tokens >= count:
            self._tokens -= count
            return 0.0
        return (count - self._tokens) / self._rate

    def charge(self, now: float, count: float) -> None:
        """Takes tokens for what was given already, also such that are not there yet: nothing more
        is given until they have come."""
        self._tokens = min(self._size, self._tokens + (now - self._at) * self._rate) - count
        self._at = now


class Buckets:
    """A bucket for each name, such as a client or a client's use of a model."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[tuple[str, ...], tuple[float, Bucket]] = OrderedDict()

    def take(self, name: tuple[str, ...], rate: float, size: float, now: float) -> float:
        """As `Bucket.take`, on the bucket of `name`, made anew when its rate has changed."""
        return self._bucket(name, rate, size, now).take(now)

    def charge(
        self, name: tuple[str, ...], rate: float, size: float, now: float, count: float
    ) -> None:
        """As `Bucket.charge`, on the bucket of `name`."""
        self._bucket(name, rate, size, now).charge(now, count)

    def _bucket(self, name: tuple[str, ...], rate: float, size: float, now: float) -> Bucket:
        entry = self._buckets.get(name)
        if entry is None or entry[0] != rate:
            entry = (rate, Bucket(rate, size, now))
            self._buckets[name] = entry
            if len(self._buckets) > MOST_CLIENTS:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(name)
        return entry[1]


@dataclass(frozen=True)
class LimitReached:
    """Why there is no place for a further job: `is_own` if the client has its share, else all have.
    `reason` is a word for metrics."""

    text: str
    is_own: bool

    @property
    def reason(self) -> str:
        """A word for metrics and programs."""
        return "queue" if self.is_own else "full"

    def __str__(self) -> str:
        return self.text


def limit_reached(jobs: Jobs, client: str, version: Version, maximum: int) -> LimitReached | None:
    """Looks whether a client may have a further job of a version where all may have `maximum`."""
    limits, open_jobs = version.config.limits, jobs.count_open(version.model, client)
    if open_jobs >= limits.queued_per_client:
        return LimitReached(f"you have {open_jobs} jobs of {version.model} already", is_own=True)
    if jobs.count_open() >= maximum or jobs.count_open(version.model) >= limits.queued:
        return LimitReached("the queue is full: try again later", is_own=False)
    return None


LEAVING_SECONDS = 5.0


class ActiveClients:
    """Counts calls that wait; `on_change` is called with clients that come (True) and leave
    (False), `on_poll` with the client of each call.

    Every job takes both parties, so the scheduler must know who would come. A client is present
    while a call of it waits for updates, and for a moment after, until it has asked again; a call
    that asks for updates without waiting counts for that moment as well.
    """

    def __init__(
        self,
        on_change: Callable[[str, bool], None],
        on_poll: Callable[[str], None] = lambda client: None,
    ) -> None:
        self._on_change, self._on_poll = on_change, on_poll
        self._waiting: Counter[str] = Counter()
        # When those leave who do not wait. Each client in here has one alarm, also while it waits
        # again: clients come and go far more often than they leave.
        self._leaving: dict[str, float] = {}

    @contextmanager
    def of(self, client: str) -> Iterator[None]:
        """The client is present while this is open."""
        if client not in self._leaving and not self._waiting[client]:
            self._on_change(client, True)
        self._on_poll(client)
        self._waiting[client] += 1
        try:
            yield
        finally:
            self._waiting[client] -= 1
            if not self._waiting[client]:
                del self._waiting[client]
                loop = asyncio.get_running_loop()
                due, has_alarm = loop.time() + LEAVING_SECONDS, client in self._leaving
                self._leaving[client] = due
                if not has_alarm:
                    loop.call_at(due, self._look, client)

    def _look(self, client: str) -> None:
        loop, due = asyncio.get_running_loop(), self._leaving[client]
        if client in self._waiting:
            del self._leaving[client]
        elif loop.time() < due:
            loop.call_at(due, self._look, client)
        else:
            del self._leaving[client]
            self._on_change(client, False)
