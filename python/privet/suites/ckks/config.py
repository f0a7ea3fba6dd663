"""Suite `ckks`: homomorphic encryption of real numbers (slytHErin)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from privet._native import Link
from privet.compiler.compile import Compiled
from privet.errors import Misuse
from privet.suites.base import COORDINATOR, Job, LocalJob, LocalResult, Planned, Suite, Trust
from privet.suites.ckks import costing
from privet.suites.ckks.account import packing, parameters
from privet.suites.ckks.program import plan_ckks
from privet.suites.costing import Costed, Costing, LinkUse, Trial
from privet.suites.options import choice, number
from privet.suites.policy import Mode
from privet.suites.precision import Precision
from privet.suites.security import ckks_security

if TYPE_CHECKING:
    from privet.compiler.program.public import Program

ENCRYPTED_DATA, ENCRYPTED_MODEL, COLLECTIVE = "encrypted-data", "encrypted-model", "collective"
"""Who encrypts what under whose key."""

LIGHT, STATISTICAL = "light", "statistical"
"""Noise on results: as much as encryption leaves, or enough to hide all else."""

MEMBERS = range(2, 21)
"""How many parties may share a collective key."""


@dataclass(frozen=True, kw_only=True)
class Ckks(Costed):
    """The choices of suite `ckks`.

    In scenario `encrypted-data` the client encrypts its data and the server evaluates its model; in
    `encrypted-model` the server encrypts its model and the client evaluates it; in `collective`
    data and model are encrypted under a key that a cohort of `parties` members shares.
    """

    scenario: str = choice(
        ENCRYPTED_DATA,
        (ENCRYPTED_DATA, ENCRYPTED_MODEL, COLLECTIVE),
        "The client's data is encrypted under its own key, or the model under its owner's, or data "
        "and model under one that a cohort shares.",
        "the scenario",
    )
    parties: int = number(
        3, MEMBERS[0], MEMBERS[-1], "Members of a cohort, 2 to 20.", "the number of parties"
    )
    flooding: str = choice(
        STATISTICAL,
        (STATISTICAL, LIGHT),
        "Noise on results: `statistical` is enough to hide what they tell beside outputs; `light` "
        "is weaker: it blurs that, as much as encryption does.",
        "the flooding",
    )

    name: ClassVar[str] = "ckks"
    about: ClassVar[str] = "by homomorphic encryption, for models with smooth activations"
    precision: ClassVar[Precision] = Precision(bits=50, scale=16, weight_scale=18, relu="sign")
    exact: ClassVar[bool] = False
    reach: ClassVar[str] = "reals"
    trials: ClassVar[tuple[Trial, ...]] = (
        Trial(("nn5",), ("ckks",), (1, 8)),
        Trial(("nn5",), ("ckks-collective-3",)),
        Trial(("breast",), ("ckks-collective-2", "ckks-collective-4")),
    )

    def check(self) -> None:
        if self.flooding == LIGHT and self.scenario == ENCRYPTED_MODEL:
            raise Misuse("a client could compute the key of an encrypted model under light noise")

    @property
    def collective(self) -> bool:
        """Whether a cohort computes."""
        return self.scenario == COLLECTIVE

    @property
    def statistical(self) -> bool:
        """Whether noise hides all that results tell beside outputs."""
        return self.flooding == STATISTICAL

    @property
    def serving(self) -> dict[str, Any]:
        """What a process of `privet-ckks` must know to serve it."""
        return {
            "role": COORDINATOR if self.collective else "server",
            "scenario": self.scenario,
            "statistical": self.statistical,
            "members": self.parties,
        }

    def flooded(self, *, statistical: bool) -> Ckks:
        """The same with this noise on results."""
        return replace(self, flooding=STATISTICAL if statistical else LIGHT)

    @property
    def trust(self) -> Trust:
        if self.collective:
            caution = (
                f"at most {self.parties - 1} of {self.parties} members collude, and the "
                "coordinator follows the protocol"
            )
            return Trust(
                caution,
                "semi-honest members, coordinator and client",
                "the client learns its prediction; coordinator and members learn nothing of it",
                caution,
            )
        return Trust(
            "client and server must not collude",
            "semi-honest client and server",
            "the client learns its prediction; the server learns nothing of input or prediction",
        )

    @property
    def mode(self) -> Mode:
        return Mode(self.name, scenario=self.scenario, flooding=self.flooding)

    @property
    def label(self) -> str:
        """As `Suite`: `ckks` by default, and what differs behind it."""
        words = [self.name]
        if self.scenario != ENCRYPTED_DATA:
            words.append(self.scenario)
        if self.collective:
            words.append(str(self.parties))
        if not self.statistical:
            words.append(self.flooding)
        return " ".join(words)

    @classmethod
    def labelled(cls) -> Sequence[Ckks]:
        cohorts = [
            cls(scenario=COLLECTIVE, parties=members, flooding=flooding)
            for members in MEMBERS
            for flooding in (STATISTICAL, LIGHT)
        ]
        return [cls(), cls(flooding=LIGHT), cls(scenario=ENCRYPTED_MODEL), *cohorts]

    @classmethod
    def settings(cls) -> Sequence[Ckks]:
        """As `Costed`: between two, and a cohort of the usual size."""
        return [cls(), COHORT]

    @classmethod
    def cohort(cls, members: int) -> Ckks:
        return cls(scenario=COLLECTIVE, parties=members)

    @property
    def members(self) -> int:
        return self.parties if self.collective else 0

    @property
    def kind(self) -> str:
        return f"{self.name}-{COLLECTIVE}" if self.collective else self.name

    def link_use(self, phase: str) -> LinkUse:
        if self.collective:
            return costing.COLLECTIVE
        return costing.KEYS if phase == "offline" else costing.EVALUATED

    def cost(self, program: Program, samples: int = 1) -> Costing:
        plan = self.figures(program)
        if self.collective:
            return costing.collective(plan, self.members)
        return costing.between_two(plan)

    def check_weights(self, compiled: Compiled) -> None:
        """As `Costed`: they must leave room for flooding."""
        public, private = compiled.program.to_public_bytes(), compiled.weights.to_private_bytes()
        plan_ckks(public, self.scenario, self.flooding, self.parties, private)

    def facts(self) -> dict[str, Any]:
        parties = self.parties if self.collective else 2
        return super().facts() | {"scenario": self.scenario, "parties": parties}

    def summary(self, plan: Mapping[str, Any], program_hash: str) -> tuple[str, ...]:
        return parameters(plan, program_hash)

    @property
    def jobs(self) -> tuple[Job, ...]:
        if self.collective:
            members = tuple(f"member {number}" for number in range(self.parties))
            return (
                Job("keys", "collective keys and the encrypted model", (COORDINATOR, *members)),
                Job("infer", "prediction", ("client", COORDINATOR, *members)),
            )
        product = "evaluation keys" if self.scenario == ENCRYPTED_DATA else "the encrypted model"
        pair = ("client", "server")
        return Job("keys", product, pair, serves=None), Job("infer", "prediction", pair)

    def plan(self, program: Program, link: Link | None = None) -> Planned:
        self.check_supports(program)
        public = program.to_public_bytes()
        plan = plan_ckks(public, self.scenario, self.flooding, self.parties)
        account = (*parameters(plan, program.program_hash), *packing(plan))
        return Planned(self, {"plan": plan}, partial(ckks_security, plan), account)

    def run_local(self, job: LocalJob) -> LocalResult:
        from privet.suites.ckks.local import run_local

        return run_local(self, job)


COHORT = Ckks(scenario=COLLECTIVE)
"""A cohort of the usual size."""


def encrypting(suite: Suite) -> Ckks:
    """The suite itself. Raises `Misuse` if it is none whose parties are processes of the program
    `privet-ckks`."""
    if not isinstance(suite, Ckks):
        raise Misuse(f"suite {suite.name} has no sessions of its own")
    return suite
