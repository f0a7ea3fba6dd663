"""The committed models: what their cards and the page on models claim, measured again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from PIL import Image

from privet import zoo
from privet.zoo.trained import (
    SMOOTH,
    breast_mlp,
    digits_cnn,
    digits_smooth,
    digits_vit,
    docs_bert,
    docs_gpt,
)

ROOT = Path(__file__).resolve().parents[3]
MODELS = ROOT / "zoo" / "models"
GRAPHS = {
    "breast-mlp": breast_mlp,
    "digits-cnn": digits_cnn,
    "digits-vit": digits_vit,
    "docs-gpt": docs_gpt,
    "docs-bert": docs_bert,
}
AT_LEAST = {"docs-gpt": 0.6, "docs-bert": 0.75}


def predict(name: str, inputs: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """The label of each input, one at a time."""
    session = onnxruntime.InferenceSession(
        MODELS / f"{name}.onnx", providers=["CPUExecutionProvider"]
    )
    logits = [session.run(None, {"input": sample[None]})[0] for sample in inputs]
    return np.asarray(np.argmax(np.concatenate(logits), axis=1), dtype=np.int64)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_accuracy_is_the_one_claimed(name: str) -> None:
    card = json.loads((MODELS / f"{name}.json").read_text())
    data = np.load(MODELS / f"{name}.npz")
    correct = int(np.sum(predict(name, data["inputs"]) == data["labels"]))
    samples = len(data["labels"])
    assert samples >= 100
    assert card["held_out"]["samples"] == samples
    assert card["held_out"]["correct"] == correct
    assert card["held_out"]["accuracy"] == round(correct / samples, 4)
    assert correct / samples > AT_LEAST.get(name, 0.97)
    row = f"| {card['trained_on']:,} | {samples} | {correct} | {correct / samples:.1%}"
    assert row.replace("%", " %") in (ROOT / "docs" / "reference" / "models.md").read_text()


@pytest.mark.parametrize("name", GRAPHS)
def test_the_file_has_the_layers_that_the_zoo_describes(name: str) -> None:
    onnx.checker.check_model(MODELS / f"{name}.onnx", full_check=True)
    model = onnx.load(MODELS / f"{name}.onnx")
    assert list(model.graph.node) == GRAPHS[name]().nodes
    (source,) = model.graph.input
    shape = tuple(side.dim_value for side in source.type.tensor_type.shape.dim)
    assert shape == zoo.describe(name).input_shape


@pytest.mark.parametrize("activation", SMOOTH)
def test_smooth_digits_have_the_layers_that_the_zoo_describes(activation: str) -> None:
    path = MODELS / "digits-smooth" / f"{activation}.onnx"
    onnx.checker.check_model(path, full_check=True)
    assert list(onnx.load(path).graph.node) == digits_smooth(activation).nodes


def test_batch_norm_and_the_residual_sum_stay_in_the_digits_model() -> None:
    kinds = [node.op_type for node in onnx.load(MODELS / "digits-cnn.onnx").graph.node]
    assert kinds.count("BatchNormalization") == 4
    assert kinds.count("Add") == 1
    assert kinds[-1] == "Gemm"


def test_a_client_can_standardise_with_the_card() -> None:
    card = json.loads((MODELS / "breast-mlp.json").read_text())
    data = np.load(MODELS / "breast-mlp.npz")
    inputs = (data["raw"] - np.array(card["mean"])) / np.array(card["std"])
    np.testing.assert_allclose(inputs, data["inputs"], atol=1e-4)
    assert len(card["features"]) == inputs.shape[1] == 30


def test_digits_are_sixteenths() -> None:
    data = np.load(MODELS / "digits-cnn.npz")
    np.testing.assert_array_equal(data["inputs"][:, 0], data["raw"] / np.float32(16))


@pytest.mark.parametrize("digit", [3, 7, 9])
def test_an_example_image_is_a_held_out_digit_read_right(digit: int) -> None:
    image = Image.open(MODELS / f"digit-{digit}.png")
    assert (image.size, image.mode) == ((8, 8), "L")
    pixels = np.asarray(image, dtype=np.float32) / np.float32(255)
    data = np.load(MODELS / "digits-cnn.npz")
    near = np.max(np.abs(data["inputs"][:, 0] - pixels), axis=(1, 2)) <= 0.5 / 255 + 1e-6
    assert data["labels"][near].tolist() == [digit]
    assert predict("digits-cnn", pixels[None, None]).tolist() == [digit]
