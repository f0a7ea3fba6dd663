"""Suite `ckks` on a trained digits model with each smooth activation: encrypted predictions are as
accurate as the plaintext model's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import privet
from privet.zoo.trained import SMOOTH

FOLDER = Path(__file__).parents[2] / "zoo" / "models" / "digits-smooth"
CARD = json.loads((FOLDER / "card.json").read_text())


def held_out() -> tuple[np.ndarray, np.ndarray]:
    with np.load(FOLDER / "held-out.npz") as data:
        return (data["raw"][:, None] / 16).astype(np.float32), data["labels"]


def accuracies(activation: str, count: int, scenario: str) -> tuple[float, float]:
    """Of encrypted predictions, and of the plaintext model's, on so many samples at once."""
    inputs, labels = held_out()
    run = privet.run(
        FOLDER / f"{activation}.onnx",
        [inputs[:count]],
        suite=privet.Ckks(scenario=scenario),
        batch=count,
        input_range=(0, 1),
    )
    private, plain = (
        float(np.mean(np.argmax(outputs["logits"], axis=1) == labels[:count]))
        for outputs in (run.outputs, run.reference)
    )
    return private, plain


def check(activation: str, count: int, scenario: str = "encrypted-data") -> None:
    private, plain = accuracies(activation, count, scenario)
    assert abs(private - plain) <= 0.005
    assert plain >= 0.93


def test_the_card_says_what_was_measured() -> None:
    assert set(CARD["correct"]) == set(SMOOTH)
    assert len(held_out()[1]) == CARD["held_out"] >= 400
    assert min(CARD["correct"].values()) / CARD["held_out"] > 0.93


def test_digits_keep_their_accuracy_with_squares() -> None:
    check("square", CARD["held_out"])


@pytest.mark.slow
@pytest.mark.parametrize("activation", [name for name in SMOOTH if name != "square"])
def test_digits_keep_their_accuracy_with_other_activations(activation: str) -> None:
    check(activation, CARD["held_out"])


@pytest.mark.slow
def test_an_encrypted_model_is_as_accurate() -> None:
    check("square", CARD["held_out"], "encrypted-model")
