"""Whole models of the zoo in fixed point against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from privet import zoo
from privet.compiler.compile import compile
from privet.compiler.executor import execute

TRAINED = Path(__file__).resolve().parents[4] / "zoo" / "models"


def agrees(model: Path, samples: int, *, weight_scale: int, allowed: float) -> None:
    """Asserts that the error stays below `allowed` times the largest logit, and labels agree
    wherever the two largest logits lie further apart than that."""
    generator = np.random.default_rng(7)
    compiled = compile(model, weight_scale=weight_scale)
    (entry,) = compiled.program.inputs
    session = onnxruntime.InferenceSession(model)
    for _ in range(samples):
        x = generator.standard_normal(compiled.program.values[entry.value].shape)
        x = x.clip(-entry.magnitude, entry.magnitude).astype(np.float32)
        (reference,) = session.run(None, {entry.name: x})
        (output,) = execute(compiled.program, compiled.weights, [x]).outputs.values()
        limit = allowed * np.abs(reference).max()
        assert np.abs(output - reference).max() <= limit
        second, first = np.sort(reference.reshape(-1))[-2:]
        assert first - second <= 2 * limit or output.argmax() == reference.argmax()


@pytest.mark.parametrize("name", ["m1", "m2", "hinet", "mnist-1", "mnist-2", "breast", "resnet20"])
def test_small_models(name: str, tmp_path: Path) -> None:
    agrees(zoo.build(name, tmp_path), 3, weight_scale=12, allowed=0.01)


@pytest.mark.parametrize("name", ["digits-cnn", "breast-mlp"])
def test_trained_models(name: str) -> None:
    agrees(TRAINED / f"{name}.onnx", 5, weight_scale=12, allowed=0.01)


@pytest.mark.parametrize("name", ["m1", "m2", "resnet20"])
def test_finer_weights_are_more_accurate(name: str, tmp_path: Path) -> None:
    agrees(zoo.build(name, tmp_path), 2, weight_scale=16, allowed=0.001)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squeezenet", "resnet50", "vgg16-cifar"])
def test_large_models(name: str, tmp_path: Path) -> None:
    agrees(zoo.build(name, tmp_path), 1, weight_scale=12, allowed=0.02)
