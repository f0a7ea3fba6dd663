"""Parameter scaling: the fewest decimals that keep a model's accuracy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from privet.errors import Misuse
from privet.research.stream import scaling

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def breast() -> tuple[onnx.ModelProto, list[dict[str, np.ndarray]], np.ndarray]:
    """The trained model, its held-out samples and their labels."""
    model = onnx.load(ROOT / "zoo/models/breast-mlp.onnx")
    data = np.load(ROOT / "zoo/models/breast-mlp.npz")
    name = model.graph.input[0].name
    return model, [{name: row[None]} for row in data["inputs"]], data["labels"]


def test_accuracy_stops_the_search(
    breast: tuple[onnx.ModelProto, list[dict[str, np.ndarray]], np.ndarray],
) -> None:
    model, samples, labels = breast
    choice = scaling.choose(model, samples, labels)
    assert choice.original > 0.9
    assert abs(choice.accuracies[-1] - choice.original) < scaling.THRESHOLD
    assert all(
        abs(accuracy - choice.original) >= scaling.THRESHOLD for accuracy in choice.accuracies[:-1]
    )
    assert choice.accuracies[0] < choice.original
    assert choice.factor == 10**choice.decimals
    assert 2**choice.bits >= choice.factor > 2 ** (choice.bits - 1)


def test_without_labels_a_model_is_compared_with_itself(
    breast: tuple[onnx.ModelProto, list[dict[str, np.ndarray]], np.ndarray],
) -> None:
    model, samples, _ = breast
    choice = scaling.choose(model, samples)
    assert choice.original == 1
    assert choice.accuracies[-1] == 1


def test_the_search_ends_at_its_limit(
    breast: tuple[onnx.ModelProto, list[dict[str, np.ndarray]], np.ndarray],
) -> None:
    model, samples, labels = breast
    choice = scaling.choose(model, samples, labels, threshold=-1)
    assert choice.decimals == scaling.MOST_DECIMALS
    assert choice.bits == 20


def test_parameters_are_rounded_and_nothing_else(
    breast: tuple[onnx.ModelProto, list[dict[str, np.ndarray]], np.ndarray],
) -> None:
    model, _, _ = breast
    coarse = scaling.rounded(model, 1)
    for before, after in zip(model.graph.initializer, coarse.graph.initializer, strict=True):
        assert np.array_equal(
            numpy_helper.to_array(after), np.round(numpy_helper.to_array(before), 1)
        )
    assert coarse.graph.node == model.graph.node


def test_samples_and_labels_must_fit(
    breast: tuple[onnx.ModelProto, list[dict[str, np.ndarray]], np.ndarray],
) -> None:
    model, samples, labels = breast
    with pytest.raises(Misuse):
        scaling.choose(model, [])
    with pytest.raises(Misuse):
        scaling.choose(model, samples, labels[:3])
