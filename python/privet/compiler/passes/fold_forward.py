"""Folds what results are multiplied by, and what is added, into the layers behind.

A kernel machine multiplies a bell by a constant and then by coefficients. Their products alone
matter: of the first a result may be far larger than what comes of it. A normalisation multiplies
each column by a weight, and where nothing but layers reads the result, the weight is theirs: that
saves a layer and a truncation. What happens depends on the graph's form alone
(docs/decisions/public-half.md).
"""

from __future__ import annotations

import numpy as np

from privet.compiler.graph import Graph, Node
from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Array
from privet.compiler.passes.rewriter import Rewriter


def fold_forward(graph: Graph) -> Graph:
    """The same function with layers that read results of functions and of products themselves."""
    rewriter, producers, foldable = Rewriter(graph), graph.producers(), _foldable_values(graph)

    def rewrite(node: Node) -> int | None:
        if not isinstance(node.operation, op.Dense):
            return None
        layer, value, reshapes = node.operation, node.inputs[0], []
        weight = layer.weight
        bias = np.zeros(weight.shape[1]) if layer.bias is None else layer.bias
        is_folded = False
        while value in producers and value in foldable:
            producer = producers[value]
            if isinstance(producer.operation, op.Scale | op.AddConstant):
                constants, is_folded = (
                    _column_constants(producer.operation, graph.values[value].shape),
                    True,
                )
                assert constants is not None, "it folds"
                if isinstance(producer.operation, op.Scale):
                    weight = weight * constants[:, None]
                else:
                    bias = bias + constants @ weight
            else:
                reshapes.append(producer)
            value = producer.inputs[0]
        reads_nonlinear = value in producers and isinstance(
            producers[value].operation, op.Elementwise | op.Mul
        )
        if not is_folded or not reads_nonlinear:
            return None
        layer_input = rewriter.new[value]
        for reshape in reversed(reshapes):
            layer_input = rewriter.add_new(reshape.name, reshape.operation, layer_input)
        return rewriter.add(node, op.Dense(weight, bias), layer_input)

    return rewriter.walk(rewrite)


def _foldable_values(graph: Graph) -> set[int]:
    """Values that nodes make which fold into layers, and that nothing but layers reads, perhaps
    through other such nodes."""
    readers_of: dict[int, list[Node]] = {}
    for node in graph.nodes:
        for value in node.inputs:
            readers_of.setdefault(value, []).append(node)
    output_values = {output.value for output in graph.outputs}
    foldable: set[int] = set()
    for node in reversed(graph.nodes):
        readers = readers_of.get(node.output, [])
        serves_layers = all(
            isinstance(reader.operation, op.Dense) or reader.output in foldable
            for reader in readers
        )
        if node.output not in output_values and serves_layers and _folds(graph, node):
            foldable.add(node.output)
    return foldable


def _folds(graph: Graph, node: Node) -> bool:
    """Whether a node keeps columns apart and treats all rows alike, by its form."""
    shape = graph.values[node.output].shape
    match node.operation:
        case op.Reshape():
            return graph.values[node.inputs[0]].shape[-1:] == shape[-1:]
        case op.Scale() | op.AddConstant():
            return _column_constants(node.operation, shape) is not None
        case _:
            return False


def _column_constants(operation: op.Scale | op.AddConstant, shape: tuple[int, ...]) -> Array | None:
    """A constant for each column, if the form of the constants says that all rows have the same."""
    if isinstance(operation, op.Scale):
        if operation.uniform or operation.by_column:
            row: Array = operation.weight.reshape(-1, shape[-1])[0].astype(np.float64)
            return row
        constants = operation.weight
    else:
        constants = operation.bias
    if constants.size not in (1, shape[-1]) or constants.shape[-1:] not in ((), (constants.size,)):
        return None
    return np.broadcast_to(constants.reshape(-1), (shape[-1],)).astype(np.float64)
