"""Suites with their options, by names such as `gmw-blocks` or `fss-malicious`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from privet.errors import Misuse

DEPTHS = ("linear", "log", "blocks")


@dataclass(frozen=True)
class Setting:
    """A suite with its options; `members` is the size of a cohort in suite `ckks`, else 0."""

    suite: str
    rounds: str | None = None
    dealer: bool = False
    malicious: bool = False
    members: int = 0

    @property
    def family(self) -> str:
        """The name without the depth of comparisons: what settings with the same kinds of work
        share."""
        words = [self.suite]
        if self.suite == "gmw" and self.dealer:
            words.append("dealer")
        if self.malicious:
            words.append("malicious")
        if self.members:
            words.append(f"collective-{self.members}")
        return "-".join(words)

    @property
    def name(self) -> str:
        """The name that `settings` reads."""
        return self.family if self.rounds is None else f"{self.family}-{self.rounds}"

    @property
    def correlations(self) -> str:
        """Who makes material, as `privet.run` wants it."""
        return "dealer" if self.suite == "gmw" and self.dealer else "parties"

    @property
    def security(self) -> str:
        """What a party may do, as `privet.run` wants it."""
        return "malicious" if self.malicious else "semi-honest"

    @property
    def makes_once(self) -> bool:
        """Whether what the offline phase makes serves any number of inferences: keys of `ckks`."""
        return self.suite == "ckks"

    @property
    def can_shape(self) -> bool:
        """Whether `privet.run` can slow its link down."""
        return self.suite != "ckks"

    def options(self) -> dict[str, Any]:
        """Keyword arguments of `privet.run`."""
        cohort = {"scenario": "collective", "parties": self.members} if self.members else {}
        return {
            "suite": self.suite,
            "security": self.security,
            "rounds": self.rounds or "auto",
            "correlations": self.correlations,
            **cohort,
        }


def _all() -> dict[str, Setting]:
    found = [Setting("gmw", depth, dealer) for dealer in (False, True) for depth in DEPTHS]
    found += [Setting("fss", dealer=True), Setting("fss", dealer=True, malicious=True)]
    found += [Setting("ckks"), Setting("ckks", members=3)]
    return {setting.name: setting for setting in found}


ALL = _all()
"""Every setting that is studied, by name."""


def settings(names: Iterable[str]) -> tuple[Setting, ...]:
    """The settings of names: each that of one setting, or of a family (`gmw`: all its depths).

    # Errors
    `Misuse` on an unknown name.
    """
    chosen: dict[str, Setting] = {}
    for name in names:
        fitting = [it for it in ALL.values() if name in (it.name, it.family)]
        if not fitting:
            families = dict.fromkeys(it.family for it in ALL.values())
            known = ", ".join([*families, *(n for n in ALL if n not in families)])
            raise Misuse(f"there is no setting {name!r} to study; there are {known}")
        chosen |= {it.name: it for it in fitting}
    return tuple(chosen.values())
