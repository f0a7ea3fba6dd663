"""How large each value of a program can become on any input within its public bound.

Intervals of integers go through the program layer by layer, with the weights as they are: above a
sum of products lies `sum w+ hi + sum w- lo`. Everything is exact in 64 bits; what could be larger
has no bound. Suites' own errors (a unit of a linear layer, a unit of a truncation) are counted in,
so that a bound holds for a private run as for the executor.

A bound depends on the weights. It is for their owner, and is in no public half.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from privet.compiler.graph import Graph, Node
from privet.compiler.graph.operations import Piecewise
from privet.compiler.graph.operations.interval import BEYOND, Interval
from privet.compiler.graph.operations.piecewise import leaves_tables


@dataclass(frozen=True)
class Bounds:
    """`largest` is the largest magnitude of each value, None where there is no bound; `beyond` has
    results of functions by lines whose tables some argument leaves, where that makes a difference.
    """

    largest: Mapping[int, int | None]
    beyond: Collection[int]


def sound_bounds(graph: Graph, inputs: Mapping[int, int], ring_bits: int) -> Bounds:
    """The bounds of an integer graph; `inputs` has the largest magnitude of each input's integers,
    by value."""
    bounds: dict[int, int | None] = dict(inputs)
    readers: dict[int, list[Node]] = defaultdict(list)
    arguments: dict[int, tuple[int, int]] = {}

    def compute(node: Node, operands: list[Interval | None]) -> Interval | None:
        context = graph.context(node, ring_bits)
        intervals = [operand for operand in operands if operand is not None]
        if len(intervals) < len(operands):
            interval = node.operation.interval_of_any(context)
        else:
            interval = node.operation.interval(intervals, context)
            if isinstance(node.operation, Piecewise):
                (x,) = node.inputs
                readers[x].append(node)
                arguments[x] = int(intervals[0].low.min()), int(intervals[0].high.max())
        if interval is not None and interval.largest >= BEYOND:
            interval = None
        bounds[node.output] = None if interval is None else interval.largest
        return interval

    interval_of: dict[int, Interval | None] = {
        id: Interval.of(-magnitude, magnitude, len(graph.values[id].shape))
        for id, magnitude in inputs.items()
    }
    graph.evaluate(interval_of, compute)
    beyond = {
        id for x, nodes in readers.items() for id in _beyond_tables(graph, nodes, arguments[x])
    }
    return Bounds(bounds, beyond)


def _beyond_tables(graph: Graph, nodes: Sequence[Node], argument: tuple[int, int]) -> Iterator[int]:
    """The results of functions of one value whose tables its integers from and to may leave."""
    tables = [node.operation for node in nodes if isinstance(node.operation, Piecewise)]
    exceeded_tables = leaves_tables(tables, *argument, graph.context(nodes[0], 0))
    yield from (node.output for node in nodes if node.operation in exceeded_tables)
