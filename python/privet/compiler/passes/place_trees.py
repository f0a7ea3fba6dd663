"""Decision trees as linear layers and comparisons.

An input that only trees read comes as places in the order of float32, where `x <= t` is `X <= T`
with both their places, and `x < t` is that with one less: exact for every number. What is computed
before trees has a scale. There `x <= t` is `X <= T` with `T` next to `t 2^scale`: a number that
equals a threshold is compared as one, and so is every number that is further from it than
`2^-scale`; halves are rounded so that a threshold in the middle of two numbers tells them apart.

A dense layer computes `4 (T - X) + 2`, whose sign a unit of error in a suite's linear layer does
not change; its weights choose the feature, and so are private as thresholds are. Complete trees go
on with `Leaves`. Others count for each leaf the nodes on its way that decide otherwise, by a layer
in one block for each tree, and compare again. The leaves' values are another dense layer, at a
scale at which no sum of leaves leaves the ring.

What is public: the number of trees, the padded number of their nodes and leaves, for trees that are
not complete the binary logarithm of their depth, and the scale of the result, which for large
values tells the binary logarithm of what the trees can add up to.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from privet.compiler.graph import Node, Value
from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Array, Operation
from privet.compiler.graph.order import INFINITY, MISSING, PLACE_BITS, places
from privet.compiler.passes.check_ranges import GUARD_BITS

if TYPE_CHECKING:
    from privet.compiler.passes.rewriter import Rewriter

VALUE_SCALE = 24
"""Fractional bits of leaves' values, where the ring has room."""
VALUE_BITS = 20
"""Most bits of leaves' values as integers."""
MARGIN = 2
"""What is added to four times a number before its sign is taken."""


def place_trees(rewriter: Rewriter, node: Node, x: int, ring_bits: int) -> int:
    """Emits the operations of an ensemble on value `x`; returns the id of its result.

    At scale 0 `x` has places in the order of float32.
    """
    assert isinstance(node.operation, op.Trees)
    return _Ensemble(rewriter, node, x, node.operation, ring_bits).emit()


