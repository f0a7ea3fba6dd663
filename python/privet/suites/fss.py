"""Suite `fss`: function secret sharing with keys from a dealer (Orca, SIGMA); against parties that
deviate from the protocol, on authenticated values (SHARK)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from privet.suites.costing import Trial
from privet.suites.material.suite import MaterialSuite
from privet.suites.options import choice
from privet.suites.refusals import PRODUCTS, SMOOTH, decides

UNAUTHENTICATED = (
    "a smooth function is looked up in a table, which --security malicious does not authenticate",
    "Choose --security semi-honest or suite gmw, or put a ReLU in its place",
)

UNCHECKED = (
    "it multiplies two private tensors, which --security malicious does not authenticate",
    "Choose --security semi-honest",
)

UNDECIDED = (
    "it chooses by comparisons, which --security malicious does not authenticate",
    "Choose --security semi-honest or suite gmw",
)

STATELESS = (
    "state is not authenticated from one inference to the next by --security malicious",
    "Choose --security semi-honest",
)

LEVELS = ("semi-honest", "malicious")


@dataclass(frozen=True, kw_only=True)
class Fss(MaterialSuite):
    """The choices of suite `fss`.

    With `security="malicious"` a party that deviates from the protocol in any message is caught
    before there is an output.
    """

    security: str = choice(
        "semi-honest",
        LEVELS,
        "Against `semi-honest` parties or `malicious` ones: who deviates is caught before there is "
        "an output.",
        "security",
    )

    name: ClassVar[str] = "fss"
    about: ClassVar[str] = "with keys from a dealer that must collude with neither party"
    keyed: ClassVar[bool] = True
    trials: ClassVar[tuple[Trial, ...]] = (
        Trial(("mnist-1", "m1"), ("fss", "fss-malicious"), (1, 8)),
        Trial(("m2",), ("fss", "fss-malicious")),
    )

    @property
    def dealt(self) -> bool:
        return True

    @classmethod
    def settings(cls) -> Sequence[Fss]:
        """As `Costed`: at each security level."""
        return [cls(security=level) for level in LEVELS]

    @property
    def kind(self) -> str:
        return f"{self.name}-malicious" if self.security == "malicious" else self.name

    def facts(self) -> dict[str, Any]:
        return super().facts() | {
            "security": self.security,
            "truncation": self.truncation,
            "correlations": "dealer",
        }

    def refusal(self, operation: str) -> tuple[str, str] | None:
        if self.security == "malicious":
            if operation in SMOOTH:
                return UNAUTHENTICATED
            if operation in PRODUCTS:
                return UNCHECKED
            if decides(operation):
                return UNDECIDED
            if operation == "state":
                return STATELESS
        return super().refusal(operation)
