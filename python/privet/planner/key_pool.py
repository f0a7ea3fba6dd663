"""A pool of material under load: how long jobs wait, by the size of the pool.

Jobs come at random (Poisson) or as a trace says, each takes one material entry, and run one after
the other on `servers` servers. A maker adds an entry at a time while the pool is not full. This is
the experiment of "Beyond Latency", Figure 2.
"""

from __future__ import annotations

import heapq
import itertools
import random
import statistics
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from privet.errors import Misuse


@dataclass(frozen=True)
class PoolLoad:
    """How jobs are served: `online` seconds with a material entry at hand, `offline` seconds to
    make one by each of `makers` that work side by side, on `servers` that each run one job at a
    time."""

    online: float
    offline: float
    servers: int = 1
    makers: int = 1


@dataclass(frozen=True)
class PoolOutcome:
    """What jobs saw with a pool of `size` entries: seconds from arrival to answer (`latencies`, in
    order of arrival) and to their start (`waits`), and how many found the pool empty."""

    size: int
    latencies: tuple[float, ...]
    waits: tuple[float, ...]
    empty: int

    @property
    def mean(self) -> float:
        return statistics.fmean(self.latencies)

    def percentile(self, share: float) -> float:
        """The latency that a `share` of the jobs stays within."""
        ordered = sorted(self.latencies)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def poisson(count: int, interval: float) -> list[float]:
    """Times of `count` arrivals, `interval` seconds apart on average, the same each time."""
    draw, now, times = random.Random(1), 0.0, []
    for _ in range(count):
        now += draw.expovariate(1 / interval)
        times.append(now)
    return times


def read_trace(path: Path) -> list[float]:
    """Times of arrivals, one on each line of a file. Raises `Misuse` if a line is no number, or
    there is none."""
    try:
        times = [float(line) for line in path.read_text().split()]
    except ValueError as error:
        raise Misuse(f"{path} is no trace, a time in seconds on each line: {error}") from error
    if not times:
        raise Misuse(f"{path} has no arrivals")
    return times


def simulate(arrivals: Sequence[float], load: PoolLoad, size: int) -> PoolOutcome:
    """Serves jobs that arrive at these times, in order, from a pool that holds up to `size` entries
    and is full at time 0. With `size` 0 a material entry is made when a job asks for it. Raises
    `Misuse` if `arrivals` are not in order, or `size` is negative."""
    if size < 0 or any(b < a for a, b in itertools.pairwise(arrivals)):
        raise Misuse("a pool has no negative size, and a trace's times must not decrease")
    makers = [0.0] * load.makers
    entries = [0.0] * size
    servers = [0.0] * load.servers
    latencies, waits, empty = [], [], 0
    for arrival in arrivals:
        ready = heapq.heappop(entries) if entries else _make(makers, arrival, load)
        empty += ready > arrival
        start = max(arrival, ready, heapq.heappop(servers))
        heapq.heappush(servers, start + load.online)
        if size:
            heapq.heappush(entries, _make(makers, start, load))
        latencies.append(start + load.online - arrival)
        waits.append(start - arrival)
    return PoolOutcome(size, tuple(latencies), tuple(waits), empty)


def _make(makers: list[float], order: float, load: PoolLoad) -> float:
    """When a material entry is ready that was ordered at a time, by the maker that is free
    first."""
    ready = max(heapq.heappop(makers), order) + load.offline
    heapq.heappush(makers, ready)
    return ready


def smallest_pool(
    arrivals: Sequence[float], load: PoolLoad, most_seconds: float
) -> PoolOutcome | None:
    """The smallest pool with which 99 of 100 jobs are answered within `most_seconds`; None if even
    one entry for every job does not do."""

    def suffices(size: int) -> bool:
        return simulate(arrivals, load, size).percentile(0.99) <= most_seconds

    size = bisect_left(range(len(arrivals) + 1), True, key=suffices)
    return simulate(arrivals, load, size) if size <= len(arrivals) else None
