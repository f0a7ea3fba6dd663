"""The trained Transformers on held-out samples, beside ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import privet
from privet.compiler.compile import compile
from privet.compiler.executor import execute

MODELS = Path(__file__).parents[3] / "zoo" / "models"
NAMES = ["digits-vit", "docs-bert", "docs-gpt"]
SAMPLES = 200


def surprise(logits: np.ndarray, labels: np.ndarray) -> float:
    """The mean negative logarithm of the labels' probabilities."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    total = np.log(np.exp(shifted).sum(axis=1))
    return float(np.mean(total - shifted[np.arange(len(labels)), labels]))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_labels_are_those_of_onnx_runtime(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    path = MODELS / f"{name}.onnx"
    calibration = list(np.load(MODELS / f"{name}-samples.npy")[:, None])
    compiled = compile(path, calibration=calibration, smooth="piecewise")
    with np.load(MODELS / f"{name}.npz") as data:
        inputs, labels = data["inputs"][:SAMPLES, None], data["labels"][:SAMPLES]
    session = onnxruntime.InferenceSession(str(path))
    references = np.concatenate([session.run(None, {"input": sample})[0] for sample in inputs])
    logits = np.concatenate(
        [
            execute(compiled.program, compiled.weights, [sample]).outputs["logits"]
            for sample in inputs
        ]
    )
    agreement = float(np.mean(logits.argmax(axis=1) == references.argmax(axis=1)))
    accuracy = [float(np.mean(scores.argmax(axis=1) == labels)) for scores in (logits, references)]
    perplexity = [float(np.exp(surprise(scores, labels))) for scores in (logits, references)]
    record_property("ring and scale", (compiled.program.ring_bits, compiled.program.scale_bits))
    record_property("agreement", agreement)
    record_property("accuracy, plaintext accuracy", accuracy)
    record_property("perplexity, plaintext perplexity", perplexity)
    record_property("largest error of a score", float(np.abs(logits - references).max()))
    assert agreement >= 0.98
    assert abs(accuracy[0] - accuracy[1]) <= 0.01
    assert abs(perplexity[0] / perplexity[1] - 1) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_private_scores_are_the_executors(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    calibration = list(np.load(MODELS / f"{name}-samples.npy")[:, None])
    with np.load(MODELS / f"{name}.npz") as data:
        sample = data["inputs"][:1]
    for suite in (privet.Fss(), privet.Gmw(correlations="dealer")):
        result = privet.run(MODELS / f"{name}.onnx", [sample], suite=suite, calibration=calibration)
        for phase in ("offline", "dealer", "online"):
            record_property(f"{suite.name} {phase}", str(getattr(result, phase)))
        assert result.max_fixed_point_error == 0
