"""Suites that make material ahead of time, each entry good for one inference."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

from privet._native import Link, Plan, configs, label_of
from privet.errors import Misuse
from privet.suites.base import Job, LocalJob, LocalResult, Planned, Suite, Trust
from privet.suites.costing import Costed, Costing, LinkUse
from privet.suites.material import costing
from privet.suites.material.planning import account, ciphertexts, forecast, online_delay
from privet.suites.options import choice
from privet.suites.policy import Mode
from privet.suites.precision import Precision
from privet.suites.security import security

if TYPE_CHECKING:
    from privet.compiler.program.public import Program

DEALER_TRUST = "needs a dealer that colludes with neither party"
"""What dealt material rests on, for people."""

TRUNCATIONS = ("exact", "one-bit")

REVEALED = "the client learns its prediction; the server learns nothing of input or prediction"


@dataclass(frozen=True, kw_only=True)
class MaterialSuite(Costed):
    """A suite whose offline phase makes material, which a client keeps until an inference takes it.

    Its protocols are those of the native extension, which plans them.
    """

    truncation: str = choice(
        "exact",
        TRUNCATIONS,
        "Truncations: `exact` ones compute the carry, and results are those of the plaintext "
        "fixed-point executor, bit for bit; `one-bit` is weaker: it loses the carry, and a client "
        "that repeats an input can learn weights by the unit by which results are then off.",
        "truncation",
    )

    precision: ClassVar[Precision] = Precision(smooth="piecewise")

    making: ClassVar[str] = "material"
    """What people call what is made ahead."""

    own: ClassVar[tuple[str, ...]] = ()
    """Options that are one party's own business, so that neither plan nor label has them."""

    keyed: ClassVar[bool] = False
    """Whether material is keys, which an inference reads from disk."""

    @property
    def widest_ring(self) -> int:
        """As `Suite`: with guard bits it is the widest that programs have."""
        return 48

    @property
    @abstractmethod
    def dealt(self) -> bool:
        """Whether a dealer makes the material."""

    @property
    def choices(self) -> str:
        """All that both parties must choose alike, in JSON, as the native half reads it.

        # Errors
        `Misuse` if a choice is left open.
        """
        return json.dumps({k: v for k, v in self.to_json().items() if k not in self.own})

    @cached_property
    def label(self) -> str:
        return label_of(self.choices)

    @classmethod
    def labelled(cls) -> Sequence[Self]:
        configs_of = (json.loads(config) for config in configs())
        return [cls.from_json(config) for config in configs_of if config["suite"] == cls.name]

    @property
    def refills(self) -> bool:
        """Whether an inference without material makes it as it goes."""
        return False

    @property
    def fetches(self) -> bool:
        """Whether clients fetch something of a program once, before they prepare; how much, the
        forecast says as `kept_bytes`."""
        return False

    @property
    def trust(self) -> Trust:
        adversary = f"{self.mode.security} client and server"
        if self.dealt:
            condition = "the dealer must collude with neither party"
            return Trust(condition, adversary, REVEALED, DEALER_TRUST)
        return Trust("client and server must not collude", adversary, REVEALED)

    @property
    def mode(self) -> Mode:
        return Mode.labelled(self.alternatives()[0].label)

    @property
    def jobs(self) -> tuple[Job, ...]:
        making = ("client", "server", "dealer") if self.dealt else ("client", "server")
        return Job("prepare", "material", making), Job("infer", "prediction", making[:2])

    def alternatives(self) -> Sequence[Self]:
        """What is left to choose from, every choice made; the suite itself if nothing is open."""
        return (self,)

    def native(self, public: bytes, link: Link | None = None) -> Plan:
        """The plan of a program's public half, for every choice made; material is made over `link`.

        # Errors
        `Misuse` if a layer does not fit; `InvalidProgram` if the public half is inconsistent.
        """
        return Plan(public, self.choices, link)

    def plans(self, public: bytes, link: Link | None = None) -> dict[Self, Plan]:
        """A plan for each of the alternatives.

        # Errors
        As `native`.
        """
        return {
            alternative: alternative.native(public, link) for alternative in self.alternatives()
        }

    def plan(self, program: Program, link: Link | None = None) -> Planned:
        plans = self.plans(program.to_public_bytes(), link)
        alternative = quickest(plans, link)
        cost = forecast(plans[alternative])
        delay = online_delay(cost, link) if link else None
        facts = alternative.facts()
        return Planned(
            alternative,
            {
                "security": facts["security"],
                "rounds": facts["rounds"],
                "online_delay": delay,
                "forecast": asdict(cost),
            },
            partial(security, plans[alternative]),
            account(program, cost, alternative.comparisons(self), link, delay),
            ciphertexts(cost),
        )

    def comparisons(self, asked: Suite) -> str:
        """How it compares, and whether that was chosen for what was `asked`."""
        return "by keys"

    def link_use(self, phase: str) -> LinkUse:
        malicious = self.facts()["security"] == "malicious"
        return costing.link_use(phase, dealt=self.dealt, malicious=malicious)

    def cost(self, program: Program, samples: int = 1) -> Costing:
        self.check_supports(program)
        prediction = forecast(self.native(program.to_public_bytes()))
        return costing.cost(
            program,
            prediction,
            dealt=self.dealt,
            keys=self.keyed,
            prepared=self.prepares_ahead,
        )

    def run_local(self, job: LocalJob) -> LocalResult:
        from privet.suites.material.local import run_local

        return run_local(self, job)


S = TypeVar("S", bound=MaterialSuite)


def quickest(plans: Mapping[S, Plan], link: Link | None) -> S:
    """The one of those planned that a link delays least; without a link, the first."""
    if link is None or len(plans) == 1:
        return next(iter(plans))
    delays = {
        alternative: online_delay(forecast(plan), link) for alternative, plan in plans.items()
    }
    return min(delays, key=lambda alternative: delays[alternative])


def material_suite(suite: Suite) -> MaterialSuite:
    """The suite itself. Raises `Misuse` if it makes no material."""
    if not isinstance(suite, MaterialSuite):
        raise Misuse(f"suite {suite.name} makes no material ahead of time: it runs by `privet run`")
    return suite
