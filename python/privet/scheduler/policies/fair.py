"""Fair shares per client: start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996).

Each client has a count of the core seconds that its jobs took, divided by the client's weight, and
the client with the lowest count goes first. A job is charged with its estimated length when it
starts, and with what it really took when it ends: a client that lets its cores idle pays for them.
A client that comes, or comes back, starts at the count of those that are being served, so it
neither saves up nor has to catch up. Which job of a client goes first is left to another policy.

Among a hundred clients, one whose job took half a second longer than the others' would wait until
each of them had half a second more, although the next time the machine may delay another's. So what
a job took beyond its estimate is put on the client's account first, which jobs that take less than
estimated and a small write-off clear. Only what the account does not hold is charged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from privet.errors import Misuse
from privet.scheduler.policies.orders import Fcfs
from privet.scheduler.policies.policy import Candidate, Over, Policy
from privet.scheduler.snapshot import RunningStatus

#: Clients whose counts are kept although they are no higher than those of the clients served now.
KEPT = 1024

ACCOUNT_SECONDS = 1.0
"""What an account holds at most, in core seconds."""

WRITTEN_OFF = 0.05
"""With each job an account is written off by this share of the estimate. So a client gets at most
so much more than its share, and what an account holds once."""


@dataclass(slots=True)
class Account:
    """The core seconds that a client's jobs took `beyond` their estimates and that it was not
    charged with."""

    beyond: float = 0.0

    def enter(self, estimate: float, actual: float) -> float:
        """Enters a job; what its client is to be charged beyond the estimate."""
        beyond = self.beyond + actual - estimate
        balance = min(max(beyond, 0.0), ACCOUNT_SECONDS)
        self.beyond = max(0.0, balance - WRITTEN_OFF * estimate)
        return beyond - balance


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
        self._accounts: dict[str, Account] = {}

    def share(self, client: str) -> float:
        """The client's count, in core seconds by its weight."""
        return self._counts.get(client, self._served)

    def key(self, job: Candidate) -> float:
        """As `order` says; a client that was away starts where the others are."""
        self._counts[job.client] = max(self._served, self._counts.get(job.client, 0.0))
        return super().key(job)

    def began(self, now: float, run: RunningStatus) -> None:
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

    def ended(self, now: float, run: RunningStatus) -> None:
        """Corrects the charge by what the job took, as far as the client's account does not."""
        core_seconds = len(run.cores) * (now - run.started)
        account = self._accounts.pop(run.client, None) or Account()
        self._accounts[run.client] = account  # the latest stands last
        estimate = self._charged.pop(run.job, core_seconds)
        self._charge(run.client, account.enter(estimate, core_seconds))
        if len(self._accounts) > KEPT:
            # What a client that is forgotten was not charged with is due now: else all of more
            # clients than are kept would have new accounts again and again.
            oldest = next(iter(self._accounts))
            self._charge(oldest, self._accounts.pop(oldest).beyond)
        super().ended(now, run)

    def _charge(self, client: str, seconds: float) -> None:
        weight = self.weights.get(client, 1.0)
        self._counts[client] = self.share(client) + seconds / weight