class _Ensemble:
    def __init__(
        self, rewriter: Rewriter, node: Node, x: int, trees: op.Trees, ring_bits: int
    ) -> None:
        self.rewriter, self.node, self.trees, self.ring_bits = rewriter, node, trees, ring_bits
        self.x, self.input = x, rewriter.builder.value(x)

    def emit(self) -> int:
        assert self.input.scale is not None
        assert self.input.magnitude is not None
        scale = self.input.scale
        if self.trees.feature.max() >= self.input.shape[1]:
            self._append_copy()
        thresholds = self._integer_thresholds(scale)
        # |4 (T - X) + 2| is below 2^34 for places, and a unit of error does not change that.
        width = PLACE_BITS + 4 if scale == 0 else self.ring_bits
        magnitude = math.ldexp(
            max(self.input.magnitude, float(np.abs(thresholds).max()) / 2**scale), 1
        )
        differences = self._emit(self._comparison_layer(thresholds), self.x, scale + 2, magnitude)
        if self.trees.depth is not None:
            leaves = self._emit(op.Leaves(width, self.trees.depth), differences, 0, 1)
        else:
            leaves = self._leaf_indicators(self._emit(op.Step(width), differences, 0, 1))
        return self._sum_of_leaf_values(leaves)

    def _append_copy(self) -> None:
        """Joins to the features their copy, in which missing values are before all others."""
        copy = self.x
        if self.input.scale == 0:
            shape = (self.input.shape[0], self.input.shape[1])
            # 4 (x - infinity) - 2 is positive for what is behind infinity, whatever a suite rounds.
            shifted = self._emit(op.ShiftLeft(2), self.x, 2, 2.0**PLACE_BITS)
            bias = op.AddConstant(np.full(shape, -float(INFINITY) - MARGIN / 4))
            is_missing = self._emit(
                op.Step(PLACE_BITS + 4), self._emit(bias, shifted, 2, 2.0**32), 0, 1
            )
            image = self._emit(op.Reshape((1, 1, *shape)), is_missing, 0, 1)
            pool = op.AvgPool2d((1, 1), (1, 1), op.NO_PADDING, (1, 1), shape, (2.0 * MISSING,))
            offset = self._emit(op.Reshape(shape), self._emit(pool, image, 0, 2.0**32), 0, 2.0**32)
            copy = self._emit(op.Sub(), self.x, 0, 2.0**PLACE_BITS, offset)
        self.x = self._emit(op.Concat(1), self.x, self.input.scale or 0, self.input.magnitude, copy)
        self.input = self.rewriter.builder.value(self.x)

    def _integer_thresholds(self, scale: int) -> Array:
        """The `T` of each node, as far as one makes a difference."""
        trees = self.trees
        if scale == 0:
            thresholds = places(trees.threshold) - trees.strict
        else:
            assert self.input.magnitude is not None
            largest = math.ldexp(1.0, math.frexp(self.input.magnitude)[1] + scale)
            thresholds = np.ldexp(trees.threshold.astype(np.float64), scale)
            thresholds = np.where(
                trees.strict, np.floor(thresholds + 0.5) - 1, np.ceil(thresholds - 0.5)
            )
            thresholds = np.clip(thresholds, -largest - 1, largest)
        return np.where(trees.feature < 0, 0, thresholds)

    def _comparison_layer(self, thresholds: Array) -> op.Dense:
        """`4 (T - X) + 2` for all nodes: in the order of `Leaves`, or tree by tree."""
        trees, scale = self.trees, self.input.scale or 0
        is_complete = trees.depth is not None
        features, thresholds = (
            (a.T if is_complete else a).ravel() for a in (trees.feature, thresholds)
        )
        weight = np.zeros((self.input.shape[1], len(features)), dtype=np.float32)
        (inner_nodes,) = np.nonzero(features >= 0)
        weight[features[inner_nodes], inner_nodes] = -1
        return op.Dense(weight, np.ldexp(4 * thresholds + MARGIN, -(scale + 2)))

    def _leaf_indicators(self, bits: int) -> int:
        """1 for the leaf that each tree ends in: no node on its way decides otherwise."""
        paths, offsets = self.trees.paths, self.trees.offsets
        assert paths is not None
        assert offsets is not None
        rows = self.input.shape[0]
        count, leaves, nodes = paths.shape
        weight = -paths.reshape(count * leaves, nodes, 1, 1).astype(np.float32)
        bias = MARGIN / 4 - offsets.ravel().astype(np.float64)
        layer = op.Conv2d(weight, bias, groups=count)
        max_sum = 4 * _max_contradictions(paths, offsets) + MARGIN
        image = self._emit(op.Reshape((rows, count * nodes, 1, 1)), bits, 0, 1)
        sums = self._emit(layer, image, 2, max_sum / 4)
        flat = self._emit(op.Reshape((rows, count * leaves)), sums, 2, max_sum / 4)
        return self._emit(op.Step((max_sum + 1).bit_length() + 1), flat, 0, 1)

    def _sum_of_leaf_values(self, leaves: int) -> int:
        """The sum of the values of the leaves that were reached."""
        values, base = self.trees.values, self.trees.base
        max_sum = float((np.abs(values).max(axis=1).sum(axis=0) + np.abs(base)).max())
        low, high = self._value_bounds(values)
        half_range = float((high - low).max()) / 2
        # A bit is for the last places of values, which are rounded.
        room_bits = self.ring_bits - GUARD_BITS - max(math.frexp(max_sum)[1], 0) - 1
        scale = max(min(VALUE_SCALE, room_bits, VALUE_BITS - math.frexp(half_range)[1]), 0)
        # Each value is rounded alone, and those that are never positive from the lowest on: so
        # classes tie as they do in the model, and where the score of one is 1 less the other's.
        origin = np.where(high <= 0, low, 0.0)
        values, base = _round_to_scale(values - origin, scale), base + _sum_over_trees(origin)
        # Of 1 less what weights in single precision add up to, their rounding is no difference.
        base = _round_to_scale(
            np.where(abs(base) <= -(2.0**-23) * _sum_over_trees(origin), 0.0, base), scale
        )
        middle = _round_to_scale(np.add(*self._value_bounds(values)) / 2, scale)
        values, base = values - middle, base + _sum_over_trees(middle)
        if self.trees.depth is None:
            values = np.where(self._leaf_mask(), values, 0.0)
        else:
            values = values.transpose(1, 0, 2)
        return self._emit(op.Dense(values.reshape(-1, base.size), base), leaves, scale, max_sum)

    def _value_bounds(self, values: Array) -> tuple[Array, Array]:
        """The least and the largest of each tree's values for each target."""
        mask = self._leaf_mask()
        low = values.min(axis=1, initial=np.inf, where=mask, keepdims=True)
        return low, values.max(axis=1, initial=-np.inf, where=mask, keepdims=True)

    def _leaf_mask(self) -> Array:
        """Which leaves are some tree's, by value; others pad."""
        trees, shape = self.trees, self.trees.values.shape
        mask = np.ones(shape[:2], dtype=bool)
        if trees.paths is not None:
            mask = (trees.paths != 0).any(axis=2) | (trees.offsets == 0)
        return np.broadcast_to(mask[:, :, None], shape)

    def _emit(
        self, operation: Operation, x: int, scale: int, magnitude: float | None, *other_inputs: int
    ) -> int:
        like: Value = self.rewriter.old.values[self.node.output]
        like = replace(like, scale=scale, magnitude=magnitude)
        return self.rewriter.add_new(self.node.name, operation, x, *other_inputs, like=like)


def _round_to_scale(values: Array, scale: int) -> Array:
    return np.ldexp(np.rint(np.ldexp(values, scale)), -scale)


def _sum_over_trees(values: Array) -> Array:
    """The sum over trees, of one number for each target."""
    return np.asarray(values.sum(axis=(0, 1)))


def _max_contradictions(paths: Array, offsets: Array) -> int:
    """Most nodes that can decide against a leaf, rounded up to a power of two less one."""
    max_count = int((offsets + np.maximum(paths, 0).sum(axis=2)).max())
    return (1 << max_count.bit_length()) - 1
