"""Suite `gmw`: two parties, BFV for linear layers offline, Boolean sharing online (SecONNds)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, get_args

from privet._native import Plan
from privet.errors import Misuse

Rounds = Literal["linear", "log"]
"""Depth of comparisons: `linear` sends the fewest bytes, `log` takes the fewest rounds."""

Truncation = Literal["one-bit", "exact"]
"""What becomes of the carry that a truncation drops: lost for free, or computed."""


@dataclass(frozen=True)
class LinearForecast:
    """The offline half of one linear layer: ciphertexts and bytes each way."""

    name: str
    operator: str
    layout: str
    bytes_client: int
    bytes_server: int


@dataclass(frozen=True)
class Forecast:
    """What one inference takes, by formula: correlations to make, bytes each way, rounds.

    `correlations` counts each kind; `online_rounds` are those of the party that waits more often.
    """

    linear: tuple[LinearForecast, ...]
    correlations: dict[str, int]
    offline_bytes_client: int
    offline_bytes_server: int
    online_bytes_client: int
    online_bytes_server: int
    online_rounds: int
    material_bytes_client: int
    material_bytes_server: int


def plan(public: bytes, rounds: str, truncation: str = "one-bit") -> Plan:
    """Plans a program's public half.

    # Errors
    `Misuse` if an option is unknown or a layer does not fit BFV's secure parameters;
    `InvalidProgram` if the public half is inconsistent.
    """
    if rounds not in get_args(Rounds):
        raise Misuse(f"rounds is {rounds!r}; {' or '.join(get_args(Rounds))} is possible")
    if truncation not in get_args(Truncation):
        raise Misuse(
            f"truncation is {truncation!r}; {' or '.join(get_args(Truncation))} is possible"
        )
    return Plan(public, rounds, truncation)


def forecast(planned: Plan) -> Forecast:
    """What one inference of a plan will take."""
    fields: dict[str, Any] = json.loads(planned.forecast())
    linear = tuple(LinearForecast(**entry) for entry in fields.pop("linear"))
    return Forecast(linear=linear, **fields)
