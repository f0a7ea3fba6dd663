"""Functions of single elements by lines on integers, as the file format defines them.

What an integer is above `low`, kept between 0 and `2^bits - 1`, is `i 2^f + d` with `f = bits -
index_bits`; the value is `slopes[i] d + offsets[i]`, and what is above the table, times `2^f`, if
the function rises there. Line `i` has the slope of the chord over its arguments, rounded, and
goes through the middle between chord and function half-way along. So a convex function is as far
above its line there as it is below at the ends.
"""

from __future__ import annotations

import numpy as np

from privet.compiler.executor.function import real_values, whole
from privet.compiler.graph.operations import Array, Piecewise


def piecewise_values(x: Array, operation: Piecewise, before: int, after: int, ring: int) -> Array:
    """The values at int64 `x` of scale `before`, at scale `after` in a ring of so many bits."""
    slopes, offsets = lines(operation, before, after, ring)
    raised = np.maximum(x - operation.low, 0)
    kept = np.minimum(raised, (1 << operation.bits) - 1)
    index, distance = kept >> operation.step_bits, kept & ((1 << operation.step_bits) - 1)
    over = (raised - kept) << operation.step_bits if operation.rises else 0
    return np.asarray(slopes[index] * distance + offsets[index] + over)


def lines(operation: Piecewise, before: int, after: int, ring: int) -> tuple[Array, Array]:
    """Slopes and offsets of all lines; nothing but the program decides them."""
    step = 1 << operation.step_bits
    starts = operation.low + step * np.arange(1 << operation.index_bits, dtype=np.int64)
    first, middle, last = (
        real_values(starts + at, operation.function, before) for at in (0, step // 2, step)
    )
    slopes = whole(np.ldexp(last - first, after) / float(step), ring)
    chord = (first + last) * 0.5
    height = np.ldexp(chord + (middle - chord) * 0.5, after)
    return slopes, whole(height - slopes.astype(np.float64) * float(step // 2), ring)
