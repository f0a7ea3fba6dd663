"""Least work left first, with age, and jobs that nobody waits for yet give way.

Three changes to the paper's score. The length is that of all that the request still needs, so a
short T_pre before a long T_on is no short job. Age counts from the request's arrival in both
queues, so a request is not the youngest again when its T_pre is over. And a T_pre for a notice
yields until its request comes: under load the paper's order lets notices delay requests.
"""

from __future__ import annotations

from privet.errors import Misuse
from privet.scheduler.policies.policy import Candidate, Policy


class Urgent(Policy):
    """Lowest `work left - beta * age` first, in seconds; a notice's T_pre stands `hold` seconds
    behind."""

    name = "urgent"

    def __init__(self, beta: float = 0.1, hold: float = 10.0) -> None:
        if not (beta >= 0 and hold >= 0):
            raise Misuse("beta and hold are at least 0")
        self.beta = beta
        self.hold = hold

    def key(self, job: Candidate) -> float:
        """The score at time 0, in seconds."""
        return job.rest + self.beta * job.arrived + (0.0 if job.wanted else self.hold)

    def claimed(self, job: Candidate, key: float) -> float:
        """The same, now that the request has come."""
        return self.key(job)
