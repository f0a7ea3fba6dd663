"""Decision trees as linear layers and comparisons, at the scale of what they read.

On integers `x <= t` is `X <= T` with `T = floor(t 2^scale)`, and `x < t` is `X <= T` with `T` one less
than `ceil(t 2^scale)`: right for every x that the scale represents. A dense layer computes
`4 (T - X) + 2`, whose sign a unit of error in a suite's linear layer does not change; its weights
choose the feature, and so are private as thresholds are. Complete trees go on with `Leaves`. Others
count for each leaf the nodes on its way that decide otherwise, by a layer in one block for each tree,
and compare again. The leaves' values are another dense layer.

What is public: the number of trees, and the padded number of their nodes and leaves. Thresholds
beyond the public bound of the input are as good as at the bound.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from privet.compiler.graph import Node, Value
from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Array, Operation, Trees
from privet.compiler.passes.check_ranges import GUARD_BITS

if TYPE_CHECKING:
    from privet.compiler.passes.rewriter import Rewriter

VALUE_SCALE = 24
"""Fractional bits of leaves' values, where the ring has room."""
VALUE_BITS = 20
"""Most bits of leaves' values as integers."""
MARGIN = 2
"""A comparison with 0 is made with this and four times the number, so that it bears a unit of error."""


def place_trees(rewriter: Rewriter, node: Node, x: int, ring_bits: int, *, bounded: bool) -> int:
    """Emits the operations of an ensemble on value `x`; returns the id of its result.

    `bounded` says that no element of `x` exceeds its magnitude, whatever the input.
    """
    assert isinstance(node.operation, Trees)
    return _Ensemble(rewriter, node, x, node.operation, ring_bits).emit(bounded=bounded)


class _Ensemble:
    def __init__(
        self, rewriter: Rewriter, node: Node, x: int, trees: Trees, ring_bits: int
    ) -> None:
        self.rewriter, self.node, self.trees, self.ring_bits = rewriter, node, trees, ring_bits
        self.x, self.input = x, rewriter.builder.value(x)

    def emit(self, *, bounded: bool) -> int:
        assert self.input.scale is not None
        assert self.input.magnitude is not None
        scale = self.input.scale
        whole = max(math.frexp(self.input.magnitude)[1] + scale, 1)
        nodes = self._nodes(scale, 1 << whole)
        # |4 (T - X) + 2| is at most 8 * 2^whole + 3.
        width = min(whole + 5, self.ring_bits) if bounded else self.ring_bits
        compared = self._emit(nodes, self.x, scale + 2, math.ldexp(1.0, whole - scale + 1) + 1)
        if self.trees.depth is not None:
            leaves = self._emit(op.Leaves(width, self.trees.depth), compared, 0, 1)
        else:
            leaves = self._selected(self._emit(op.Step(width), compared, 0, 1))
        return self._values(leaves)

    def _nodes(self, scale: int, bound: int) -> op.Dense:
        """`4 (T - X) + 2` for all nodes: in the order of `Leaves`, or tree by tree."""
        trees = self.trees
        limits = np.ldexp(trees.threshold.astype(np.float64), scale)
        limits = np.where(trees.strict, np.ceil(limits) - 1, np.floor(limits))
        limits = np.where(trees.feature < 0, 0, np.clip(limits, -bound - 1, bound))
        complete = trees.depth is not None
        feature, limits = ((a.T if complete else a).ravel() for a in (trees.feature, limits))
        weight = np.zeros((self.input.shape[1], len(feature)), dtype=np.float32)
        (known,) = np.nonzero(feature >= 0)
        weight[feature[known], known] = -1
        return op.Dense(weight, np.ldexp(4 * limits + MARGIN, -(scale + 2)))

    def _selected(self, bits: int) -> int:
        """1 for the leaf that each tree ends in: no node on its way decides otherwise."""
        paths, offsets = self.trees.paths, self.trees.offsets
        assert paths is not None
        assert offsets is not None
        rows = self.input.shape[0]
        count, leaves, nodes = paths.shape
        weight = -paths.reshape(count * leaves, nodes, 1, 1).astype(np.float32)
        bias = MARGIN / 4 - offsets.ravel().astype(np.float64)
        layer = op.Conv2d(weight, bias, groups=count)
        most = 4 * _way(paths, offsets) + MARGIN
        image = self._emit(op.Reshape((rows, count * nodes, 1, 1)), bits, 0, 1)
        sums = self._emit(layer, image, 2, most / 4)
        flat = self._emit(op.Reshape((rows, count * leaves)), sums, 2, most / 4)
        return self._emit(op.Step((most + 1).bit_length() + 1), flat, 0, 1)

    def _values(self, leaves: int) -> int:
        """The sum of the values of the leaves that were reached."""
        values = self.trees.values
        if self.trees.depth is not None:
            values = values.transpose(1, 0, 2)
        weight = values.reshape(-1, values.shape[-1])
        result = self.rewriter.old.values[self.node.output]
        room = self.ring_bits - GUARD_BITS - _whole_bits(result.magnitude or 0.0)
        scale = min(VALUE_SCALE, room, VALUE_BITS - math.frexp(float(np.abs(weight).max()))[1])
        return self._emit(
            op.Dense(weight, self.trees.base), leaves, max(scale, 0), result.magnitude or 0.0
        )

    def _emit(self, operation: Operation, x: int, scale: int, magnitude: float) -> int:
        like: Value = self.rewriter.old.values[self.node.output]
        like = replace(like, scale=scale, magnitude=magnitude)
        return self.rewriter.add_new(self.node.name, operation, x, like=like)


def _way(paths: Array, offsets: Array) -> int:
    """Most nodes that can decide against a leaf, rounded up to a power of two less one."""
    most = int((offsets + np.maximum(paths, 0).sum(axis=2)).max())
    return (1 << most.bit_length()) - 1


def _whole_bits(magnitude: float) -> int:
    return max(math.frexp(magnitude)[1], 0)
