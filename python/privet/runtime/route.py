"""Plans of a program for one suite, at the choices that the client leaves open."""

from __future__ import annotations

from privet import _native, suites
from privet.errors import Misuse
from privet.suites import MaterialSuite
from privet.suites.material.suite import quickest


def check_dealer(suite: MaterialSuite, dealer: str | None) -> None:
    """Raises `Misuse` if a suite needs a dealer and there is none."""
    if suite.dealt and dealer is None:
        raise Misuse("dealt material needs a dealer: say where it listens, HOST:PORT")


class Route:
    """Plans of a program for a suite, one for each choice that is left open.

    With `pinned`, only the chosen one is used; otherwise any that material is ready for.
    """

    def __init__(
        self,
        asked: MaterialSuite,
        public: bytes,
        network: _native.Link | None,
        *,
        pinned: bool,
    ) -> None:
        self._plans = asked.plans(public, network)
        self._network = network
        self._pinned = pinned
        self.suite = quickest(self._plans, network)

    @property
    def plan(self) -> _native.Plan:
        """The plan of what was chosen."""
        return self._plans[self.suite]

    @property
    def forecast(self) -> suites.Forecast:
        """What one inference takes as chosen."""
        return suites.forecast(self.plan)

    def settle(self, session: _native.Client) -> bool:
        """Chooses what material is ready for, if the choice is free; whether some is."""
        if self._pinned:
            return bool(session.ready(self.plan))
        stocked = {suite: plan for suite, plan in self._plans.items() if session.ready(plan)}
        self.suite = quickest(stocked or self._plans, self._network)
        return bool(stocked)
