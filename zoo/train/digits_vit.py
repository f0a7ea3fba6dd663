"""Trains `zoo/models/digits-vit.onnx` on the handwritten digits that ship with scikit-learn.

Run `python zoo/train/digits_vit.py` with the package `privet` importable and the requirements
beside this file installed. The same versions on the same CPU give the same file.
"""

# mypy: disable-error-code="import-not-found,import-untyped"
from __future__ import annotations

import numpy as np
from digits import shifted
from export import export
from fit import Adam, batches, cross_entropy, minimise, split
from network import forward, initial
from sklearn.datasets import load_digits

from privet.zoo.trained import digits_vit

SEED = 20260101
EPOCHS = 150
BATCH = 64


def main() -> None:
    """Train, export and print the held-out accuracy."""
    data = load_digits()
    raw = data.images.astype(np.uint8)
    inputs = (raw[:, None] / 16).astype(np.float32)
    labels = data.target.astype(np.int64)
    train, test = split(labels, 0.2, SEED)

    graph = digits_vit()
    generator = np.random.default_rng(SEED)
    order = batches(generator, len(train), BATCH, EPOCHS)
    weights = minimise(
        lambda p, x, y: cross_entropy(forward(graph, p, x), y),
        initial(graph),
        Adam(rate=2e-3, decay=0.1, steps=EPOCHS * (len(train) // BATCH)),
        ((shifted(generator, inputs[train[step]]), labels[train[step]]) for step in order),
    )
    card = {
        "input": "a grey image in [0, 1], bright ink on black, [1, 1, 8, 8]; raw is 0 to 16",
        "classes": [str(digit) for digit in range(10)],
        "trained_on": len(train),
    }
    export(graph, weights, raw[test], inputs[test], labels[test], inputs[train], card)


if __name__ == "__main__":
    main()
