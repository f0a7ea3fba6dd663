"""`privet inspect --suite ckks`: what layers can reach, and why no ring bounds them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from privet.cli import app

pytestmark = pytest.mark.go

MODEL = Path(__file__).parents[3] / "zoo" / "models" / "digits-smooth" / "square.onnx"


def inspected(*words: str) -> str:
    """What the command prints."""
    ask = ["inspect", str(MODEL), "--suite", "ckks", "--input-range", "0", "1", *words]
    result = CliRunner().invoke(app, ask)
    assert result.exit_code == 0, result.output
    return result.output


def test_what_layers_reach_is_shown_without_a_ring() -> None:
    reach = json.loads(inspected("--json"))["reach"]
    assert "Rings do not apply" in reach["note"]
    layers = {layer["operator"]: layer for layer in reach["layers"]}
    assert layers["conv2d"]["can_reach"] >= layers["conv2d"]["measured"] > 0
    # Beyond an activation of any size there is no bound.
    assert layers["dense"]["can_reach"] is None
    assert all("ring_bits" not in layer for layer in reach["layers"])


def test_people_are_told_too() -> None:
    text = inspected()
    assert "Rings do not apply" in text
    assert "no bound" in text
    assert "Not calibrated" in text
