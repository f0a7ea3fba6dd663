"""Fair shares per client: start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996).

A client's jobs get tags: each starts where the client's last one ended, in core seconds of service
divided by the client's weight, but never before what is being served now. Lowest tag first. Clients
that always have jobs waiting so get core seconds in proportion to their weights, and one that was
away neither loses nor saves up.
"""

from __future__ import annotations

from collections.abc import Mapping

from privet.errors import Misuse
from privet.scheduler.policies.policy import Candidate, Policy


class Fair(Policy):
    """Equal core seconds for clients; `weights` by client for other shares (1 if not there)."""

    name = "fair"
    online_first = False

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        self.weights = dict(weights or {})
        if any(not weight > 0 for weight in self.weights.values()):
            raise Misuse("weights are positive")
        self._served = 0.0
        self._ends: dict[str, float] = {}

    def key(self, job: Candidate) -> float:
        """The tag, in core seconds of service."""
        start = max(self._served, self._ends.get(job.client, 0.0))
        cost = job.cores * job.seconds / self.weights.get(job.client, 1.0)
        self._ends[job.client] = start + cost
        return start

    def started(self, now: float, job: Candidate, key: float) -> None:
        """Moves the service forward, and forgets clients that it has passed."""
        self._served = max(self._served, key)
        if len(self._ends) > 1024:
            self._ends = {client: end for client, end in self._ends.items() if end > self._served}
