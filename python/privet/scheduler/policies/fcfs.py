"""First come, first served: the paper's first policy."""

from __future__ import annotations

from privet.scheduler.policies.policy import Candidate, Policy


class Fcfs(Policy):
    """T_pre in the order in which submissions arrived, T_on in the order in which the requests did.

    A request whose notice is still in the queue keeps the notice's place.
    """

    name = "fcfs"

    def key(self, job: Candidate) -> float:
        """When the submission arrived, in seconds."""
        return job.arrived
