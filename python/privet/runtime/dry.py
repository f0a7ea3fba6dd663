"""What a client is to do when no material is ready for it, and what it did."""

from __future__ import annotations

from dataclasses import dataclass, replace

from privet import suites
from privet.errors import Misuse
from privet.runtime.route import check_dealer
from privet.suites import MaterialSuite

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


def fallback(when_dry: str, asked: MaterialSuite, dealer: str | None) -> MaterialSuite | None:
    """The suite that `when_dry` names instead of `asked`; None if it is a policy and no suite.

    # Errors
    `Misuse` if it is neither, or names nothing else than what was asked for.
    """
    if when_dry in (MAKE, WAIT, REFUSE):
        return None
    making = [it.name for it in suites.all_suites() if issubclass(it, MaterialSuite)]
    if when_dry not in making:
        possible = ", ".join((MAKE, WAIT, REFUSE, *making))
        raise Misuse(f"when dry, {when_dry!r} is no choice; possible are {possible}")
    if asked.mode.security == "malicious":
        raise Misuse("there is no suite to fall back to that withstands malicious parties as well")
    other = suites.material_suite(suites.as_suite(when_dry))
    other = replace(other, truncation=asked.truncation)
    check_dealer(other, dealer)
    if all(other.facts()[fact] == asked.facts()[fact] for fact in ("suite", "correlations")):
        raise Misuse(f"suite {when_dry} is what was asked for: name another to fall back to")
    return other
