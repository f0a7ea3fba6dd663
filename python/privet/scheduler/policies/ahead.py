"""Material made ahead of requests that are only expected, over any policy that orders the jobs.

For each stream (client, model, suite, batch) the time between requests is forecast by an
exponential average; a stream gone quiet fades by itself. The stock aimed at is what the stream uses
up while a new entry is made, and for a horizon beyond. Entries are made on cores that no job wants,
within budgets, and only for clients that said that they are present: material takes both parties.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass

from privet.errors import Misuse
from privet.scheduler.policies.policy import JobStream, Over, Policy, View
from privet.scheduler.submission import Phase, Submission

#: Streams that are followed at most: every wish looks at all of them.
STREAMS = 2000

WEIGHT = 0.2
"""The share of a new gap in the average of gaps."""


@dataclass(slots=True)
class Arrivals:
    """When a stream last had a request, and the average seconds between entries that it needs."""

    last: float
    gap: float = math.inf

    def add(self, now: float, entries: int) -> None:
        """A request for that many entries arrived."""
        gap = (now - self.last) / entries
        self.gap = gap if math.isinf(self.gap) else self.gap + WEIGHT * (gap - self.gap)
        self.last = now

    def rate(self, now: float) -> float:
        """Entries a second to expect; fades when the stream is quiet for longer than it used to."""
        gap = max(self.gap, now - self.last)
        return 1 / gap if 0 < gap < math.inf else 0.0


@dataclass(frozen=True)
class Budget:
    """Bounds of what is made ahead: `bytes` and `entries` of unclaimed stock in all, and the share
    of all `cores` (from 0 to 1) that may make it at a time."""

    bytes: int = 2**34
    entries: int = 1000
    cores: float = 0.5


class AheadPolicy(Over):
    """`order` says which job goes first; `horizon` is in seconds."""

    def __init__(self, order: Policy, budget: Budget | None = None, horizon: float = 30.0) -> None:
        if not horizon >= 0:
            raise Misuse("the horizon is at least 0 seconds")
        super().__init__("ahead", order)
        self.budget = budget or Budget()
        self.horizon = horizon
        self._streams: dict[JobStream, Arrivals] = {}
        self._present: set[str] = set()

    def present(self, now: float, client: str, present: bool) -> None:
        """Material is made for present clients only."""
        (self._present.add if present else self._present.discard)(client)
        super().present(now, client, present)

    def submitted(self, now: float, submission: Submission, batches: Iterable[int]) -> None:
        """Learns from requests; those with a notice need no stock."""
        batches = list(batches)
        super().submitted(now, submission, batches)
        if submission.notice or submission.refers_to is not None:
            return
        for batch in set(batches):
            stream = JobStream(submission.client, submission.model, submission.suite, batch)
            arrivals = self._streams.get(stream)
            if arrivals is None:
                self._streams[stream] = Arrivals(now)
            else:
                arrivals.add(now, batches.count(batch))
        if len(self._streams) > STREAMS:
            self._forget()

    def _forget(self) -> None:
        """Drops the half of the streams that has been quiet longest."""
        recent = sorted(self._streams.items(), key=lambda item: item[1].last, reverse=True)
        self._streams = dict(recent[: len(recent) // 2])

    def wishes(self, now: float, view: View) -> list[JobStream]:
        """Material entries to make now, those first that will be used soonest."""
        total = sum(free.machine.cores for free in view.resources.values())
        idle = sum(free.cores for free in view.resources.values())
        cores = min(idle, int(self.budget.cores * total) - view.cores)
        size = self.budget.bytes - view.bytes
        entries = self.budget.entries - sum(view.free.values())
        if cores < 1 or size < 0 or entries < 1:
            return []
        return self._soonest(now, view, cores, size, entries)

    def _soonest(
        self, now: float, view: View, cores: int, size: int, entries: int
    ) -> list[JobStream]:
        queue: list[tuple[float, int, JobStream, int, float]] = []
        for order, (stream, arrivals) in enumerate(self._streams.items()):
            rate = arrivals.rate(now)
            if stream.client in self._present and rate:
                have = view.free.get(stream, 0)
                lead = view.profiles.expected(stream.job(Phase.PRE)).seconds
                if have < math.ceil(rate * (lead + self.horizon)):
                    queue.append(((have + 1) / rate, order, stream, have, rate))
        heapq.heapify(queue)
        selection: list[JobStream] = []
        while queue and entries:
            _, order, stream, have, rate = heapq.heappop(queue)
            demand = view.profiles.expected(stream.job(Phase.PRE))
            if demand.cores > cores or demand.material > size:
                continue
            selection.append(stream)
            cores, size, entries = cores - demand.cores, size - demand.material, entries - 1
            if have + 1 < math.ceil(rate * (demand.seconds + self.horizon)):
                heapq.heappush(queue, ((have + 2) / rate, order, stream, have + 1, rate))
        return selection
