"""Plans of a program for one suite, and what is done when no material is ready for it."""

from __future__ import annotations

from dataclasses import dataclass, replace

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
        suite: MaterialSuite,
        public: bytes,
        network: _native.Link | None,
        *,
        pinned: bool,
    ) -> None:
        self._plans = suite.plans(public, network)
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

    def choose(self, session: _native.Client) -> bool:
        """Chooses what material is ready for, if the choice is free; whether some is."""
        if self._pinned:
            return bool(session.ready(self.plan))
        stocked = {suite: plan for suite, plan in self._plans.items() if session.ready(plan)}
        self.suite = quickest(stocked or self._plans, self._network)
        return bool(stocked)


MAKE = "make"
"""Make an entry now."""

WAIT = "wait"
"""Wait until another process has made one."""

REFUSE = "refuse"
"""Raise `MaterialError`."""


@dataclass(frozen=True)
class Dry:
    """That no material was ready, and what was done.

    `action` is `made`, `waited`, `fell back`, or `refilled` if correlations were made while the
    network ran; `seconds` is how long it took until there was
    material. If the client fell back, `asked` is the suite that it had asked for with its options,
    and `reason` why no material could be made for that one (None if nobody tried, because material
    was ready for the other).
    """

    action: str
    seconds: float
    asked: str | None = None
    reason: str | None = None


def fallback(when_dry: str, suite: MaterialSuite, dealer: str | None) -> MaterialSuite | None:
    """The suite that `when_dry` names instead of `suite`, the one asked for; None if it is a policy
    and no suite. Raises `Misuse` if it is neither, or names nothing else than what was asked
    for."""
    if when_dry in (MAKE, WAIT, REFUSE):
        return None
    making = [
        suite_type.name
        for suite_type in suites.all_suites()
        if issubclass(suite_type, MaterialSuite)
    ]
    if when_dry not in making:
        possible = ", ".join((MAKE, WAIT, REFUSE, *making))
        raise Misuse(f"when dry, {when_dry!r} is no choice; possible are {possible}")
    if suite.mode.security == "malicious":
        raise Misuse("there is no suite to fall back to that withstands malicious parties as well")
    alternative = suites.material_suite(suites.as_suite(when_dry))
    alternative = replace(alternative, truncation=suite.truncation)
    check_dealer(alternative, dealer)
    kind = ("suite", "correlations", "field")
    if all(alternative.facts()[fact] == suite.facts()[fact] for fact in kind):
        raise Misuse(f"suite {when_dry} is what was asked for: name another to fall back to")
    return alternative
