"""Fair shares per client: start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996).

Each client has a count of the core seconds that its jobs took, divided by the client's weight, and
the client with the lowest count goes first. A job is charged with its estimated length when it
starts, and with what it really took when it ends: a client that lets its cores idle pays for them.
A client that comes, or comes back, starts at the count of those that are being served, so it
neither saves up nor has to catch up. Which job of a client goes first is left to another policy.
"""

from __future__ import annotations

from collections.abc import Mapping

from privet.errors import Misuse
from privet.scheduler.policies.orders import Fcfs
from privet.scheduler.policies.policy import Candidate, Over, Policy
from privet.scheduler.snapshot import Running

#: Clients whose counts are kept although they are no higher than those of the clients served now.
KEPT = 1024


class Fair(Over):
    """Equal core seconds for clients, or by `weights` (1 if not there); `order` says which job of a
    client goes first."""

    def __init__(
        self, order: Policy | None = None, weights: Mapping[str, float] | None = None
    ) -> None:
        super().__init__("fair", order or Fcfs())
        self.by_client = True
        if order is None:
            self.name = "fair"
        self.weights = dict(weights or {})
        if any(not weight > 0 for weight in self.weights.values()):
            raise Misuse("weights are positive")
        self._served = 0.0
        self._counts: dict[str, float] = {}
        self._charged: dict[str, float] = {}

    def share(self, client: str) -> float:
        """The client's count, in core seconds by its weight."""
        return self._counts.get(client, self._served)

    def key(self, job: Candidate) -> float:
        """As `order` says; a client that was away starts where the others are."""
        self._counts[job.client] = max(self._served, self._counts.get(job.client, 0.0))
        return super().key(job)

    def began(self, now: float, run: Running) -> None:
        """Charges the client with the estimate."""
        self._served = max(self._served, self.share(run.client))
        estimate = len(run.cores) * (run.expected_end - run.started)
        self._charged[run.job] = estimate
        self._charge(run.client, estimate)
        if len(self._counts) > KEPT:
            ahead = {
                client: count for client, count in self._counts.items() if count > self._served
            }
            self._counts = ahead
        super().began(now, run)

    def ended(self, now: float, run: Running) -> None:
        """Corrects the charge by what the job took."""
        core_seconds = len(run.cores) * (now - run.started)
        self._charge(run.client, core_seconds - self._charged.pop(run.job, core_seconds))
        super().ended(now, run)

    def _charge(self, client: str, seconds: float) -> None:
        weight = self.weights.get(client, 1.0)
        self._counts[client] = self.share(client) + seconds / weight
