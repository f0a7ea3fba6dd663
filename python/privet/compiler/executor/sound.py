"""How large each value of a program can become on any input within its public bound.

Intervals of integers go through the program layer by layer, with the weights as they are: above a
sum of products lies `sum w+ hi + sum w- lo`. Everything is exact in 64 bits; what could be larger
has no bound. Suites' own errors (a unit of a linear layer, a unit of a truncation) are counted in,
so that a bound holds for a private run as for the executor.

A bound depends on the weights. It is for their owner, and is in no public half.
"""

from __future__ import annotations

from collections.abc import Mapping

from privet.compiler.graph import Graph, Node
from privet.compiler.graph.operations.interval import BEYOND, Interval


def sound_bounds(graph: Graph, inputs: Mapping[int, int], ring_bits: int) -> dict[int, int | None]:
    """The largest magnitude of each value of an integer graph; None where there is no bound.

    `inputs` has the largest magnitude of each input's integers, by value.
    """
    bounds: dict[int, int | None] = dict(inputs)

    def compute(node: Node, operands: list[Interval | None]) -> Interval | None:
        at = graph.context(node, ring_bits)
        known = [it for it in operands if it is not None]
        if len(known) < len(operands):
            made = node.operation.interval_of_any(at)
        else:
            made = node.operation.interval(known, at)
        if made is not None and made.largest >= BEYOND:
            made = None
        bounds[node.output] = None if made is None else made.largest
        return made

    given: dict[int, Interval | None] = {
        id: Interval.of(-most, most, len(graph.values[id].shape)) for id, most in inputs.items()
    }
    graph.evaluate(given, compute)
    return bounds
