"""Gives every value a scale, and places truncations as late as they can be.

A product with weights raises the scale by `weight_scale`; nothing forces it down at once. A value
is truncated only in front of a comparison (cheaper on fewer bits), in front of a linear layer or
sum whose result would stand above the ceiling otherwise, and in front of an average whose window is
no power of two. Sums shift the side with the lower scale left. An average over 2^j elements is a
sum whose scale is j higher.

Inputs that only trees read are not scaled: the client gives the places of their numbers in the
order of float32.

Where truncations are is public. So the ceiling is one scale for the whole graph: it leaves
`headroom` bits above the point, or what one product with weights needs. No value's own range has a
say.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from privet.compiler.graph import Graph, Node
from privet.compiler.graph import operations as op
from privet.compiler.graph.order import PLACE_BITS, compared_values
from privet.compiler.passes.check_ranges import GUARD_BITS
from privet.compiler.passes.place_trees import place_trees
from privet.compiler.passes.rewriter import Rewriter

FACTOR_BITS_AT_LEAST = 6
"""Precision that the factor of an average keeps, however tight the ring is."""


def headroom_of(graph: Graph) -> int:
    """Bits above the point that the largest magnitude of any value takes."""
    return max(math.frexp(max(value.magnitude or 0.0 for value in graph.values.values()))[1], 0)


def move_truncation(
    graph: Graph, *, ring_bits: int, scale_bits: int, weight_scale: int, headroom: int
) -> Graph:
    """The graph with `ShiftLeft` and `Truncate` placed and every value's scale set.

    Where a value does not fit the ring, it is left as it is for `check_ranges` to report.
    """
    compared = compared_values(graph)
    inputs = tuple(replace(entry, order=entry.value in compared) for entry in graph.inputs)
    place = {"scale": 0, "magnitude": math.ldexp(1.0, PLACE_BITS)}
    graph = replace(graph, inputs=inputs).with_values(
        lambda id, value: replace(value, **(place if id in compared else {"scale": scale_bits}))
    )
    ceiling = max(scale_bits + weight_scale, ring_bits - GUARD_BITS - headroom)
    placement = _Placement(graph, ring_bits, ceiling, scale_bits, weight_scale)
    return placement.rewriter.walk(placement.place)


def truncated_early(graph: Graph) -> set[int]:
    """Values with several readers of which one, perhaps behind a rearrangement, is a maximum or a
    product of two values, which read them truncated anyway. So all readers see the same numbers.
    """
    found: set[int] = set()
    for node in reversed(graph.nodes):
        match node.operation:
            case op.Mul() | op.MatMul() | op.MaxPool2d():
                found.update(node.inputs)
            case op.Reshape() | op.Transpose() | op.Broadcast() if node.output in found:
                found.update(node.inputs)
    uses = graph.uses()
    return {id for id in found if uses[id] > 1}


class _Placement:
    def __init__(
        self, graph: Graph, ring_bits: int, ceiling: int, scale_bits: int, weight_scale: int
    ) -> None:
        self.rewriter = Rewriter(graph)
        self.ring_bits = ring_bits
        self.ceiling = ceiling
        self.base = scale_bits
        self.rise = weight_scale
        self.rescaled: dict[tuple[int, int], int] = {}
        self.early = truncated_early(graph)

    def place(self, node: Node) -> int:
        inputs = [self.rewriter.new[id] for id in node.inputs]
        for index, id in enumerate(node.inputs):
            if id in self.early:
                inputs[index] = self.lowered(node, inputs[index])
        x = inputs[0]
        match node.operation:
            case op.Conv2d() | op.Dense() | op.Scale():
                if self.scale(x) + self.rise > self.ceiling:
                    x = self.lowered(node, x)
                return self.add(node, self.scale(x) + self.rise, x)
            case op.Mul() | op.MatMul():
                x, y = (self.lowered(node, id) for id in inputs)
                return self.add(node, self.scale(x) + self.scale(y), x, y)
            case op.Polynomial():
                return self.add(node, self.base, self.lowered(node, x))
            case op.Elementwise():
                return self.add(node, self.base, x)
            case op.Piecewise(step_bits=fraction):
                x = self.at(node, x, self.base + self.rewriter.builder.value(x).fine)
                fine = self.rewriter.old.values[node.output].fine
                return self.add(node, self.base + fine + fraction, x)
            case op.Broadcast() | op.Reshape() | op.Transpose() | op.Slice():
                if fine := self.rewriter.old.values[node.output].fine:
                    x = self.at(node, x, self.base + fine)
                made = self.add(node, self.scale(x), x)
                kept = (self.rewriter.builder.value(id).fine for id in (made, x))
                self.rewriter.builder.refine(made, max(kept))
                return made
            case op.Relu() | op.MaxPool2d():
                x = self.lowered(node, x)
                return self.add(node, self.scale(x), x)
            case op.Step():
                x = self.lowered(node, x)
                return self.add(node, 0, x, operation=op.Step(self.ring_bits))
            case op.Trees():
                return self.trees(node, x)
            case op.ArgMax():
                return self.add(node, 0, self.lowered(node, x))
            case op.AvgPool2d():
                return self.average(node, node.operation, x)
            case op.AddConstant() | op.Pad():
                return self.sum(node, [x], at_least=self.base)
            case op.ShiftLeft() | op.Truncate() | op.ChannelAffine():
                raise AssertionError("this pass runs once, after fold_batchnorm")
            case _:
                return self.sum(node, inputs, at_least=0)

    def sum(self, node: Node, inputs: Sequence[int], *, at_least: int) -> int:
        """Brings the inputs to one scale: the highest below the ceiling, rather than truncating."""
        scales = [self.scale(id) for id in inputs]
        high, low = max(*scales, at_least), max(min(scales), self.base)
        choices = [s for s in (high, low, self.base) if s <= high]
        target = next((s for s in choices if s <= self.ceiling), choices[-1])
        return self.add(node, target, *(self.at(node, id, target) for id in inputs))

    def trees(self, node: Node, x: int) -> int:
        """Trees read places of inputs, or else what they compare at the base scale."""
        if self.scale(x) != 0:
            x = self.lowered(node, x)
        return place_trees(self.rewriter, node, x, self.ring_bits)

    def average(self, node: Node, pool: op.AvgPool2d, x: int) -> int:
        """Picks by how much the scale rises, so that the factors become integers."""
        factors = [factor for factor in pool.factors if factor] or [1.0]
        mantissas = {math.frexp(abs(factor))[0] for factor in factors}
        exponents = [1 - math.frexp(factor)[1] for factor in factors]
        if mantissas == {0.5}:
            rise = max(*exponents, 0)
            if self.scale(x) + rise > self.ceiling:
                x = self.lowered(node, x)
        else:
            if self.scale(x) + max(exponents) + self.base > self.ceiling:
                x = self.lowered(node, x)
            rise = max(exponents) + self.base
            lowest = max(exponents) + FACTOR_BITS_AT_LEAST
            rise = max(min(rise, self.ceiling - self.scale(x)), lowest)
        return self.add(node, self.scale(x) + rise, x)

    def add(
        self, node: Node, scale: int, *inputs: int, operation: op.Operation | None = None
    ) -> int:
        made = self.rewriter.add(node, operation or node.operation, *inputs)
        self.rewriter.builder.rescale(made, scale)
        return made

    def lowered(self, node: Node, x: int) -> int:
        """`x` truncated to `scale_bits` and what it keeps beyond, if its scale is above that."""
        kept = self.base + self.rewriter.builder.value(x).fine
        return self.at(node, x, min(self.scale(x), kept))

    def at(self, node: Node, x: int, scale: int) -> int:
        """`x` at another scale; made once, however many nodes ask for it."""
        have = self.scale(x)
        if have == scale:
            return x
        if (x, scale) not in self.rescaled:
            change = op.Truncate(have - scale) if scale < have else op.ShiftLeft(scale - have)
            like = replace(self.rewriter.builder.value(x), scale=scale)
            made = self.rewriter.builder.add(change, [x], node=node.name, like=like)
            self.rescaled[x, scale] = made
        return self.rescaled[x, scale]

    def scale(self, new: int) -> int:
        scale = self.rewriter.builder.value(new).scale
        assert scale is not None
        return scale
