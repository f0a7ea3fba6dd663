"""How a client may run a program: one suite with its options, at the depths that are left open."""

from __future__ import annotations

from dataclasses import dataclass

from privet import _native, suites
from privet.errors import Misuse
from privet.parties.dealer import TRUST


@dataclass(frozen=True)
class Way:
    """A suite, who makes its material, and what the other party may do."""

    suite: str
    correlations: str
    security: str = "semi-honest"

    @classmethod
    def of(
        cls, suite: str, correlations: str, dealer: str | None, security: str = "semi-honest"
    ) -> Way:
        """Checks the choice.

        # Errors
        `Misuse` if there is no such suite, or it needs a dealer and there is none.
        """
        suites.check_suite(suite)
        dealt = suites.is_dealt(suite, correlations)
        if dealt and dealer is None:
            raise Misuse("dealt material needs a dealer: say where it listens, HOST:PORT")
        return cls(suite, "dealer" if dealt else correlations, security)

    @property
    def trust(self) -> str | None:
        """What results rest on beyond the two parties; None where they need nobody else."""
        return TRUST if suites.is_dealt(self.suite, self.correlations) else None


class Route:
    """Plans of a program for one way to run it.

    With `pinned`, only the chosen depth is used; otherwise any that material is ready for.
    """

    def __init__(
        self,
        way: Way,
        public: bytes,
        rounds: str,
        truncation: str,
        network: _native.Link | None,
        *,
        pinned: bool,
        linear: str = "offline",
    ) -> None:
        self.way = way
        self._plans = suites.plans(
            public,
            way.suite,
            rounds,
            truncation,
            way.correlations,
            network,
            way.security,
            linear,
        )
        self._network = network
        self._pinned = pinned
        self.rounds = suites.quickest(self._plans, network)

    @property
    def plan(self) -> _native.Plan:
        """The plan of the chosen depth."""
        return self._plans[self.rounds]

    @property
    def forecast(self) -> suites.Forecast:
        """What one inference at the chosen depth takes."""
        return suites.forecast(self.plan)

    def settle(self, session: _native.Client) -> bool:
        """Chooses a depth that material is ready for, if the choice is free; whether some is."""
        if self._pinned:
            return bool(session.ready(self.plan))
        stocked = {depth: plan for depth, plan in self._plans.items() if session.ready(plan)}
        self.rounds = suites.quickest(stocked or self._plans, self._network)
        return bool(stocked)
