"""The paper's priority score `length - beta * age` (Equation 1): short jobs first, none starves.

All scores fall at one pace, so the order is that of `length + beta * time of entry`, which a job
keeps while it waits.
"""

from __future__ import annotations

from privet.errors import Misuse
from privet.scheduler.policies.policy import Candidate, Policy


class Priority(Policy):
    """Lowest score first: a job passes one that is `beta` seconds shorter for each second that it
    has waited longer in its queue. `beta` is at least 0; with 0, short jobs always go first and
    only the scheduler's patience bounds a wait.
    """

    name = "priority"

    def __init__(self, beta: float = 0.1) -> None:
        if not beta >= 0:
            raise Misuse(f"beta is at least 0, not {beta}")
        self.beta = beta

    def key(self, job: Candidate) -> float:
        """The score at time 0, in seconds."""
        return job.seconds + self.beta * job.queued
