"""Trains `zoo/models/digits-smooth`: a digits model with each activation of suite `ckks`.

Run `python zoo/train/smooth.py` with the package `privet` importable and the requirements beside
this file installed. The seeds are fixed; the same versions on the same CPU give the same files.
"""

# mypy: disable-error-code="import-not-found,import-untyped,no-any-return"
from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
from export import MODELS
from fit import Adam, Labels, Parameters, Reals, batches, cross_entropy, he_normal, minimise, split
from sklearn.datasets import load_digits

from privet.zoo.graph import Fixed, Weight
from privet.zoo.trained import SMOOTH, digits_smooth
from privet.zoo.writer import write

SEED = 20261121
EPOCHS = 80
BATCH = 64
HELD_OUT = 0.25
FOLDER = MODELS / "digits-smooth"

ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "square": jnp.square,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
    "softplus": jax.nn.softplus,
    "erf": jax.scipy.special.erf,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "silu": jax.nn.silu,
}


def initial(generator: np.random.Generator) -> Parameters:
    """Initial weights, named as in the graph."""
    return {
        "conv1.weight": he_normal(generator, (12, 1, 3, 3)),
        "conv1.bias": jnp.zeros(12),
        "dense1.weight": he_normal(generator, (10, 192)),
        "dense1.bias": jnp.zeros(10),
    }


def forward(parameters: Parameters, x: jax.Array, activation: str) -> jax.Array:
    """Logits `[n, 10]` of images `[n, 1, 8, 8]`."""
    x = jax.lax.conv_general_dilated(x, parameters["conv1.weight"], (2, 2), ((1, 1), (1, 1)))
    x = ACTIVATIONS[activation](x + parameters["conv1.bias"][:, None, None])
    return x.reshape(len(x), -1) @ parameters["dense1.weight"].T + parameters["dense1.bias"]


def _elements(values: Mapping[str, Reals]) -> Callable[[Weight], Reals]:
    return lambda weight: np.asarray(values[weight.name])


def train(activation: str, inputs: Reals, labels: Labels) -> Parameters:
    """The weights after training on all of these samples."""
    generator = np.random.default_rng(SEED)
    order = batches(generator, len(labels), BATCH, EPOCHS)
    return minimise(
        lambda p, x, y: cross_entropy(forward(p, x, activation), y),
        initial(generator),
        Adam(rate=5e-3, decay=1e-2, steps=EPOCHS * (len(labels) // BATCH)),
        ((inputs[step], labels[step]) for step in order),
    )


def main() -> None:
    """Train and export each model, and write the held-out samples and how many are read right."""
    data = load_digits()
    inputs = (data.images[:, None] / 16).astype(np.float32)
    labels = data.target.astype(np.int64)
    training, test = split(labels, HELD_OUT, SEED)
    FOLDER.mkdir(parents=True, exist_ok=True)
    # Pixels are 0 to 16, so that bytes hold them exactly.
    raw = data.images[test].astype(np.uint8)
    np.savez_compressed(FOLDER / "held-out.npz", raw=raw, labels=labels[test])
    correct = {}
    for activation in SMOOTH:
        weights = train(activation, inputs[training], labels[training])
        path = FOLDER / f"{activation}.onnx"
        graph = digits_smooth(activation)
        fixed = {w.name: w.law.elements for w in graph.weights if isinstance(w.law, Fixed)}
        write(graph, path, _elements({**fixed, **weights}))
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        logits = [session.run(None, {"input": sample[None]})[0] for sample in inputs[test]]
        predictions = np.argmax(np.concatenate(logits), axis=1)
        correct[activation] = int(np.sum(predictions == labels[test]))
        sys.stdout.write(f"{activation}: {correct[activation]} of {len(test)} correct\n")
    card = {"trained_on": len(training), "held_out": len(test), "correct": correct}
    (FOLDER / "card.json").write_text(json.dumps(card, indent=2) + "\n")


if __name__ == "__main__":
    main()
