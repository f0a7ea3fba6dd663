"""What every suite is: a frozen type that holds each choice of one way to compute a prediction.

An instance is at once the argument of `privet.run`, the options of commands, the JSON of jobs, the
label of material, and what a server accepts or refuses.
"""

from __future__ import annotations

import dataclasses
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from privet._native import Link
from privet.compiler.compile import Compiled
from privet.errors import Misuse, ModelError, Problem, UnsupportedModel
from privet.suites.costs import NOTHING, DealerCost, LayerCost, MemoryUse, PhaseCost
from privet.suites.options import check_fields, fields_of
from privet.suites.policy import Mode, Weakness
from privet.suites.precision import Precision
from privet.suites.security import Security
from privet.suites.text import TextGrid

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from privet.compiler.program.public import Program

    Array = npt.NDArray[np.generic]

PAIR = ("client", "server", "dealer")
"""The parties of an inference at one server, with the dealer that some suites take."""

COORDINATOR = "coordinator"
"""The party in a server's place that has the public half of a program alone."""

JOB_FACTS = {
    "suite": "the suite",
    "security": "the security level",
    "rounds": "the depth of comparisons, where the suite has a choice of it",
    "truncation": "what becomes of the carry of truncations",
    "correlations": "who makes material",
    "field": "what linear layers are shared in",
    "linear": "when linear layers run under encryption",
    "encrypts": "what is encrypted for linear layers, where the suite has a choice of it",
    "transfers": "`silent` where material is planned to save bytes, by silent OT",
    "cipher": "what hides values from the server, where the suite has a choice of it",
    "key_bits": "bits of the client's key under that cipher, where there is a choice of them",
}
"""Those of a suite's facts that client and service tell each other of a job, with what they are."""

Progress = Callable[[str, int, int, str], None]
"""Called with the phase, steps done, steps in all, and the name of the next step."""


@dataclass(frozen=True)
class Trust:
    """What a prediction rests on: who must not collude, against which adversary it holds, and what
    is revealed to whom. `caution` is what must be stated with every result, because it goes beyond
    the two parties' following the protocol; None if nothing does."""

    collusion: str
    adversary: str
    revealed: str
    caution: str | None = None


@dataclass(frozen=True)
class Job:
    """A phase of a suite: what it `makes` (material, keys, a prediction), and who takes part.

    `serves` is for how many inferences that is good; None for any number. What is not made `ahead`
    cannot be kept: the job after it follows in the same session.
    """

    name: str
    makes: str
    parties: tuple[str, ...]
    serves: int | None = 1
    ahead: bool = True


@dataclass(frozen=True)
class Planned:
    """A program planned for a suite, every choice made.

    `figures` are those of the plan for programs, by the keys of `privet inspect --json`; `account`
    is what they say to people, `details` the same of each linear layer; `security` adds up what it
    assumes and loses.
    """

    suite: Suite
    figures: Mapping[str, Any]
    security: Callable[[], Security]
    account: tuple[str | TextGrid, ...]
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class LocalJob:
    """An inference with every party on this machine.

    `given` are the model's inputs by name, of which its front makes `inputs`, those of the
    program; without a front they are the same. `alone` is the model compiled for one sample, for a
    suite that runs a batch on such a program (`Suite.compiled_batch`). `memory` is the limit of
    each party in bytes; `folder` is empty.
    """

    folder: Path
    compiled: Compiled
    given: Mapping[str, Array]
    inputs: Mapping[str, Array]
    timeout: float
    link: Link | None = None
    memory: int | None = None
    progress: Progress | None = None
    alone: Compiled | None = None


