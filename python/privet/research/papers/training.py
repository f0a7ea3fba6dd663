"""Trains a zoo's perceptron on a data set that is there, in NumPy: `privet papers run --data`.

Adam on the cross-entropy, with seeded weights and orders of samples. Convolutional networks are
not trained here; a file `NAME.onnx` beside the data is taken in place of any model.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from privet.research.papers.datasets import Array, Samples
from privet.zoo import perceptron
from privet.zoo.writer import write

EPOCHS, BATCH, RATE = 8, 128, 2e-3
FIRST, SECOND, TINY = 0.9, 0.999, 1e-8
"""Adam's memory of gradients and of their squares, and what keeps its steps finite."""

SEED = 20261124


def train(name: str, samples: Samples, path: Path, *, epochs: int = EPOCHS) -> None:
    """Trains `name`, a perceptron of the zoo, and writes its ONNX file."""
    generator = np.random.default_rng(SEED)
    weights = _initial(perceptron.WIDTHS[name], generator)
    inputs = samples.images.reshape(len(samples.images), -1)
    means = [np.zeros_like(array) for array in weights]
    squares = [np.zeros_like(array) for array in weights]
    steps = epochs * -(-len(inputs) // BATCH)
    for step, indices in enumerate(_batches(len(inputs), epochs, generator), start=1):
        rate = RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
        slopes = gradients(weights, inputs[indices], samples.labels[indices])
        for weight, mean, square, gradient in zip(weights, means, squares, slopes, strict=True):
            mean += (1 - FIRST) * (gradient - mean)
            square += (1 - SECOND) * (gradient**2 - square)
            size = np.sqrt(square / (1 - SECOND**step)) + TINY
            weight -= np.float32(rate) * mean / (1 - FIRST**step) / size
    graph = perceptron.perceptron(name)
    # The graph names each layer's weight and then its bias.
    values = dict(zip((tensor.name for tensor in graph.weights), weights, strict=True))
    write(graph, path, lambda tensor: np.ascontiguousarray(values[tensor.name], np.float32))


def gradients(weights: list[Array], inputs: Array, labels: Array) -> list[Array]:
    """Of the mean cross-entropy by each weight `[out, in]` and bias `[out]`, in turn."""
    values = [inputs]
    for weight, bias in zip(weights[:-2:2], weights[1:-2:2], strict=True):
        values.append(np.maximum(values[-1] @ weight.T + bias, 0))
    scores = values[-1] @ weights[-2].T + weights[-1]
    shares = np.exp(scores - scores.max(1, keepdims=True))
    slope = shares / shares.sum(1, keepdims=True)
    slope[np.arange(len(labels)), labels] -= 1
    slope /= len(labels)
    slopes: list[Array] = []
    for value, weight in zip(reversed(values), weights[-2::-2], strict=True):
        slopes = [slope.T @ value, slope.sum(0), *slopes]
        slope = (slope @ weight) * (value > 0)
    return slopes


def _initial(widths: tuple[int, ...], generator: np.random.Generator) -> list[Array]:
    weights: list[Array] = []
    for before, after in pairwise(widths):
        deviation = np.sqrt(2 / before)
        weights.append(generator.normal(0, deviation, (after, before)).astype(np.float32))
        weights.append(np.zeros(after, np.float32))
    return weights


def _batches(samples: int, epochs: int, generator: np.random.Generator) -> Iterator[Array]:
    for _ in range(epochs):
        order = generator.permutation(samples)
        for start in range(0, samples, BATCH):
            yield order[start : start + BATCH]
