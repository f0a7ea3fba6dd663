"""The trained models on held-out data: private predictions beside the plaintext model's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from tests.error_bound import error_bound

from privet.compiler.compile import compile
from privet.compiler.executor import execute
from privet.runtime import Client

MODELS = Path(__file__).parents[2] / "zoo" / "models"


@dataclass(frozen=True)
class Expected:
    """What a model must reach on `samples` held-out samples."""

    model: str
    samples: int
    agreement: float
    logit_error: float
    accuracy: float
    input_range: tuple[float, float]


CASES = [
    Expected(
        "breast-mlp", 113, agreement=1.0, logit_error=0.05, accuracy=0.97, input_range=(-15, 15)
    ),
    Expected("digits-cnn", 120, agreement=1.0, logit_error=0.1, accuracy=0.97, input_range=(0, 1)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.model)
@pytest.mark.parametrize("rounds", ["linear", "log"])
def test_private_predictions_agree(
    case: Expected, rounds: str, session: Callable[..., Client], figures: list[str]
) -> None:
    with np.load(MODELS / f"{case.model}.npz") as data:
        inputs, labels = data["inputs"], data["labels"]
    count = case.samples if rounds == "linear" else 10
    path = MODELS / f"{case.model}.onnx"
    compiled = compile(path, input_range=case.input_range)
    bound = error_bound(compiled.program, compiled.weights)["logits"]
    plaintext = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    client = session(compiled, rounds)

    private, clear, errors, units = [], [], [], []
    for sample in inputs[:count]:
        x = sample[None]
        result = client.infer([x])
        logits = result.outputs["logits"]
        (expected,) = plaintext.run(None, {"input": x.astype(np.float32)})
        (exact,) = execute(compiled.program, compiled.weights, [x]).integers
        private.append(int(logits.argmax()))
        clear.append(int(expected.argmax()))
        errors.append(float(np.abs(logits - expected).max()))
        units.append(int(np.abs(result.integers[0] - exact).max()))

    agreement = float(np.mean(np.equal(private, clear)))
    accuracy = [
        float(np.mean(np.equal(predictions, labels[:count]))) for predictions in (private, clear)
    ]
    figures.append(
        f"{case.model}, {rounds} rounds: {count} held-out samples, label agreement "
        f"{agreement:.4f}, largest logit error {max(errors):.4f} (mean {np.mean(errors):.4f}), "
        f"accuracy private {accuracy[0]:.4f} and plaintext {accuracy[1]:.4f}"
    )
    assert agreement >= case.agreement
    assert max(errors) <= case.logit_error
    assert bound is not None
    assert max(units) <= bound
    if count >= 100:
        assert min(accuracy) >= case.accuracy
