"""Runs a real graph in floating point, to measure how large its values become."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from privet.compiler.graph import Graph, Node
from privet.compiler.graph.operations import Array


def run(
    graph: Graph, inputs: Sequence[Array], observe: Callable[[int, Array], None]
) -> list[Array]:
    """The outputs on one batch of inputs; `observe(id, tensor)` sees every value.

    Tensors keep the inputs' type and are dropped after their last use. What is not finite is for
    the caller to look for.
    """
    arrays = {entry.value: array for entry, array in zip(graph.inputs, inputs, strict=True)}
    for id, array in arrays.items():
        observe(id, array)

    def compute(node: Node, operands: list[Array]) -> Array:
        result = node.operation.real(operands, graph.values[node.output].shape)
        observe(node.output, result)
        return result

    with np.errstate(all="ignore"):
        return graph.evaluate(arrays, compute)
