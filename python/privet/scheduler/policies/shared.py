"""Cores by load, over any policy that orders the jobs.

A job is the faster the more cores it has, but does the less on each of them. So with few jobs about
each gets all that it can use, and with many each gets its share of the machines, which then do more
in all (equipartition, as known for moldable jobs).
"""

from __future__ import annotations

from privet.scheduler.policies.policy import Capacity, Over, Policy
from privet.scheduler.profiles import Demand


class Shared(Over):
    """A job gets `total cores / jobs about`, but at most what its profile asks for, and at least
    one core and as large a share of the cores as of the memory: a job that keeps others out by its
    memory had better be quick."""

    def __init__(self, order: Policy) -> None:
        super().__init__("shared", order)

    def cores(self, demand: Demand, jobs: int, total: Capacity) -> int:
        fair = total.cores // max(1, jobs)
        by_memory = total.cores * demand.memory // max(1, total.memory)
        return min(demand.cores, max(1, fair, by_memory))
