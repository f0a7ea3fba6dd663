"""Suites with their options, by names such as `gmw-blocks` or `fss-malicious`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from privet.errors import Misuse
from privet.suites import COLLECTIVE, MaterialSuite, Suite, from_options

DEPTHS = ("linear", "log", "blocks")

STREAM: Mapping[str, Mapping[str, Any]] = {
    "": {"cipher": "paillier"},
    "3072": {"cipher": "paillier", "key_bits": 3072},
    "packed": {"cipher": "paillier", "packed": True},
    "bfv": {"cipher": "bfv"},
}
"""Variants of suite `stream`: the end of a setting's name, and its options. The
first is as its paper; `bfv` is the one to recommend."""

COHORT = re.compile(r"ckks-collective-(\d+)")


@dataclass(frozen=True)
class Setting:
    """A suite with its options; `members` is the size of a cohort in suite `ckks`, else 0, and
    `variant` one of `STREAM` in suite `stream`."""

    suite: str
    rounds: str | None = None
    dealer: bool = False
    malicious: bool = False
    members: int = 0
    variant: str = ""

    @property
    def family(self) -> str:
        """The name without the depth of comparisons."""
        return f"{self.kind}-{self.members}" if self.members else self.kind

    @property
    def kind(self) -> str:
        """What settings share whose work has the same kinds: a family, or cohorts of any size."""
        words = [self.suite]
        if self.suite == "gmw" and self.dealer:
            words.append("dealer")
        if self.malicious:
            words.append("malicious")
        if self.members:
            words.append("collective")
        if self.variant:
            words.append(self.variant)
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
        """Whether what the offline phase makes serves any number of inferences: a client's keys of
        suite `ckks`. A cohort runs one inference together, so it does not."""
        return self.config.jobs[0].serves is None

    @property
    def packs(self) -> bool:
        """Whether the samples of a batch share plaintexts of a program of one sample."""
        return self.config.compiled_batch(2) < 2

    def compiled_batch(self, batch: int) -> int:
        """The samples of the program that a batch runs."""
        return self.config.compiled_batch(batch)

    @property
    def masks(self) -> bool:
        """Whether suite `stream` hides values by masks that are made ahead."""
        return self.variant_options.get("cipher") == "bfv"

    @property
    def can_shape(self) -> bool:
        """Whether `privet.run` can slow its link down: all but those of a cohort."""
        return not self.members

    @property
    def stocks(self) -> bool:
        """Whether what the offline phase makes can be kept until an inference takes it."""
        return isinstance(self.config, MaterialSuite)

    @property
    def reveals_order(self) -> bool:
        """Whether a party sees values inside the network, though not their places."""
        return any(it.name == "revealed-values" for it in self.config.weaknesses)

    @property
    def trust(self) -> str | None:
        """What a result rests on beyond the parties' following the protocol; None if on nothing."""
        return self.config.trust.caution

    @property
    def variant_options(self) -> Mapping[str, Any]:
        """Options of the variant."""
        return STREAM[self.variant] if self.suite == "stream" else {}

    @property
    def config(self) -> Suite:
        """The suite with its options, as `privet.run` wants it."""
        options: dict[str, Any] = dict(self.variant_options)
        if self.members:
            options |= {"scenario": COLLECTIVE, "parties": self.members}
        if self.rounds is not None:
            options |= {"rounds": self.rounds, "correlations": self.correlations}
        if self.malicious:
            options["security"] = self.security
        return from_options(self.suite, options)


def _all() -> dict[str, Setting]:
    found = [Setting("gmw", depth, dealer) for dealer in (False, True) for depth in DEPTHS]
    found += [Setting("fss", dealer=True), Setting("fss", dealer=True, malicious=True)]
    found += [Setting("ckks"), cohort(3)]
    found += [Setting("stream", variant=variant) for variant in STREAM]
    return {setting.name: setting for setting in found}


def cohort(members: int) -> Setting:
    """Suite `ckks` under a key that so many members share.

    # Errors
    `Misuse` if a cohort cannot have that size.
    """
    setting = Setting("ckks", members=members)
    _ = setting.config  # which checks the size
    return setting


ALL = _all()
"""Settings that are studied, by name; cohorts of other sizes are named like that of three."""


def settings(names: Iterable[str]) -> tuple[Setting, ...]:
    """The settings of names: each that of one setting, or of a family (`gmw`: all its depths).

    # Errors
    `Misuse` on an unknown name.
    """
    chosen: dict[str, Setting] = {}
    for name in names:
        fitting = [it for it in ALL.values() if name in (it.name, it.family)]
        if found := COHORT.fullmatch(name):
            fitting = [cohort(int(found[1]))]
        if not fitting:
            families = dict.fromkeys(it.family for it in ALL.values())
            known = ", ".join([*families, *(n for n in ALL if n not in families)])
            raise Misuse(f"there is no setting {name!r} to study; there are {known}")
        chosen |= {it.name: it for it in fitting}
    return tuple(chosen.values())


def setting_named(name: str) -> Setting:
    """The one setting of a name.

    # Errors
    `Misuse` if there is none, or more than one.
    """
    found = settings([name])
    if len(found) > 1:
        raise Misuse(f"{name!r} is a family of settings: {', '.join(it.name for it in found)}")
    return found[0]
