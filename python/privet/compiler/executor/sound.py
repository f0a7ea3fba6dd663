"""How large each value of a program can become on any input within its public bound.

Intervals of integers go through the program layer by layer, with the weights as they are: above a
sum of products lies `sum w+ hi + sum w- lo`. Everything is exact in 64 bits; what could be larger
has no bound. Suites' own errors (a unit of a linear layer, a unit of a truncation) are counted in,
so that a bound holds for a private run as for the executor.

A bound depends on the weights. It is for their owner, and is in no public half.
"""

from __future__ import annotations

from collections.abc import Mapping

from privet.compiler.graph import Graph
from privet.compiler.graph.operations.interval import BEYOND, Interval


def sound_bounds(graph: Graph, inputs: Mapping[int, int], ring_bits: int) -> dict[int, int | None]:
    """The largest magnitude of each value of an integer graph; None where there is no bound.

    `inputs` has the largest magnitude of each input's integers, by value.
    """
    left = graph.uses()
    held: dict[int, Interval | None] = {}
    for id, most in inputs.items():
        held[id] = Interval.of(-most, most, len(graph.values[id].shape))
    bounds: dict[int, int | None] = dict(inputs)
    for node in graph.nodes:
        at = graph.context(node, ring_bits)
        known = [it for it in (held[id] for id in node.inputs) if it is not None]
        if len(known) < len(node.inputs):
            made = node.operation.interval_of_any(at)
        else:
            made = node.operation.interval(known, at)
        if made is not None and made.largest >= BEYOND:
            made = None
        held[node.output] = made
        bounds[node.output] = None if made is None else made.largest
        for id in node.inputs:
            left[id] -= 1
            if not left[id]:
                held.pop(id, None)
    return bounds
