"""Exact integer linear maps by floating-point matrix products.

A sum of integers whose absolute values sum to less than 2^53 is exact in float64 in any order. A
larger input is cut into limbs for which that holds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from privet.compiler.graph.operations.operation import Array

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
        product = apply((x if last else low).astype(np.float64)).astype(np.int64) << shift
        total = product if total is None else total + product
        if last:
            return total
        x, shift = x >> limb_bits, shift + limb_bits


def exact_matmul(x: Array, y: Array) -> Array:
    """`x @ y` over the last two axes of int64 tensors; raises `OverflowError` as `exact_linear`."""
    column_sum = int(np.abs(y).sum(axis=-2).max())
    reals = y.astype(np.float64)
    return exact_linear(x, column_sum, lambda part: np.matmul(part, reals))


def exact_product(x: Array, y: Array) -> Array:
    """`x * y` of int64 tensors; raises `OverflowError` if an element might not fit int64."""
    if float(np.abs(x.astype(np.float64) * y).max(initial=0.0)) >= 1 << 62:
        raise OverflowError("a product beyond 62 bits")
    return np.asarray(x * y)


def row_sum(weight: Array, output_axis: int) -> int:
    """The largest sum of absolute weights behind one output, which lie along axis 0 or 1."""
    columns = weight.reshape(weight.shape[0], -1)
    step = max(1, (1 << 20) // columns.shape[1])
    largest, total = 0, np.zeros(columns.shape[1], dtype=np.int64)
    for start in range(0, columns.shape[0], step):
        part = np.abs(columns[start : start + step])
        if output_axis == 0:
            largest = max(largest, int(part.sum(axis=1).max()))
        else:
            total += part.sum(axis=0)
    return largest if output_axis == 0 else int(total.max())
