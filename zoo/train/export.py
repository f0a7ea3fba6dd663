"""Writes a trained model with its held-out samples, and measures it as the ONNX file runs."""

# mypy: disable-error-code="import-not-found"
from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from fit import Labels, Parameters

from privet.zoo.graph import Fixed, GraphBuilder
from privet.zoo.writer import write

MODELS = Path(__file__).resolve().parent.parent / "models"
SAMPLES = 64


def export(
    graph: GraphBuilder,
    weights: Parameters,
    raw: npt.NDArray[Any],
    inputs: npt.NDArray[Any],
    labels: Labels,
    samples: npt.NDArray[Any],
    card: dict[str, Any],
) -> None:
    """Write `NAME.onnx`, `NAME.npz` (held-out `raw`, `inputs`, `labels`) and `NAME.json`, and some
    of the training `samples` in `NAME-samples.npy`, to calibrate with.

    The card in the JSON file gains the accuracy that ONNX Runtime reaches on the held-out samples.
    """
    MODELS.mkdir(exist_ok=True)
    path = MODELS / f"{graph.name}.onnx"
    write(
        graph,
        path,
        lambda weight: (
            weight.law.elements
            if isinstance(weight.law, Fixed)
            else np.asarray(weights[weight.name])
        ),
    )
    np.savez_compressed(path.with_suffix(".npz"), raw=raw, inputs=inputs, labels=labels)
    np.save(MODELS / f"{graph.name}-samples.npy", samples[:SAMPLES])
    correct = int(np.sum(predict(path, inputs) == labels))
    card["held_out"] = {
        "samples": len(labels),
        "correct": correct,
        "accuracy": round(correct / len(labels), 4),
    }
    path.with_suffix(".json").write_text(json.dumps(card, indent=2) + "\n")
    sys.stdout.write(f"{graph.name}: {correct} of {len(labels)} held-out samples correct\n")


def predict(path: Path, inputs: npt.NDArray[Any]) -> Labels:
    """The label of each sample, one inference at a time as the model's batch is one."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    logits = [session.run(None, {"input": sample[None]})[0] for sample in inputs]
    return np.asarray(np.argmax(np.concatenate(logits), axis=1), dtype=np.int64)
