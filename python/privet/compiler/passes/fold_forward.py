"""Folds what a function's results are multiplied by, and what is added, into the layer behind.

A kernel machine multiplies a bell by a constant and then by coefficients. Their products alone
matter: of the first a result may be far larger than what comes of it. What happens depends on the
graph's form alone (docs/decisions/public-half.md).
"""

from __future__ import annotations

import numpy as np

from privet.compiler.graph import Graph, Node
from privet.compiler.graph.operations import AddConstant, Array, Dense, Elementwise, Scale
from privet.compiler.passes.rewriter import Rewriter


def fold_forward(graph: Graph) -> Graph:
    """The same function with layers that read functions' results themselves."""
    rewriter, uses = Rewriter(graph), graph.uses()
    made_by = graph.producers()

    def rewrite(node: Node) -> int:
        if not isinstance(node.operation, Dense):
            return rewriter.copy(node)
        layer, at = node.operation, node.inputs[0]
        weight = layer.weight
        bias = np.zeros(weight.shape[1]) if layer.bias is None else layer.bias
        while at in made_by and uses[at] == 1:
            before = made_by[at]
            shape = graph.values[at].shape
            match before.operation:
                case Scale(weight=factor) if (row := _row(factor, shape)) is not None:
                    weight = weight * row[:, None]
                case AddConstant(bias=added) if (row := _row(added, shape)) is not None:
                    bias = bias + row @ weight
                case _:
                    break
            at = before.inputs[0]
        is_function = at in made_by and isinstance(made_by[at].operation, Elementwise)
        if at == node.inputs[0] or not is_function:
            return rewriter.copy(node)
        return rewriter.add(node, Dense(weight, bias), rewriter.new[at])

    return rewriter.walk(rewrite)


def _row(constants: Array, shape: tuple[int, ...]) -> Array | None:
    """A constant for each column, if the form of the constants says that all rows have the same."""
    if constants.size != 1 and constants.shape[-1] != constants.size:
        return None
    if constants.size not in (1, shape[-1]):
        return None
    return np.broadcast_to(constants.reshape(-1), (shape[-1],)).astype(np.float64)
