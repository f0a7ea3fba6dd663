"""Policies that order jobs by one key: the paper's two, and two of ours."""

from __future__ import annotations

from privet.errors import Misuse
from privet.scheduler.policies.policy import Candidate, Policy


class Fcfs(Policy):
    """First come, first served, the paper's first policy: T_pre in the order in which submissions
    arrived, T_on in the order in which the requests did.

    A request whose notice is still in the queue keeps the notice's place.
    """

    name = "fcfs"

    def key(self, job: Candidate) -> float:
        """When the submission arrived, in seconds."""
        return job.arrived


class Priority(Policy):
    """The paper's score `length - beta * age` (Equation 1), lowest first: a job passes one that is
    `beta` seconds shorter for each second that it has waited longer in its queue. All scores fall
    at one pace, so the order is that of `length + beta * time of entry`, which a job keeps.

    `beta` is at least 0; with 0, short jobs always go first and only the scheduler's patience
    bounds a wait.
    """

    name = "priority"

    def __init__(self, beta: float = 0.1) -> None:
        if not beta >= 0:
            raise Misuse(f"beta is at least 0, not {beta}")
        self.beta = beta

    def key(self, job: Candidate) -> float:
        """The score at time 0, in seconds."""
        return job.seconds + self.beta * job.queued


PATIENCE_SECONDS, STRETCH = 10.0, 2.0
"""The deadline of a request that names none: so long after it arrived, and so many times its
remaining length later still."""

NOTICE_SECONDS = 60.0
"""What a T_pre for a notice has more, until its request comes."""


class Deadline(Policy):
    """Least slack: `deadline - remaining length`, the latest possible start, first."""

    name = "deadline"

    def key(self, job: Candidate) -> float:
        """The latest start, in seconds on the clock."""
        due = job.deadline
        if due is None:
            due = job.arrived + PATIENCE_SECONDS + STRETCH * job.remaining_seconds
        if not job.is_requested:
            due += NOTICE_SECONDS
        return due - job.remaining_seconds

    def claimed(self, job: Candidate, key: float) -> float:
        """The same, now that the request has come."""
        return self.key(job)


HOLD_SECONDS = 10.0
"""How far a notice's T_pre stands behind."""


class Urgent(Priority):
    """Lowest `work left - beta * age` first, in seconds.

    Three changes to the paper's score. The length is that of all that the request still needs, so a
    short T_pre before a long T_on is no short job. Age counts from the request's arrival in both
    queues, so a request is not the youngest again when its T_pre is over. And a T_pre for a notice
    yields until its request comes: under load the paper's order lets notices delay requests.
    """

    name = "urgent"

    def key(self, job: Candidate) -> float:
        """The score at time 0, in seconds."""
        hold = 0.0 if job.is_requested else HOLD_SECONDS
        return job.remaining_seconds + self.beta * job.arrived + hold

    def claimed(self, job: Candidate, key: float) -> float:
        """The same, now that the request has come."""
        return self.key(job)
