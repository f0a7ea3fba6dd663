"""Trains `zoo/models/digits-cnn.onnx` on the handwritten digits that ship with scikit-learn.

Run `python zoo/train/digits.py` with the package `privet` importable and the requirements beside
this file installed. The seeds are fixed; the same versions on the same CPU give the same file.
"""

# mypy: disable-error-code="import-not-found,import-untyped,no-any-return"
from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from export import MODELS, export, predict
from fit import (
    Adam,
    Labels,
    Parameters,
    Reals,
    batches,
    cross_entropy,
    he_normal,
    minimise,
    split,
)
from PIL import Image
from sklearn.datasets import load_digits

from privet.zoo.trained import digits_cnn

SEED = 20260101
EPOCHS = 60
BATCH = 64
CHANNELS = ((1, 16), (16, 16), (16, 16), (16, 32))
EPSILON = 1e-5
EXAMPLES = (3, 7, 9)


def initial(generator: np.random.Generator) -> Parameters:
    """Initial weights, named as in the graph; the running statistics are measured later."""
    parameters: Parameters = {}
    for layer, (fan_in, fan_out) in enumerate(CHANNELS, start=1):
        parameters[f"conv{layer}.weight"] = he_normal(generator, (fan_out, fan_in, 3, 3))
        parameters[f"norm{layer}.weight"] = jnp.ones(fan_out)
        parameters[f"norm{layer}.bias"] = jnp.zeros(fan_out)
    parameters["dense1.weight"] = he_normal(generator, (10, 128))
    parameters["dense1.bias"] = jnp.zeros(10)
    return parameters


def forward(parameters: Parameters, x: jax.Array) -> tuple[jax.Array, Parameters]:
    """Logits `[n, 10]` of images `[n, 1, 8, 8]`, and the batch statistics of each normalisation."""
    statistics: Parameters = {}

    def normed(layer: int, x: jax.Array) -> jax.Array:
        weight = parameters[f"conv{layer}.weight"]
        x = jax.lax.conv_general_dilated(x, weight, (1, 1), ((1, 1), (1, 1)))
        mean, variance = jnp.mean(x, axis=(0, 2, 3)), jnp.var(x, axis=(0, 2, 3))
        statistics[f"norm{layer}.mean"] = mean
        statistics[f"norm{layer}.variance"] = variance
        scale = parameters[f"norm{layer}.weight"] / jnp.sqrt(variance + EPSILON)
        shift = parameters[f"norm{layer}.bias"] - mean * scale
        return x * scale[:, None, None] + shift[:, None, None]

    def pooled(x: jax.Array) -> jax.Array:
        samples, channels, side, _ = x.shape
        windows = x.reshape(samples, channels, side // 2, 2, side // 2, 2)
        return jnp.max(windows, axis=(3, 5))

    x = jax.nn.relu(normed(1, x))
    branch = normed(3, jax.nn.relu(normed(2, x)))
    x = pooled(jax.nn.relu(branch + x))
    x = pooled(jax.nn.relu(normed(4, x)))
    flat = x.reshape(len(x), -1)
    return flat @ parameters["dense1.weight"].T + parameters["dense1.bias"], statistics


def shifted(generator: np.random.Generator, images: Reals) -> Reals:
    """Each image moved by at most half a pixel each way, so that positions are not learned."""
    canvas = np.empty_like(images)
    for index, image in enumerate(images[:, 0]):
        for axis in (0, 1):
            amount = generator.uniform(-0.5, 0.5)
            neighbour = np.roll(image, int(np.sign(amount)), axis=axis)
            image = (1 - abs(amount)) * image + abs(amount) * neighbour
        canvas[index, 0] = image
    return canvas


def draw_examples(raw: npt.NDArray[np.uint8], labels: Labels, predictions: Labels) -> None:
    """Write one held-out digit of each of `EXAMPLES` that the model reads right as an 8x8 PNG."""
    for digit in EXAMPLES:
        index = np.flatnonzero((labels == digit) & (predictions == digit))[0]
        grey = np.rint(raw[index] * (255 / 16)).astype(np.uint8)
        Image.fromarray(grey, mode="L").save(MODELS / f"digit-{digit}.png")


def main() -> None:
    """Train, export, draw the examples and print the held-out accuracy."""
    data = load_digits()
    raw = data.images.astype(np.uint8)
    inputs = (raw[:, None] / 16).astype(np.float32)
    labels = data.target.astype(np.int64)
    train, test = split(labels, 0.2, SEED)

    generator = np.random.default_rng(SEED)
    steps = EPOCHS * (len(train) // BATCH)
    order = batches(generator, len(train), BATCH, EPOCHS)
    weights = minimise(
        lambda p, x, y: cross_entropy(forward(p, x)[0], y),
        initial(generator),
        Adam(rate=3e-3, decay=1e-2, steps=steps),
        ((shifted(generator, inputs[train[step]]), labels[train[step]]) for step in order),
    )
    # The running statistics are those of the whole training set under the final weights.
    weights |= jax.jit(forward)(weights, inputs[train])[1]
    card = {
        "input": "a grey image in [0, 1], bright ink on black, [1, 1, 8, 8]; raw is 0 to 16",
        "classes": [str(digit) for digit in range(10)],
        "trained_on": len(train),
    }
    graph = digits_cnn()
    export(graph, weights, raw[test], inputs[test], labels[test], inputs[train], card)
    predictions = predict(MODELS / f"{graph.name}.onnx", inputs[test])
    draw_examples(raw[test], labels[test], predictions)


if __name__ == "__main__":
    main()
