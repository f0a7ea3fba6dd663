"""Writes `zoo/models/docs-gpt-cached.onnx`: `docs-gpt.onnx` token by token, with its weights.

Run `python zoo/train/cached.py` with the package `privet` importable; nothing is trained.
"""

from __future__ import annotations

import json
from pathlib import Path

import onnx

from privet.zoo.graph import Array, Fixed, Weight
from privet.zoo.trained import docs_gpt_cached
from privet.zoo.writer import write

MODELS = Path(__file__).resolve().parent.parent / "models"


def main() -> None:
    """Reads the trained model and writes the other form of it, and its card."""
    model = onnx.load(str(MODELS / "docs-gpt.onnx"))
    weights = {
        tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer
    }

    def values(weight: Weight) -> Array:
        if isinstance(weight.law, Fixed):
            return weight.law.elements
        return weights[weight.name].reshape(weight.shape)

    net = docs_gpt_cached()
    write(net, MODELS / f"{net.name}.onnx", values)
    card = json.loads((MODELS / "docs-gpt.json").read_text())
    fields = {name: card[name] for name in ("source", "classes", "trained_on")}
    document = {"input": "one character, its place in the classes, and its position", **fields}
    (MODELS / f"{net.name}.json").write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
