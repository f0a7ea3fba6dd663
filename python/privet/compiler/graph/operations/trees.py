"""Decision trees: which leaf each ends in, and what an ensemble adds up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privet.compiler.graph.operations.interval import Interval
from privet.compiler.graph.operations.operation import Alike, Array, Context, Operation, Shape

MAX_DEPTH = 16


@dataclass(frozen=True)
class Leaves(Alike):
    """`[M, T (2^depth - 1)] -> [M, T 2^depth]`: 1 for the leaf that each complete tree ends in.

    A node goes left where `x >= 0`; on integers `x` is a signed number of `bits` bits. Nodes come
    level by level. The number of a node within level k has bit j set if the way to it goes right at
    level j, and the T trees are next to one another at each node; leaves are level `depth`.
    """

    bits: int
    depth: int

    name: ClassVar[str] = "leaves"
    compares: ClassVar[bool] = True
    decides: ClassVar[bool] = True
    makes_ring: ClassVar[bool] = True

    def result_shape(self, inputs: Sequence[Shape]) -> Shape:
        (nodes,), depth = inputs, self.depth
        if not 1 <= depth <= MAX_DEPTH or len(nodes) != 2 or nodes[1] % ((1 << depth) - 1):
            raise ValueError(f"{list(nodes)} is no row of complete trees of depth {depth}")
        return (nodes[0], nodes[1] + nodes[1] // ((1 << depth) - 1))

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        return leaves(operands[0] >= 0, self.depth).astype(operands[0].dtype)

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        return Interval.of(0, 1, len(context.shape))


@dataclass(frozen=True, eq=False)
class Trees(Operation):
    """`[M, F] -> [M, C]`: the sum of the leaves that T decision trees end in, and `base` `[C]`.

    Node j of tree t is true where `x[feature] <= threshold`, or `<` where `strict`; all three are
    `[T, J]`, and a node without a feature (-1) is true. `values` `[T, L, C]` are the leaves'.
    A missing value makes every node false but those whose feature is counted from F on: a second
    copy of the features, in which a missing value makes every node true. Without `missing` no
    value may be missing.

    Either trees are complete, of depth `depth`, with nodes and leaves ordered as `Leaves` has them
    and true going left; or leaf l is reached where `offsets[t, l] + paths[t, l] @ nodes` is 0, a
    sum that is never negative. The pass `move_truncation` replaces it.
    """

    feature: Array
    threshold: Array
    strict: Array
    values: Array
    base: Array
    depth: int | None = None
    paths: Array | None = None
    offsets: Array | None = None
    missing: bool = True

    def result_shape(self, inputs: Sequence[Shape]) -> Shape:
        (x,) = inputs
        if len(x) != 2 or 2 * x[1] <= int(self.feature.max()):
            raise ValueError(f"{int(self.feature.max()) + 1} features do not fit {list(x)}")
        return (x[0], self.values.shape[2])

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        (x,) = operands
        columns = np.concatenate([x, np.where(np.isnan(x), -np.inf, x)], axis=1)
        return np.stack([self._row_values(row) for row in columns]).astype(x.dtype)

    def _row_values(self, x: Array) -> Array:
        value = x[np.maximum(self.feature, 0)]
        is_true = np.where(self.strict, value < self.threshold, value <= self.threshold)
        is_true |= self.feature < 0
        if self.depth is not None:
            leaf_mask = leaves(is_true.T.reshape(1, -1), self.depth).reshape(-1, len(is_true)).T
        else:
            assert self.paths is not None
            assert self.offsets is not None
            sums = np.matmul(self.paths, is_true.astype(self.paths.dtype)[:, :, None])[:, :, 0]
            leaf_mask = self.offsets + sums == 0
        return np.asarray(self.values[leaf_mask].sum(axis=0) + self.base)


def leaves(goes_left: Array, depth: int) -> Array:
    """Which leaf each complete tree ends in, from booleans as `Leaves` orders them."""
    rows, trees = goes_left.shape[0], goes_left.shape[1] // ((1 << depth) - 1)
    nodes = goes_left.reshape(rows, -1, trees)
    node_index = np.zeros((rows, 1, trees), dtype=np.int64)
    for level in range(depth):
        is_left = np.take_along_axis(nodes, (1 << level) - 1 + node_index, axis=1)
        node_index |= np.where(is_left, 0, 1 << level)
    leaf_indices = np.arange(1 << depth).reshape(1, -1, 1)
    return np.asarray(leaf_indices == node_index).reshape(rows, -1)
