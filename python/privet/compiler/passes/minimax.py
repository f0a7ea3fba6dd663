"""Polynomials close to the sign, as compositions: small degrees one after the other.

A composition of minimax polynomials reaches a precision with the fewest products (Lee, Lee, No and
Kim, "Minimax approximation of sign function by composite polynomial for homomorphic comparison",
IEEE TDSC 2022). Each stage is the odd polynomial closest to 1 on what the one before leaves,
found by Remez' exchange, and scaled so that its values stay within [-1, 1].
"""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt
from numpy.polynomial import chebyshev

Reals = npt.NDArray[np.float64]

DEGREES = (7, 15, 31)
"""Degrees of stages: the highest that three, four and five products in a row reach."""

MOST_STAGES = 4
LEAST_ERROR = 2.0**-16
"""Finer than this, exchanges in double precision would find no alternating error."""

_LOWEST = (16.0, 8.0, 4.0, 2.0)
"""Where arguments may begin for which the sign must be right, in errors: closer to zero, a wrong
sign matters little."""

_EXCHANGES = 60
_GRID = 8001


def closest_to_one(degree: int, low: float) -> tuple[Reals, float]:
    """Chebyshev coefficients of the odd polynomial closest to 1 on [low, 1], and its error."""
    orders = np.arange(1, degree + 1, 2)
    count = len(orders) + 1
    linear_grid, geometric_grid = np.linspace(low, 1.0, _GRID), np.geomspace(low, 1.0, _GRID)
    grid = np.unique(np.concatenate([linear_grid, geometric_grid]))
    basis = chebyshev.chebvander(grid, degree)[:, orders]
    point_indices = np.searchsorted(grid, np.geomspace(low, 1.0, count)).clip(0, len(grid) - 1)
    coefficients: Reals = np.zeros(len(orders))
    max_error = 1.0
    for _ in range(_EXCHANGES):
        signs = (-1.0) ** np.arange(count)
        solution = np.linalg.solve(np.column_stack([basis[point_indices], signs]), np.ones(count))
        coefficients, level = np.asarray(solution[:-1], dtype=np.float64), abs(float(solution[-1]))
        error = 1.0 - basis @ coefficients
        max_error = float(np.abs(error).max())
        if max_error <= level * (1.0 + 1e-6):
            break
        point_indices = _extremes(error, count)
    series = np.zeros(degree + 1)
    series[orders] = coefficients
    return series, max_error


def _extremes(error: Reals, count: int) -> npt.NDArray[np.intp]:
    """Where an error that alternates is largest in each run of one sign: `count` neighbours."""
    sign_changes = np.nonzero(np.diff(np.signbit(error)))[0] + 1
    runs = np.split(np.arange(len(error)), sign_changes)
    peaks = [run[np.argmax(np.abs(error[run]))] for run in runs]
    while len(peaks) > count:
        first, last = abs(error[peaks[0]]), abs(error[peaks[-1]])
        peaks.pop(0 if first < last else -1)
    while len(peaks) < count:  # a run at the end that is too short for the grid
        neighbour = next(index for index in range(len(error)) if index not in peaks)
        peaks = sorted([*peaks, neighbour])
    return np.asarray(peaks)


def stages(degrees: tuple[int, ...], low: float) -> list[Reals]:
    """A composition for arguments from `low` to 1; values of each stage are at most 1."""
    polynomials = []
    for degree in degrees:
        series, error = closest_to_one(degree, low)
        polynomials.append(series / (1.0 + error))
        low = (1.0 - error) / (1.0 + error)
    return polynomials


def composed(composition: list[Reals], x: Reals) -> Reals:
    """The composition's values."""
    for polynomial in composition:
        x = np.asarray(chebyshev.chebval(x, polynomial), dtype=np.float64)
    return x


@cache
def sign(error: float) -> tuple[Reals, ...]:
    """The composition of the least depth with which `x (1 + s(x)) / 2` is `max(x, 0)` to `error`.
    Raises `ValueError` if none of the compositions known here is that good."""
    if not LEAST_ERROR <= error < 1.0:
        raise ValueError(f"no composition is good to {error}, only to {LEAST_ERROR}")
    x = np.linspace(-1.0, 1.0, 1 << 16)
    candidates = [
        degrees
        for count in range(1, MOST_STAGES + 1)
        for degrees in combinations_with_replacement(DEGREES, count)
    ]
    candidates.sort(key=lambda degrees: (_depth(degrees), len(degrees)))
    for degrees in candidates:
        for low in error * np.array(_LOWEST):
            composition = stages(degrees, float(low))
            values = x * (1.0 + composed(composition, x)) / 2.0
            if float(np.abs(values - np.maximum(x, 0.0)).max()) <= error:
                return tuple(composition)
    raise ValueError(f"no composition of up to {MOST_STAGES} stages is good to {error}")


def _depth(degrees: tuple[int, ...]) -> int:
    return sum(degree.bit_length() for degree in degrees)
