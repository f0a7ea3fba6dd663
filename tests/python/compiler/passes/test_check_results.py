"""Outputs that have no room where encrypted results are decrypted."""

from __future__ import annotations

import pytest
from tests.python.compiler.graph.single import Array, constant, model, node

import privet
from privet.errors import UnsupportedModel

X, W = {"x": (1, 4)}, {"w": constant(4, 3)}


def rows(spread: float) -> list[Array]:
    return [constant(1, 4, seed=seed, spread=spread) for seed in range(8)]


@pytest.mark.parametrize("operator", ["MatMul", "Identity"])
def test_outputs_that_would_wrap_are_refused_by_name(operator: str) -> None:
    """Amounts, or numbers that a model passes on: their remainder came."""
    inputs = ["x", "w"] if operator == "MatMul" else ["x"]
    proto = model([node(operator, inputs, ["amount"])], X, ["amount"], W)
    with pytest.raises(UnsupportedModel, match=r"holds up to 128.*Divide it by") as refusal:
        privet.compile(proto, suite="ckks", calibration=rows(1e3))
    assert [problem.node for problem in refusal.value.problems] == ["amount"]
    privet.compile(proto, suite="gmw", calibration=rows(1e3))
    privet.compile(proto, suite="ckks", calibration=rows(10.0))
