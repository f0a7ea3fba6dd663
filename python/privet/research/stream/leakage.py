"""What permuted tensors tell the data provider, measured.

The paper's measure is distance correlation (Szekely, Rizzo and Bakirov, 2007) between a tensor and
the same tensor permuted, which falls as tensors grow (its Table VI). It says nothing of values,
which the permutation does not hide, nor of a peer that lays several requests side by side. So there
are attacks as well: the data provider, who knows its inputs, lines up what it received for many of
them and solves for the weights of the first layer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Order = Callable[[int], Array]
"""The element at each place for the request of a number."""

ROWS = 512


def distance_correlation(x: Array, y: Array) -> float:
    """Of two vectors of the same length: 1 if one is a multiple of the other, about 0 if they have
    nothing to do with each other. Takes memory for 512 rows of distances at a time."""
    x, y = (np.asarray(it, dtype=np.float64).ravel() for it in (x, y))
    count = len(x)
    means = [np.array([np.abs(it - value).mean() for value in it]) for it in (x, y)]
    sums = np.zeros(3)
    for start in range(0, count, ROWS):
        a, b = (
            np.abs(it[start : start + ROWS, None] - it)
            - mean[start : start + ROWS, None]
            - mean
            + mean.mean()
            for it, mean in zip((x, y), means, strict=True)
        )
        sums += [(a * b).sum(), (a * a).sum(), (b * b).sum()]
    covariance, *variances = sums / count**2
    if min(variances) <= 0:
        return 0.0
    return float(np.sqrt(max(covariance, 0.0) / np.sqrt(variances[0] * variances[1])))


def by_place(_: Array, received: Array) -> Array:
    """Takes the same place of each request for the same element; `received` is `[requests, n]`."""
    return received


def by_shift(_: Array, received: Array) -> Array:
    """Undoes the cyclic shift by which each request agrees best with the first."""
    first = np.fft.fft(_standard(received[0]))
    aligned = [received[0]]
    for row in received[1:]:
        agreement = np.fft.ifft(np.fft.fft(_standard(row)).conj() * first).real
        aligned.append(np.roll(row, int(np.argmax(agreement))))
    return np.array(aligned)


def by_value(_: Array, received: Array) -> Array:
    """Takes the k-th largest value of each request for the same element."""
    return np.sort(received, axis=1)


ATTACKS: dict[str, Callable[[Array, Array], Array]] = {
    "by place": by_place,
    "by shift": by_shift,
    "by value": by_value,
}
"""Ways to line up repeated queries."""


def recovered(inputs: Array, received: Array, weights: Array, align: str) -> float:
    """How much of the first layer an attacker finds: 1 if all, about 0 if nothing.

    `inputs` are `[requests, m]`, `received` what came for them `[requests, n]`, and `weights` the
    truth `[m, n]`. The attacker lines the requests up, subtracts the first from the others, and
    solves for a matrix; each of its columns then counts by its cosine with the true column that is
    most like it, less what columns of noise would reach.
    """
    aligned = ATTACKS[align](inputs, received).astype(np.float64)
    given, answers = inputs[1:] - inputs[0], aligned[1:] - aligned[0]
    found = np.linalg.lstsq(given, answers, rcond=None)[0]
    noise = np.random.default_rng([7, 7]).standard_normal(found.shape)
    floor = _likeness(noise, weights)
    return float((_likeness(found, weights) - floor) / (1 - floor))


def queries(base: Array, count: int, step: float, rng: np.random.Generator) -> Array:
    """Repeated queries: the same input again and again, each time with a small random change."""
    changes = rng.standard_normal((count, base.size)) * step
    changes[0] = 0
    return base.ravel() + changes


def observe(outputs: Array, order: Order) -> Array:
    """What the data provider receives of `outputs` `[requests, n]`."""
    return np.array([row[order(number)] for number, row in enumerate(outputs)])


def fixed(count: int, rng: np.random.Generator) -> Order:
    """A control that leaks: one permutation for all requests."""
    order = rng.permutation(count)
    return lambda _: order


def cyclic(count: int, rng: np.random.Generator) -> Order:
    """A control that leaks: a shift by a random number of places, afresh for each request, as the
    published prototype does."""
    return lambda _: np.roll(np.arange(count), int(rng.integers(count)))


def _standard(row: Array) -> Array:
    centred = row - row.mean()
    return np.asarray(centred / (np.linalg.norm(centred) or 1.0))


def _likeness(found: Array, truth: Array) -> float:
    unit = [it / np.maximum(np.linalg.norm(it, axis=0), 1e-12) for it in (found, truth)]
    return float(np.abs(unit[0].T @ unit[1]).max(axis=1).mean())
