"""What a suite's phases take by formula, without times: for `privet plan`, and for studies.

A suite that says this of itself is `Costed`: its bytes and rounds, counts of what it computes
(`privet.planner` finds out what one of each costs on a machine), and how it uses its link.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, ClassVar, Self

from privet.compiler.compile import Compiled
from privet.suites.base import Suite
from privet.suites.material.planning import ExtensionForecast
from privet.suites.refusals import refusal

if TYPE_CHECKING:
    from privet.compiler.program.public import Program

Work = Mapping[str, float]
"""Counts of what a phase computes, by kind."""


@dataclass(frozen=True)
class Phase:
    """The offline or the online phase of a batch.

    `seconds` by the clock and `cpu_seconds` of both parties' processors; bytes that client and
    server sent each other, and that a dealer sent to each; `rounds` of the client.
    """

    seconds: float
    cpu_seconds: float | None
    bytes_client: int
    bytes_server: int
    rounds: int
    dealer_bytes_client: int = 0
    dealer_bytes_server: int = 0
    work: Work = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        dealer_bytes = self.dealer_bytes_client + self.dealer_bytes_server
        return self.bytes_client + self.bytes_server + dealer_bytes

    @property
    def fullest_bytes(self) -> int:
        """What the fullest of the links' directions carries; each pair of parties has a link."""
        dealer_bytes = max(self.dealer_bytes_client, self.dealer_bytes_server)
        return max(self.bytes_client, self.bytes_server, dealer_bytes)


@dataclass(frozen=True)
class LinkUse:
    """How a phase uses its link: half trips beyond its rounds, the part of computing or transfer,
    whichever is shorter, that the other does not hide, half trips of a round, and whether the two
    directions take turns, so that their bytes add up."""

    lead: int
    exposed: float
    half_trips: int = 1
    in_turns: bool = False


@dataclass(frozen=True)
class Costing:
    """What formulas say of a program: phases without times, bytes of a material entry and memory in
    MB beside the process, for each party."""

    offline: Phase
    online: Phase
    material_bytes: Mapping[str, int]
    memory_mb: Mapping[str, float]
    extension: str | None = None
    extensions: tuple[ExtensionForecast, ...] = ()


@dataclass(frozen=True)
class Trial:
    """Models of the zoo, settings by name, and batches that are run to find unit costs."""

    models: tuple[str, ...]
    settings: tuple[str, ...]
    batches: tuple[int, ...] = (1,)


class Costed(Suite):
    """A suite that `privet plan` weighs, in the settings that are worth it."""

    trials: ClassVar[tuple[Trial, ...]]
    """What is run to find what a unit of its work costs; seconds on two cores."""

    @classmethod
    @abstractmethod
    def settings(cls) -> Sequence[Self]:
        """The instances that are weighed."""

    @classmethod
    def cohort(cls, members: int) -> Self | None:
        """The instance in which so many parties share a key; None if the suite has none.

        # Errors
        `Misuse` if a cohort cannot have that size.
        """
        return None

    @property
    def members(self) -> int:
        """How many parties share a key; 0 if client and server do not."""
        return 0

    @property
    def kind(self) -> str:
        """What instances have in common whose work has the same kinds."""
        return self.name

    @property
    def family(self) -> str:
        """The kind, with the size of a cohort."""
        return f"{self.kind}-{self.members}" if self.members else self.kind

    @property
    def setting(self) -> str:
        """The name of the instance: its family, and what differs within that."""
        return self.family

    def refusal(self, operation: str) -> tuple[str, str] | None:
        return refusal(operation, self.name)

    @abstractmethod
    def link_use(self, phase: str) -> LinkUse:
        """How its phase `offline` or `online` uses the link."""

    @abstractmethod
    def cost(self, program: Program, samples: int = 1) -> Costing:
        """What formulas say of a program, of `samples` that share plaintexts where it packs.

        # Errors
        `UnsupportedModel` if it has no protocol for a layer, `Misuse` if no parameters fit.
        """

    def check_weights(self, compiled: Compiled) -> None:
        """Nothing, unless a run would refuse the weights of a program.

        # Errors
        `Misuse` with what is wrong with them.
        """
        return


def multiply_adds(program: Program) -> int:
    """Multiply-adds of convolutions and dense layers of the whole batch."""
    total = 0
    for operation in program.operations:
        outputs = prod(program.values[operation.output].shape)
        shape = operation.attributes.get("weight_shape", ())
        if operation.op == "conv2d":
            total += outputs * prod(shape[1:])
        elif operation.op == "dense":
            total += outputs * shape[0]
    return total
