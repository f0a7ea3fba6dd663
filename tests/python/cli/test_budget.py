"""`privet inspect --security-budget`: every suite states one, and sums are those of its terms."""

from __future__ import annotations

import json
from math import log2
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from privet.cli import app

MODELS = Path(__file__).resolve().parents[3] / "zoo" / "models"
DIGITS = str(MODELS / "digits-cnn.onnx")
SMOOTH = str(MODELS / "digits-smooth" / "square.onnx")

MODES = {
    "gmw": (DIGITS, []),
    "gmw one-bit": (DIGITS, ["--truncation", "one-bit"]),
    "gmw prime": (DIGITS, ["--field", "prime"]),
    "gmw one-shot": (DIGITS, ["--linear", "online"]),
    "gmw dealt": (DIGITS, ["--correlations", "dealer"]),
    "fss": (DIGITS, ["--suite", "fss"]),
    "fss malicious": (DIGITS, ["--suite", "fss", "--security", "malicious"]),
    "stream paillier": (DIGITS, ["--suite", "stream"]),
    "stream bfv": (DIGITS, ["--suite", "stream", "--cipher", "bfv"]),
    "ckks": (SMOOTH, ["--suite", "ckks", "--input-range", "0", "1"]),
    "ckks light": (SMOOTH, ["--suite", "ckks", "--input-range", "0", "1", "--flooding", "light"]),
}


def printed(model: str, words: list[str], *extra: str) -> str:
    """What the command prints."""
    result = CliRunner().invoke(app, ["inspect", model, *words, "--security-budget", *extra])
    assert result.exit_code == 0, result.output
    return result.stdout


def total(terms: list[dict[str, Any]], field: str) -> float:
    """The sum of terms that are given in bits."""
    return -log2(sum(2.0 ** -term[field] for term in terms))


@pytest.mark.parametrize("mode", MODES)
def test_sums_are_those_of_their_terms(mode: str) -> None:
    budget = json.loads(printed(*MODES[mode], "--json"))["security_budget"]
    for term in budget["assumptions"]:
        assert term["total_bits"] == pytest.approx(term["bits"] - log2(max(term["count"], 1)))
    assert budget["computational_bits"] == pytest.approx(total(budget["assumptions"], "total_bits"))
    for field in ("inference_bits", "key_bits", "model_bits"):
        if budget["losses"]:
            assert budget[field] == pytest.approx(total(budget["losses"], field))
        else:
            assert budget[field] is None
    if mode.startswith("ckks"):
        # The exception that every page states: precision leaves no room for more.
        assert bool(budget["losses"]) == (mode == "ckks")
    else:
        assert budget["inference_bits"] is None or budget["inference_bits"] >= 40
        assert budget["computational_bits"] >= 105


def test_people_read_terms_and_sums() -> None:
    text = printed(DIGITS, [])
    for word in ("ring-LWE", "CDH", "off by more than a unit", "sum", "serves one inference"):
        assert word in text
    assert "nothing is lost" in printed(DIGITS, ["--suite", "fss"])
