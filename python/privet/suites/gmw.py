"""Suite `gmw`: two parties, BFV for linear layers offline, Boolean sharing online (SecONNds)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, get_args

from privet._native import Plan
from privet.errors import Misuse

Rounds = Literal["linear", "log"]
"""Depth of comparisons: `linear` sends the fewest bytes, `log` takes the fewest rounds."""

LINEAR_ERROR = 1
TRUNCATION_ERROR = 1


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

    `correlations` counts each kind; `rounds` is an upper bound, since flights in the same
    direction join.
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


def plan(public: bytes, rounds: str) -> Plan:
    """Plans a program's public half.

    # Errors
    `Misuse` if `rounds` is unknown or a layer does not fit BFV's secure parameters;
    `InvalidProgram` if the public half is inconsistent.
    """
    if rounds not in get_args(Rounds):
        raise Misuse(f"rounds is {rounds!r}; {' or '.join(get_args(Rounds))} is possible")
    return Plan(public, rounds)


def forecast(planned: Plan) -> Forecast:
    """What one inference of a plan will take."""
    fields: dict[str, Any] = json.loads(planned.forecast())
    linear = tuple(LinearForecast(**entry) for entry in fields.pop("linear"))
    return Forecast(linear=linear, **fields)
