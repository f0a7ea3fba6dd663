"""`privet inspect --suite ckks` on Transformers: every part that it cannot do, by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from privet.cli import app

MODELS = Path(__file__).parents[3] / "zoo" / "models"


@pytest.mark.parametrize("name", ["digits-vit", "docs-bert"])
def test_functions_comparisons_and_products_are_named_for_each_layer(name: str) -> None:
    samples = ["--calibration", str(MODELS / f"{name}-samples.npy")]
    ask = ["inspect", str(MODELS / f"{name}.onnx"), "--suite", "ckks", "--json", *samples]
    result = CliRunner().invoke(app, ask)
    assert result.exit_code != 0
    problems = {
        (problem["node"], problem["operator"]) for problem in json.loads(result.output)["problems"]
    }
    for layer in ("layer1", "layer2"):
        parts = {"exp of relu", "reciprocal", "max_pool2d"}
        assert {(f"{layer}.weights", part) for part in parts} <= problems
        assert {(f"{layer}.{part}.matmul", "matmul") for part in ("scores", "context")} <= problems
    norms = {node for node, operator in problems if operator == "reciprocal of sqrt"}
    assert len(norms) >= 4
