"""Exact integer linear maps by floating-point matrix products.

A sum of integers whose absolute values sum to less than 2^53 is exact in float64 in any order. A
larger input is cut into limbs for which that holds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from privet.graph.operations import Array

EXACT = 1 << 53


def exact_linear(x: Array, row_sum: int, apply: Callable[[Array], Array]) -> Array:
    """`apply(x)` for int64 `x`, where `apply` is linear on float64.

    `row_sum` bounds the sum of the absolute weights behind any one output. Raises `OverflowError`
    if a result might not fit int64.
    """
    largest = int(np.abs(x).max(initial=0))
    if largest * row_sum < EXACT:
        return apply(x.astype(np.float64)).astype(np.int64)
    if largest * row_sum >= 1 << 63 or row_sum >= EXACT >> 1:
        raise OverflowError("sums beyond 63 bits")
    limb_bits = (EXACT // row_sum).bit_length() - 2
    total, shift = None, 0
    while True:
        low = x & ((1 << limb_bits) - 1)
        last = largest >> shift < 1 << limb_bits
        part = apply((x if last else low).astype(np.float64)).astype(np.int64) << shift
        total = part if total is None else total + part
        if last:
            return total
        x, shift = x >> limb_bits, shift + limb_bits


def row_sum(weight: Array, output_axis: int) -> int:
    """The largest sum of absolute weights behind one output."""
    axes = tuple(axis for axis in range(weight.ndim) if axis != output_axis)
    if not weight.size:
        return 0
    largest = 0
    step = max(1, (1 << 23) // max(1, weight.size // weight.shape[output_axis]))
    for start in range(0, weight.shape[output_axis], step):
        part = weight.take(range(start, min(start + step, weight.shape[output_axis])), output_axis)
        largest = max(largest, int(np.abs(part).sum(axis=axes).max()))
    return largest
