"""Least slack: the job that must start soonest if its request is to meet its deadline.

Slack is `deadline - now - remaining length`; it shrinks for all jobs at one pace, so the order is
that of the latest start `deadline - remaining length`, which a job keeps while it waits.
"""

from __future__ import annotations

from privet.errors import Misuse
from privet.scheduler.policies.policy import Candidate, Policy


class Deadline(Policy):
    """Latest possible start first. A request that names no deadline gets one: `patience` seconds
    after it arrived, and `stretch` times its remaining length later still. A T_pre for a notice has
    `notice` seconds more, until its request comes.
    """

    name = "deadline"

    def __init__(self, patience: float = 10.0, stretch: float = 2.0, notice: float = 60.0) -> None:
        if patience < 0 or stretch < 1 or notice < 0:
            raise Misuse("patience and notice are at least 0 seconds, stretch is at least 1")
        self.patience = patience
        self.stretch = stretch
        self.notice = notice

    def key(self, job: Candidate) -> float:
        """The latest start, in seconds on the clock."""
        due = job.deadline
        if due is None:
            due = job.arrived + self.patience + self.stretch * job.rest
        if not job.wanted:
            due += self.notice
        return due - job.rest

    def claimed(self, job: Candidate, key: float) -> float:
        """The same, now that the request has come."""
        return self.key(job)
