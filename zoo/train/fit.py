"""What both training scripts share: a split, Adam, and the loss."""

# mypy: disable-error-code="import-not-found,no-any-return"
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

Parameters = dict[str, jax.Array]
Reals = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]


def split(labels: Labels, fraction: float, seed: int) -> tuple[Labels, Labels]:
    """Indices of the training and of the held-out samples, the same share of every class."""
    generator = np.random.default_rng(seed)
    held_out = []
    for label in np.unique(labels):
        members = generator.permutation(np.flatnonzero(labels == label))
        held_out.append(members[: round(fraction * len(members))])
    test = np.sort(np.concatenate(held_out))
    return np.setdiff1d(np.arange(len(labels)), test), test


def he_normal(generator: np.random.Generator, shape: tuple[int, ...]) -> jax.Array:
    """He's initial weights; the first axis counts outputs."""
    fan_in = int(np.prod(shape[1:]))
    return jnp.asarray(generator.normal(0.0, np.sqrt(2.0 / fan_in), shape), jnp.float32)


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """The mean negative log-likelihood of the labels."""
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
    return -jnp.mean(picked)


def batches(
    generator: np.random.Generator, samples: int, batch: int, epochs: int
) -> Iterator[Labels]:
    """Indices of each step's samples: a fresh order every epoch, its remainder dropped."""
    for _ in range(epochs):
        order = generator.permutation(samples)
        for start in range(0, samples - batch + 1, batch):
            yield order[start : start + batch]


class Adam:
    """Adam with decoupled weight decay and a cosine schedule down to zero."""

    def __init__(self, rate: float, decay: float, steps: int) -> None:
        """`rate` is the first step's; `steps` is the length of the schedule."""
        self.rate, self.decay, self.steps = rate, decay, steps

    def start(self, parameters: Parameters) -> dict[str, Any]:
        """The state before the first step."""
        zeros = jax.tree.map(jnp.zeros_like, parameters)
        return {"step": jnp.zeros(()), "mean": zeros, "square": zeros}

    def step(
        self, parameters: Parameters, gradient: Parameters, state: dict[str, Any]
    ) -> tuple[Parameters, dict[str, Any]]:
        """The parameters and the state after one step."""
        step = state["step"] + 1
        rate = self.rate * 0.5 * (1 + jnp.cos(jnp.pi * state["step"] / self.steps))
        mean = _blend(0.9, state["mean"], gradient)
        square = _blend(0.999, state["square"], jax.tree.map(jnp.square, gradient))

        def move(p: jax.Array, m: jax.Array, s: jax.Array) -> jax.Array:
            ratio = (m / (1 - 0.9**step)) / (jnp.sqrt(s / (1 - 0.999**step)) + 1e-8)
            decay = self.decay if p.ndim > 1 else 0.0
            return p - rate * (ratio + decay * p)

        new = jax.tree.map(move, parameters, mean, square)
        return new, {"step": step, "mean": mean, "square": square}


def minimise(
    loss: Callable[..., jax.Array],
    parameters: Parameters,
    optimiser: Adam,
    steps: Iterator[tuple[Reals, Labels]],
) -> Parameters:
    """The parameters after one step on each batch `(inputs, labels)`."""

    def update(p: Parameters, s: dict[str, Any], x: jax.Array, y: jax.Array) -> Any:
        return optimiser.step(p, jax.grad(loss)(p, x, y), s)

    compiled = jax.jit(update)
    state = optimiser.start(parameters)
    for inputs, labels in steps:
        parameters, state = compiled(parameters, state, inputs, labels)
    return parameters


def _blend(keep: float, old: Parameters, new: Parameters) -> Parameters:
    return jax.tree.map(lambda a, b: keep * a + (1 - keep) * b, old, new)
