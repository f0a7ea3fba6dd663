"""Runs a real graph in floating point, to measure how large its values become."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from privet.compiler.graph import Graph
from privet.compiler.graph.operations import Array


def run(
    graph: Graph, inputs: Sequence[Array], observe: Callable[[int, Array], None]
) -> list[Array]:
    """The outputs on one batch of inputs; `observe(id, tensor)` sees every value.

    Tensors keep the inputs' type and are dropped after their last use.
    """
    left = graph.uses()
    held: dict[int, Array] = {}
    for entry, array in zip(graph.inputs, inputs, strict=True):
        held[entry.value] = array
        observe(entry.value, array)
    for node in graph.nodes:
        operands = [held[id] for id in node.inputs]
        shape = graph.values[node.output].shape
        held[node.output] = node.operation.real(operands, shape)
        observe(node.output, held[node.output])
        for id in node.inputs:
            left[id] -= 1
            if not left[id]:
                held.pop(id, None)
    return [held[output.value] for output in graph.outputs]
