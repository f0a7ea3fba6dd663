"""Suite `gmw`: BFV for linear layers, Boolean sharing for the rest, two parties (SecONNds)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from privet.errors import Misuse
from privet.suites.base import Job, LocalJob, LocalResult, Suite
from privet.suites.costing import Costing, Trial
from privet.suites.material.suite import MaterialSuite
from privet.suites.options import choice, number, switch
from privet.suites.refusals import PRODUCTS

if TYPE_CHECKING:
    from privet.compiler.program.public import Program

AUTO = "auto"
"""In place of a depth: the one that a link makes quickest."""

NO_TRIPLES = (
    "it multiplies two private tensors, for which triples are made ahead, in a ring",
    "Let linear layers run offline and in a ring, or choose suite fss",
)

DEPTHS = ("linear", "log", "blocks")


@dataclass(frozen=True, kw_only=True)
class Gmw(MaterialSuite):
    """The choices of suite `gmw`.

    With `linear="online"` material holds correlations alone, and nothing need be prepared: what is
    not in store is made while the network runs. `field="prime"` shares linear layers modulo a
    prime, in slots. With `correlations="dealer"` a third party makes material, which must collude
    with neither of the two.
    """

    rounds: str = choice(
        AUTO,
        (AUTO, *DEPTHS),
        "Comparisons: `linear` sends the fewest bytes, `blocks` takes the fewest rounds, `log` "
        "lies between; `auto` takes the one that suits the link.",
        "rounds",
    )
    field: str = choice(
        "ring",
        ("ring", "prime"),
        "What linear layers are shared in. `prime` packs them densely in slots, with results that "
        "are those of the plaintext fixed-point executor, bit for bit.",
        "the field",
    )
    linear: str = choice(
        "offline",
        ("offline", "online"),
        "When linear layers run under encryption: ahead of time, or `online`; then a client need "
        "not prepare, and correlations are made as the network runs.",
        "when linear layers run",
    )
    correlations: str = choice(
        "parties",
        ("parties", "dealer"),
        "Who makes material: the two `parties`, or a `dealer` that must collude with neither.",
        "the source of correlations",
    )
    encrypts: str = choice(
        "masks",
        ("masks", "weights"),
        "What is encrypted for linear layers that run offline: the client's `masks`, each time; or "
        "the server's `weights`, once, which the client keeps and multiplies wherever that is "
        "cheaper. A client that deviates can learn the weights then.",
        "what is encrypted",
    )
    transfers: str = choice(
        AUTO,
        (AUTO, "soft-spoken", "silent"),
        "What makes correlations: SoftSpokenOT, which assumes nothing of noisy codes, or silent "
        "OT, which sends least; with `silent` a gigabyte counts as 80 seconds at least, in linear "
        "layers as well, and material is of its own kind. `auto` takes what is quickest over the "
        "link, bytes at their price.",
        "the OT extension",
    )
    byte_price: int = number(
        0,
        0,
        1_000_000,
        "Where traffic is paid for: by how many seconds making correlations may take longer for "
        "each gigabyte that it sends less; 0 counts time alone.",
        "the price of bytes",
    )
    weights: str | None = choice(
        None,
        ("prepared", "none"),
        "Weights under encryption: transformed once and kept (by default up to 64 MiB a layer), "
        "or transformed for each use.",
        "the form of weights",
    )
    unprepared: bool = switch("Prepare nothing; linear layers must run online.", "unprepared")

    name: ClassVar[str] = "gmw"
    about: ClassVar[str] = "by the two parties alone: encryption offline, secret sharing online"
    making: ClassVar[str] = "correlations"
    own: ClassVar[tuple[str, ...]] = ("weights", "unprepared")
    trials: ClassVar[tuple[Trial, ...]] = (
        Trial(("mnist-1", "m1"), ("gmw-linear", "gmw-blocks"), (1, 8)),
        Trial(("mnist-1", "m1"), ("gmw-dealer-linear", "gmw-dealer-blocks"), (1, 8)),
        Trial(("m2",), ("gmw-log", "gmw-dealer-log")),
    )
    variants: ClassVar[dict[str, tuple[str, dict[str, Any]]]] = {
        "exact": ("the default: the fixed-point executor's result, bit for bit", {}),
        "one-bit": ("weaker: truncations off by 1 unit now and then", {"truncation": "one-bit"}),
        "prime": ("as exact; linear layers modulo a prime", {"field": "prime"}),
        "kept-weights": (
            "as exact; encrypted weights are sent once and kept",
            {"encrypts": "weights"},
        ),
        "one-shot": ("as exact; linear layers encrypted online", {"linear": "online"}),
    }

    def check(self) -> None:
        if self.field == "prime" and self.correlations != "parties":
            raise Misuse("a prime field is a choice of suite gmw without a dealer")
        if self.field == "prime" and self.truncation != "exact":
            raise Misuse("in a prime field truncations are exact: leave out one-bit truncation")
        if self.linear == "online" and (self.dealt or self.field == "prime"):
            raise Misuse("linear layers run online in suite gmw in the ring, without a dealer")
        if self.unprepared and self.linear == "offline":
            raise Misuse("without preparation linear layers must run online")
        if self.encrypts == "weights" and (
            self.dealt or self.field == "prime" or self.linear == "online"
        ):
            raise Misuse(
                "a client keeps encrypted weights where the parties make material ahead of time, "
                "in a ring"
            )

    @property
    def dealt(self) -> bool:
        return self.correlations == "dealer"

    def refusal(self, operation: str) -> tuple[str, str] | None:
        if operation in PRODUCTS and (self.linear == "online" or self.field == "prime"):
            return NO_TRIPLES
        return super().refusal(operation)

    @property
    def widest_ring(self) -> int:
        return 0 if self.field == "prime" else super().widest_ring

    @property
    def fetches(self) -> bool:
        return self.encrypts == "weights"

    @property
    def refills(self) -> bool:
        return self.linear == "online"

    @property
    def choices(self) -> str:
        if self.rounds == AUTO:
            raise Misuse("rounds are left open: take one of `alternatives`")
        return super().choices

    @property
    def jobs(self) -> tuple[Job, ...]:
        return super().jobs[1:] if self.unprepared else super().jobs

    def without_preparation(self) -> Gmw:
        """As `Suite`: linear layers must run online."""
        return replace(self, unprepared=True)

    @classmethod
    def settings(cls) -> Sequence[Gmw]:
        """As `Costed`: each depth, without a dealer and with one."""
        sources = ("parties", "dealer")
        return [cls(rounds=depth, correlations=source) for source in sources for depth in DEPTHS]

    def cost(self, program: Program, samples: int = 1) -> Costing:
        if self.field == "prime":  # rotations take most of their time
            raise Misuse(
                "linear layers modulo a prime have no unit costs: `privet run --field prime` "
                "measures them"
            )
        return super().cost(program, samples)

    @property
    def kind(self) -> str:
        return f"{self.name}-dealer" if self.dealt else self.name

    @property
    def setting(self) -> str:
        return f"{self.family}-{self.rounds}"

    def alternatives(self) -> Sequence[Gmw]:
        if self.rounds != AUTO:
            return (self,)
        return [replace(self, rounds=rounds) for rounds in DEPTHS]

    def facts(self) -> dict[str, Any]:
        return super().facts() | {
            "rounds": self.rounds,
            "truncation": self.truncation,
            "field": self.field,
            "linear": self.linear,
            "encrypts": self.encrypts,
            "transfers": "silent" if self._saves_bytes else AUTO,
            "correlations": self.correlations,
        }

    @property
    def _saves_bytes(self) -> bool:
        """Whether material is planned for silent OT; whichever other extension makes it, it is the
        same."""
        return self.transfers == "silent" and not self.dealt and self.field == "ring"

    def comparisons(self, asked: Suite) -> str:
        is_automatic = isinstance(asked, Gmw) and asked.rounds == AUTO
        return f"{self.rounds} rounds" + (" (chosen)" if is_automatic else "")

    def run_local(self, job: LocalJob) -> LocalResult:
        from privet.suites.material.local import run_local

        return run_local(self, job, prepared=not self.unprepared, weights=self.weights)
