"""Keeps values in the range of their quantised form where calibration leaves it, and only there.

Exporters quantise a ReLU away by a range that begins at zero, so that the lower end counts; the
upper end is mostly the largest value of their own calibration. Which ends count is public.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privet.compiler.graph import Graph, Node
from privet.compiler.graph import operations as op
from privet.compiler.passes.rewriter import Rewriter

BEYOND = 1.0 / 32.0
"""How far beyond an end, as a part of it, a value may be measured that is not kept there."""


def saturations(graph: Graph) -> int:
    """How many values the model keeps in a range."""
    return sum(isinstance(node.operation, op.Saturate) for node in graph.nodes)


def keep_saturations(
    graph: Graph, extremes: Mapping[int, tuple[float, float]]
) -> tuple[Graph, int]:
    """The graph without `Saturate`, and how many of them became comparisons.

    `extremes` has the smallest and the largest element measured of each value.
    """
    rewriter = Rewriter(graph)
    count = 0

    def rewrite(node: Node) -> int | None:
        nonlocal count
        if not isinstance(node.operation, op.Saturate):
            return None
        low, high = node.operation.low, node.operation.high
        slacks = [node.operation.step / 2.0 + BEYOND * abs(bound) for bound in (low, high)]
        smallest, largest = extremes[node.inputs[0]]
        is_below, is_above = smallest < low - slacks[0], largest > high + slacks[1]
        count += is_below or is_above
        x = rewriter.new[node.inputs[0]]
        low_excess = _excess_over(rewriter, node, x, low) if is_below else None
        if not is_above:
            return x if low_excess is None else _shift(rewriter, node, low_excess, low)
        excess = _excess_over(rewriter, node, x, high)
        clamped = rewriter.add_new(
            node.name, op.Sub(), x if low_excess is None else low_excess, excess
        )
        return clamped if low_excess is None else _shift(rewriter, node, clamped, low)

    return rewriter.walk(rewrite), count


def _excess_over(rewriter: Rewriter, node: Node, x: int, bound: float) -> int:
    """`max(x - bound, 0)`."""
    return rewriter.add_new(node.name, op.Relu(), _shift(rewriter, node, x, -bound))


def _shift(rewriter: Rewriter, node: Node, x: int, offset: float) -> int:
    return x if offset == 0 else rewriter.add_new(node.name, op.AddConstant(np.asarray(offset)), x)
