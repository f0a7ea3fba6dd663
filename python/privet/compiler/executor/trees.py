"""Decision trees in the clear: which leaf each ends in, and what an ensemble adds up to."""

from __future__ import annotations

import numpy as np

from privet.compiler.graph.operations import Array, Trees


def leaves(goes_left: Array, depth: int) -> Array:
    """Which leaf each complete tree ends in, from booleans as `Leaves` orders them."""
    rows, trees = goes_left.shape[0], goes_left.shape[1] // ((1 << depth) - 1)
    nodes = goes_left.reshape(rows, -1, trees)
    way = np.zeros((rows, 1, trees), dtype=np.int64)
    for level in range(depth):
        left = np.take_along_axis(nodes, (1 << level) - 1 + way, axis=1)
        way |= np.where(left, 0, 1 << level)
    numbers = np.arange(1 << depth).reshape(1, -1, 1)
    return np.asarray(numbers == way).reshape(rows, -1)


def ensemble(x: Array, trees: Trees) -> Array:
    """The sum of the leaves that the trees end in, on reals, row by row."""
    both = np.concatenate([x, np.where(np.isnan(x), -np.inf, x)], axis=1)
    return np.stack([_row(row, trees) for row in both])


def _row(x: Array, trees: Trees) -> Array:
    value = x[np.maximum(trees.feature, 0)]
    is_true = np.where(trees.strict, value < trees.threshold, value <= trees.threshold)
    is_true |= trees.feature < 0
    if trees.depth is not None:
        reached = leaves(is_true.T.reshape(1, -1), trees.depth).reshape(-1, len(is_true)).T
    else:
        assert trees.paths is not None
        assert trees.offsets is not None
        sums = np.matmul(trees.paths, is_true.astype(trees.paths.dtype)[:, :, None])[:, :, 0]
        reached = trees.offsets + sums == 0
    return np.asarray(trees.values[reached].sum(axis=0) + trees.base)
