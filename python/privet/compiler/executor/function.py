"""Functions of single elements on integers, as the file format defines them.

An integer `x` at scale `s` stands for `x / 2^s`. Steps are rounded one by one to float64 and kept
to magnitudes of `2^500`, so that none is infinite. The value times `2^t`, for the output's scale
`t`, is rounded to a whole number (halves to even) and kept within the ring.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from privet.compiler.executor import elementary
from privet.compiler.executor.elementary import Reals
from privet.compiler.graph.function import Function, apply
from privet.compiler.graph.operations import Array

MOST = math.ldexp(1.0, 500)
"""The largest magnitude of a step's result."""

PRIMITIVES: dict[str, Callable[[Reals], Reals]] = {
    "erf": elementary.erf,
    "exp": elementary.exp,
    "log": elementary.log,
    "reciprocal": elementary.reciprocal,
    "relu": elementary.relu,
    "sigmoid": elementary.sigmoid,
    "softplus": elementary.softplus,
    "sqrt": elementary.sqrt,
    "tanh": elementary.tanh,
}
"""Those of `privet.compiler.graph.function.SMOOTH`, alike on every machine."""


def function_values(x: Array, function: Function, before: int, after: int, ring: int) -> Array:
    """The values at int64 `x` of scale `before`, at scale `after` in a ring of so many bits."""
    return whole(np.ldexp(real_values(x, function, before), after), ring)


def real_values(x: Array, function: Function, before: int) -> Reals:
    """The values at int64 `x` of scale `before`, before they are rounded."""
    results: list[Reals] = [np.ldexp(x.astype(np.float64), -before)]
    for step in function.steps:
        made = apply(step, [results[index] for index in step.operands], PRIMITIVES)
        results.append(np.clip(made, -MOST, MOST))
    return results[-1]


def whole(reals: Reals, ring: int) -> Array:
    """The nearest integers of a ring of so many bits; none beyond `2^62`."""
    room = 1 << (min(ring, 63) - 1)
    kept = np.clip(np.rint(reals), -float(room), float(room))
    # The float next to 2^62 in an int64 is above the ring.
    return np.minimum(kept.astype(np.int64), room - 1)