@dataclass(frozen=True)
class LocalResult:
    """What became of a `LocalJob`: the outputs' integers, and costs.

    `suite` has every choice made; `extension` is the OT extension that made correlations, `plan`
    the figures of the suite's plan where it has one, `account` what there is to say to people of
    how it ran.
    """

    suite: Suite
    integers: list[Array]
    online: PhaseCost
    layers: tuple[LayerCost, ...]
    memory: dict[str, MemoryUse]
    offline: PhaseCost = NOTHING
    dealer: DealerCost | None = None
    extension: str | None = None
    plan: Mapping[str, Any] | None = None
    account: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Suite(ABC):
    """A suite with its options. Subclasses are frozen dataclasses whose fields are options
    (`privet.suites.options`); their defaults are what a newcomer should have.

    # Errors
    `Misuse` if a value is unknown, or values do not go together.
    """

    name: ClassVar[str]
    """How commands, JSON and labels call it."""

    about: ClassVar[str]
    """One line for people who choose."""

    precision: ClassVar[Precision]
    """What a model is compiled for where the user names nothing else, but for the widest ring."""

    @property
    def widest_ring(self) -> int:
        """Bits of the widest ring that is chosen for a model that the usual ones do not hold; 0
        if none is."""
        return 0

    def as_compiled(
        self,
        bits: int | None = None,
        scale: int | None = None,
        weight_scale: int | None = None,
    ) -> Precision:
        """What a model is compiled for with these options, and with widths where they are given."""
        widths = self.precision.with_widths(bits, scale, weight_scale)
        return dataclasses.replace(widths, widest=self.widest_ring)

    exact: ClassVar[bool] = True
    """Whether it computes the fixed-point executor's numbers, so that a difference is in units
    of the last place."""

    reach: ClassVar[str] = "narrow"
    """Where values must fit: `narrow` rings of each layer, the `whole` ring, or `reals`, which have
    no bound."""

    variants: ClassVar[Mapping[str, tuple[str, Mapping[str, Any]]]] = {}
    """Sets of options that are worth comparing, by name, with what each promises."""

    def __post_init__(self) -> None:
        check_fields(self)
        self.check()

    def check(self) -> None:  # noqa: B027 - most suites have nothing to check
        """Raises `Misuse` if options do not go together."""

    # What is promised.

    @property
    @abstractmethod
    def trust(self) -> Trust:
        """What a prediction rests on."""

    @property
    @abstractmethod
    def mode(self) -> Mode:
        """Every choice that a server may forbid."""

    @property
    def weaknesses(self) -> tuple[Weakness, ...]:
        """In which ways it promises less than the default."""
        return self.mode.weaknesses

    # What it is called.

    @property
    @abstractmethod
    def label(self) -> str:
        """The suite with every choice that both parties must make alike, as material is labelled.

        # Errors
        `Misuse` if a choice is left open.
        """

    @classmethod
    def from_label(cls, label: str) -> Self | None:
        """The suite with its options of which `label` is the label; None if there is none."""
        return next((suite for suite in cls.labelled() if suite.label == label), None)

    @classmethod
    @abstractmethod
    def labelled(cls) -> Sequence[Self]:
        """One instance for each label."""

    @classmethod
    def served(cls) -> Sequence[Self]:
        """One instance for each way in which a service can offer it."""
        return cls.labelled()

    def to_json(self) -> dict[str, Any]:
        """Its name and every option, as `from_json` reads them."""
        return {"suite": self.name, **dataclasses.asdict(self)}

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        """The suite with these options by the names of its fields.

        # Errors
        `Misuse` if one is unknown.
        """
        option_names = [option.name for option in fields_of(cls)]
        unknown = [name for name in options if name not in option_names]
        if unknown:
            listing = f"it has {', '.join(option_names)}" if option_names else "it has none"
            raise Misuse(f"suite {cls.name} has no option {', '.join(unknown)}: {listing}")
        return cls(**options)

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """The suite that `to_json` wrote; options that are left out have their defaults.

        # Errors
        `Misuse` if the document is of another suite, or has an option that this one has not.
        """
        if not isinstance(document, Mapping) or document.get("suite") != cls.name:
            raise Misuse(f"{json.dumps(document)[:80]} describes no suite {cls.name}")
        return cls.from_options({k: v for k, v in document.items() if k != "suite"})

    def facts(self) -> dict[str, Any]:
        """What every result says of how it was made, by the keys of JSON for programs. A choice
        that a suite does not have is None or `none`."""
        return {
            "suite": self.name,
            "security": "semi-honest",
            "rounds": None,
            "truncation": "none",
            "field": "ring",
            "linear": "offline",
            "encrypts": None,
            "transfers": None,
            "cipher": None,
            "key_bits": None,
            "correlations": "none",
            "scenario": None,
            "parties": 2,
        }

    def comparisons(self, asked: Suite) -> str:
        """How it compares, and whether that was chosen for what was `asked`; empty where there is
        nothing to say."""
        return ""

    def summary(self, plan: Mapping[str, Any], program_hash: str) -> tuple[str, ...]:
        """What the figures of its plan say to people."""
        return ()

    # What it does.

    @property
    @abstractmethod
    def jobs(self) -> tuple[Job, ...]:
        """Its phases in order; the last one makes the prediction."""

    @property
    def prepares_ahead(self) -> bool:
        """Whether something is made for an inference before it is asked for."""
        return any(job.ahead for job in self.jobs[:-1])

    @property
    def partners(self) -> tuple[str, ...]:
        """Who takes part in an inference besides the client, the dealer, and whoever serves."""
        return tuple(party for party in self.jobs[-1].parties if party not in (*PAIR, COORDINATOR))

    @property
    def serves_weights(self) -> bool:
        """Whether whoever serves has the weights."""
        return COORDINATOR not in self.jobs[-1].parties

    @property
    def in_sessions(self) -> bool:
        """Whether inferences are made in sessions with a process of the model: its keys serve any
        number of them, or others take part."""
        return self.jobs[0].serves is None or bool(self.partners)

    def without_preparation(self) -> Suite:
        """The same, with nothing made ahead of an inference.

        # Errors
        `Misuse` if it cannot do without.
        """
        if self.prepares_ahead:
            raise Misuse(f"suite {self.name} prepares each inference: ask with preparation")
        return self

    def refusal(self, operation: str) -> tuple[str, str] | None:
        """Why it does not compute an operation of this kind, and what to do instead; None if it
        does."""
        return None

    def supports(self, program: Program) -> list[Problem]:
        """Every operation that it does not compute, and every input that it does not take."""
        parts = [(entry.name, "one_hot") for entry in program.inputs if entry.one_hot]
        parts += [(state.name, "state") for state in program.state]
        parts += [(operation.name, operation.op) for operation in program.operations]
        return [
            Problem(name, kind, *refusal)
            for name, kind in parts
            if (refusal := self.refusal(kind)) is not None
        ]

    def check_supports(self, program: Program) -> None:
        """Raises `UnsupportedModel` with every operation that it does not compute."""
        if problems := self.supports(program):
            raise UnsupportedModel(problems)

    def runs(self, program: Program) -> bool:
        """Whether it computes a program, shapes and all."""
        return not self.supports(program)

    def obstacle(self, program: Program) -> ModelError | Misuse | None:
        """Why it does not run a program with these options; None if it does."""
        try:
            self.check_supports(program)
            self.plan(program)
        except (ModelError, Misuse) as error:
            return error
        return None

    def compiled_batch(self, batch: int) -> int:
        """The samples of the program that a batch of so many runs on."""
        return batch

    @abstractmethod
    def plan(self, program: Program, link: Link | None = None) -> Planned:
        """Plans a program, and chooses what was left open by what suits the link.

        # Errors
        `Misuse` if a layer does not run with these options.
        """

    def figures(self, program: Program, samples: int = 1) -> dict[str, Any]:
        """The figures of its plan, of `samples` that share plaintexts where a suite packs."""
        return dict(self.plan(program).figures["plan"])

    @abstractmethod
    def run_local(self, job: LocalJob) -> LocalResult:
        """Runs every party on this machine.

        # Errors
        `Misuse` if the job wants what the suite cannot do; `PeerError` if a party fails.
        """
