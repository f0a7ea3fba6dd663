"""`--weight-scale`: weights have fractional bits of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from privet.cli import app

MODELS = Path(__file__).parents[3] / "zoo" / "models"
MODEL = MODELS / "digits-cnn.onnx"
GIVEN = ("--calibration", str(MODELS / "digits-cnn-samples.npy"), "--bits", "44", "--scale", "10")


def layers(*words: str) -> list[dict[str, object]]:
    """What inspect says of each layer's accuracy."""
    result = CliRunner().invoke(
        app, ["inspect", str(MODEL), *GIVEN, "--accuracy", "--json", *words]
    )
    assert result.exit_code == 0, result.output
    return list(json.loads(result.output)["layers"])


def error(rows: list[dict[str, object]]) -> float:
    last = rows[-1]["error"]
    assert isinstance(last, float)
    return last


def test_finer_weights_are_more_accurate_at_the_same_scale_of_values() -> None:
    coarse, usual, fine = layers("--weight-scale", "4"), layers(), layers("--weight-scale", "16")
    assert error(coarse) > 4 * error(usual)
    assert error(usual) > error(fine)


def test_both_halves_are_written_with_the_weight_scale(tmp_path: Path) -> None:
    hashes = set()
    for bits in ("8", "12"):
        ask = ["compile", str(MODEL), str(tmp_path / bits), *GIVEN, "--weight-scale", bits]
        result = CliRunner().invoke(app, [*ask, "--json"])
        assert result.exit_code == 0, result.output
        hashes.add(json.loads(result.output)["program_hash"])
    assert len(hashes) == 2


@pytest.mark.parametrize("bits", ["3", "21"])
def test_what_no_program_has_is_refused(bits: str) -> None:
    result = CliRunner().invoke(app, ["inspect", str(MODEL), *GIVEN, "--weight-scale", bits])
    assert result.exit_code != 0
    assert f"weight_scale is {bits}; 4 to 20 are possible" in str(result.output) + str(
        result.exception
    )
