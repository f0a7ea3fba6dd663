"""Cores by load, over any policy that orders the jobs.

A job is the faster the more cores it has, but does the less on each of them. So with few jobs about
each gets all that it can use, and with many each gets its share of the machines, which then do more
in all (equipartition, as known for moldable jobs).
"""

from __future__ import annotations

from collections.abc import Iterable

from privet.errors import Misuse
from privet.scheduler.policies.policy import Candidate, Capacity, Policy, Stream, View
from privet.scheduler.profiles import Demand
from privet.scheduler.snapshot import Running
from privet.scheduler.submission import Submission


class Shared(Policy):
    """A job gets `total cores / jobs about`, but at most what its profile asks for, and at least
    `least` cores and as large a share of the cores as of the memory: a job that keeps others out by
    its memory had better be quick. All else is as `order` says."""

    def __init__(self, order: Policy, least: int = 1) -> None:
        if least < 1:
            raise Misuse(f"a job needs at least one core, not {least}")
        self.name = f"shared+{order.name}"
        self.online_first, self.by_client = order.online_first, order.by_client
        self.order = order
        self.least = least

    def cores(self, demand: Demand, jobs: int, total: Capacity) -> int:
        fair = total.cores // max(1, jobs)
        held = total.cores * demand.memory // max(1, total.memory)
        return min(demand.cores, max(self.least, fair, held))

    def key(self, job: Candidate) -> float:
        return self.order.key(job)

    def claimed(self, job: Candidate, key: float) -> float:
        return self.order.claimed(job, key)

    def submitted(self, now: float, submission: Submission, batches: Iterable[int]) -> None:
        """Tells `order`."""
        self.order.submitted(now, submission, batches)

    def present(self, now: float, client: str, present: bool) -> None:
        """Tells `order`."""
        self.order.present(now, client, present)

    def share(self, client: str) -> float:
        return self.order.share(client)

    def began(self, now: float, run: Running) -> None:
        """Tells `order`."""
        self.order.began(now, run)

    def ended(self, now: float, run: Running) -> None:
        """Tells `order`."""
        self.order.ended(now, run)

    def wishes(self, now: float, view: View) -> list[Stream]:
        return self.order.wishes(now, view)

    def next_event_at(self, now: float) -> float | None:
        return self.order.next_event_at(now)
