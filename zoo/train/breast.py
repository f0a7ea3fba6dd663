"""Trains `zoo/models/breast-mlp.onnx` on the breast cancer data that ships with scikit-learn.

Run `python zoo/train/breast.py` with the package `privet` importable and the requirements beside
this file installed. The seeds are fixed; the same versions on the same CPU give the same file.
"""

# mypy: disable-error-code="import-not-found,import-untyped"
from __future__ import annotations

import jax
import numpy as np
from export import export
from fit import Adam, Parameters, batches, cross_entropy, he_normal, minimise, split
from sklearn.datasets import load_breast_cancer

from privet.zoo.trained import breast_mlp

SEED = 20260101
EPOCHS = 60
BATCH = 32
LAYERS = ("dense1", "dense2", "dense3")
WIDTHS = (30, 64, 32, 2)


def initial(generator: np.random.Generator) -> Parameters:
    """Initial weights, named as in the graph."""
    parameters: Parameters = {}
    for layer, fan_in, fan_out in zip(LAYERS, WIDTHS[:-1], WIDTHS[1:], strict=True):
        parameters[f"{layer}.weight"] = he_normal(generator, (fan_out, fan_in))
        parameters[f"{layer}.bias"] = jax.numpy.zeros(fan_out)
    return parameters


def forward(parameters: Parameters, x: jax.Array) -> jax.Array:
    """Logits `[n, 2]` of standardised features `[n, 30]`."""
    for layer in LAYERS:
        x = x @ parameters[f"{layer}.weight"].T + parameters[f"{layer}.bias"]
        x = x if layer == LAYERS[-1] else jax.nn.relu(x)
    return x


def main() -> None:
    """Train, export and print the held-out accuracy."""
    data = load_breast_cancer()
    features = data.data.astype(np.float32)
    labels = data.target.astype(np.int64)
    train, test = split(labels, 0.2, SEED)
    mean, deviation = data.data[train].mean(axis=0), data.data[train].std(axis=0)
    inputs = ((data.data - mean) / deviation).astype(np.float32)

    generator = np.random.default_rng(SEED)
    steps = EPOCHS * (len(train) // BATCH)
    order = batches(generator, len(train), BATCH, EPOCHS)
    weights = minimise(
        lambda p, x, y: cross_entropy(forward(p, x), y),
        initial(generator),
        Adam(rate=2e-3, decay=1e-2, steps=steps),
        ((inputs[train[step]], labels[train[step]]) for step in order),
    )
    card = {
        "input": "standardised features: (raw - mean) / std, in the order of features",
        "features": [str(name) for name in data.feature_names],
        "mean": mean.tolist(),
        "std": deviation.tolist(),
        "classes": [str(name) for name in data.target_names],
        "trained_on": len(train),
    }
    held_out = (features[test], inputs[test], labels[test])
    export(breast_mlp(), weights, *held_out, inputs[train], card)


if __name__ == "__main__":
    main()
