"""Suites with their options, by the names that the suites give them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from privet.errors import Misuse
from privet.suites import Costed, MaterialSuite, Suite, all_suites


@dataclass(frozen=True)
class Setting:
    """A suite with its options, as studies and plans name it."""

    config: Costed

    @property
    def name(self) -> str:
        """The name that `settings` reads."""
        return self.config.setting

    @property
    def family(self) -> str:
        """What settings share that differ in depth of comparisons alone."""
        return self.config.family

    @property
    def kind(self) -> str:
        """What settings share whose work has the same kinds: a family, or cohorts of any size."""
        return self.config.kind

    @property
    def members(self) -> int:
        """The size of a cohort; 0 if a client asks one server."""
        return self.config.members

    @property
    def dealer(self) -> bool:
        """Whether a dealer takes part."""
        return "dealer" in self.config.jobs[0].parties

    @property
    def malicious(self) -> bool:
        """Whether a party that cheats is caught."""
        return bool(self.config.facts()["security"] == "malicious")

    @property
    def makes_once(self) -> bool:
        """Whether what the offline phase makes serves any number of inferences. A cohort runs one
        inference together, so it does not."""
        return self.config.jobs[0].serves is None

    @property
    def packs(self) -> bool:
        """Whether the samples of a batch share plaintexts of a program of one sample."""
        return self.compiled_batch(2) < 2

    def compiled_batch(self, batch: int) -> int:
        """The samples of the program that a batch runs."""
        return self.config.compiled_batch(batch)

    @property
    def stocks(self) -> bool:
        """Whether what the offline phase makes can be kept until an inference takes it."""
        return isinstance(self.config, MaterialSuite) and self.config.prepares_ahead

    @property
    def reveals_order(self) -> bool:
        """Whether a party sees values inside the network, though not their places."""
        return any(weakness.name == "revealed-values" for weakness in self.config.weaknesses)

    @property
    def usual(self) -> bool:
        """Whether it is between two who follow the protocol, and reveals nothing else."""
        return not (self.members or self.malicious or self.reveals_order)

    @property
    def trust(self) -> str | None:
        """What a result rests on beyond the parties' following the protocol; None if on nothing."""
        return self.config.trust.caution


SUITES = tuple(suite_type for suite_type in all_suites() if issubclass(suite_type, Costed))
"""The suites whose costs are known by formula."""

ALL = {config.setting: Setting(config) for suite_type in SUITES for config in suite_type.settings()}
"""Settings that are studied, by name; cohorts of other sizes are named like that of three."""


def settings_of(suite: Suite) -> tuple[Setting, ...]:
    """The settings of a suite with its options: one for each value of what it chooses by itself.
    Raises `Misuse` if its costs are not known by formula."""
    if not isinstance(suite, Costed):
        raise Misuse(f"the costs of suite {suite.name} are not known by formula")
    variants = suite.alternatives() if isinstance(suite, MaterialSuite) else (suite,)
    return tuple(Setting(variant) for variant in variants if isinstance(variant, Costed))


def cohort(members: int) -> Setting:
    """The setting in which so many parties share a key. Raises `Misuse` if a cohort cannot have
    that size."""
    for suite_type in SUITES:
        if (variant := suite_type.cohort(members)) is not None:
            return Setting(variant)
    raise Misuse("no suite has a key that several parties share")


def settings(names: Iterable[str]) -> tuple[Setting, ...]:
    """The settings of names: each that of one setting, or of a family, which is all its depths.
    Raises `Misuse` on an unknown name."""
    selection: dict[str, Setting] = {}
    for name in names:
        fitting = [
            setting for setting in ALL.values() if name in (setting.name, setting.family)
        ] or _cohorts(name)
        if not fitting:
            families = dict.fromkeys(setting.family for setting in ALL.values())
            possible = ", ".join([*families, *(n for n in ALL if n not in families)])
            raise Misuse(f"there is no setting {name!r} to study; there are {possible}")
        selection |= {setting.name: setting for setting in fitting}
    return tuple(selection.values())


def _cohorts(name: str) -> list[Setting]:
    """The cohort of a name that ends in its size."""
    size = re.fullmatch(r".*-(\d+)", name)
    if size is None or not any(
        name.startswith(f"{setting.kind}-") for setting in ALL.values() if setting.members
    ):
        return []
    return [cohort(int(size[1]))]


def setting_named(name: str) -> Setting:
    """The one setting of a name. Raises `Misuse` if there is none, or more than one."""
    matches = settings([name])
    if len(matches) > 1:
        raise Misuse(
            f"{name!r} is a family of settings: {', '.join(setting.name for setting in matches)}"
        )
    return matches[0]
