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


class Deadline(Policy):
    """Least slack: `deadline - remaining length`, the latest possible start, first.

    A request that names no deadline gets one: `patience` seconds after it arrived, and `stretch`
    times its remaining length later still. A T_pre for a notice has `notice` seconds more, until
    its request comes.
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
            due = job.arrived + self.patience + self.stretch * job.remaining_seconds
        if not job.is_requested:
            due += self.notice
        return due - job.remaining_seconds

    def claimed(self, job: Candidate, key: float) -> float:
        """The same, now that the request has come."""
        return self.key(job)


class Urgent(Policy):
    """Lowest `work left - beta * age` first, in seconds; a notice's T_pre stands `hold` seconds
    behind.

    Three changes to the paper's score. The length is that of all that the request still needs, so a
    short T_pre before a long T_on is no short job. Age counts from the request's arrival in both
    queues, so a request is not the youngest again when its T_pre is over. And a T_pre for a notice
    yields until its request comes: under load the paper's order lets notices delay requests.
    """

    name = "urgent"

    def __init__(self, beta: float = 0.1, hold: float = 10.0) -> None:
        if not (beta >= 0 and hold >= 0):
            raise Misuse("beta and hold are at least 0")
        self.beta = beta
        self.hold = hold

    def key(self, job: Candidate) -> float:
        """The score at time 0, in seconds."""
        return (
            job.remaining_seconds
            + self.beta * job.arrived
            + (0.0 if job.is_requested else self.hold)
        )

    def claimed(self, job: Candidate, key: float) -> float:
        """The same, now that the request has come."""
        return self.key(job)
