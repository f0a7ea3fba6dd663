"""The security budget of a plan: what it assumes and loses, added up.

`docs/explanation/security-budget.md` explains it.

Suites `gmw`, `fss` and `stream` take it from the plans that run; suite `ckks` states what its
program plans and enforces.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import log2
from typing import Any

from privet._native import Plan, StreamPlan

PROMISED_BITS = 40.0
"""Bits below which a statistical loss of an inference is said to be beneath the promise."""

MODEL_INFERENCES = 2**20
"""Inferences with one model that the last column of losses is for."""


@dataclass(frozen=True)
class Assumption:
    """A problem that must be hard: `count` instances of `bits` bits, `total_bits` together."""

    name: str
    problem: str
    bits: float
    count: int
    total_bits: float


@dataclass(frozen=True)
class Loss:
    """A statistical loss: `count` units an inference, growing as a `sum`, a `root` or not."""

    name: str
    unit: str
    each_bits: float
    count: int
    growth: str
    inference_bits: float
    key_bits: float
    model_bits: float


@dataclass(frozen=True)
class Security:
    """Both kinds of terms with their sums; a sum is none if nothing is lost."""

    assumptions: tuple[Assumption, ...]
    computational_bits: float
    losses: tuple[Loss, ...]
    inference_bits: float | None
    key_bits: float | None
    model_bits: float | None
    key: str
    key_inferences: int | None
    notes: tuple[str, ...]


def security(planned: Plan | StreamPlan) -> Security:
    """The budget of a plan of suite `gmw`, `fss` or `stream`."""
    return _parsed(json.loads(planned.security()))


def ckks_security(plan: Mapping[str, Any]) -> Security:
    """The budget of a plan of suite `ckks`, as `plan_ckks` gives it."""
    claims = plan["security"]
    # Keys, shares and ciphertexts under one secret are samples of one instance: the one that the
    # largest share of its limit is used of counts.
    worst = max(claims["keys"], key=lambda key: (key["log_q"] + key["log_p"]) / key["limit_log_qp"])
    problem = (
        f"ring-LWE, dimension 2^{worst['log_n']}, "
        f"log QP = {worst['log_q'] + worst['log_p']:.1f} of "
        f"{worst['limit_log_qp']:.0f} that the table allows, {worst['secret']} secret"
    )
    secrets = len({(key["log_n"], key["secret"]) for key in claims["keys"]})
    assumption = Assumption("keys and ciphertexts", problem, 128.0, secrets, 128 - log2(secrets))
    notes = ["decrypted results are for the owner of the key alone"]
    flooding = claims["flooding"]
    losses: tuple[Loss, ...] = ()
    if flooding is None:
        notes.append("flooding is light or none: it hides no weights statistically")
    else:
        result_bits, bits = flooding["bits_per_result"], flooding["bits_per_key"]
        count = flooding["results_per_key"]
        # A key's budget is enforced; more results take more keys.
        model = result_bits - log2(MODEL_INFERENCES) / 2
        losses = (
            Loss(
                "flooding",
                "ciphertext of a result",
                result_bits,
                1,
                "root",
                result_bits,
                bits,
                model,
            ),
        )
        notes.append(
            f"flooding holds for inputs {flooding['inputs'].removeprefix('those ')}; stated is the "
            "least: the owner of the weights computes what a model has, and refuses less"
        )
    return Security(
        (assumption,),
        assumption.total_bits,
        losses,
        losses[0].inference_bits if losses else None,
        losses[0].key_bits if losses else None,
        losses[0].model_bits if losses else None,
        "key of a session, by ciphertexts of results",
        count if losses else None,
        tuple(notes),
    )


def _parsed(fields: dict[str, Any]) -> Security:
    assumptions = tuple(Assumption(**term) for term in fields.pop("assumptions"))
    losses = tuple(Loss(**term) for term in fields.pop("losses"))
    notes = tuple(fields.pop("notes"))
    return Security(assumptions=assumptions, losses=losses, notes=notes, **fields)
