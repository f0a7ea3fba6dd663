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
    rewriter, made_by, inner = Rewriter(graph), graph.producers(), _inner(graph)

    def rewrite(node: Node) -> int | None:
        if not isinstance(node.operation, op.Dense):
            return None
        layer, at, reshapes = node.operation, node.inputs[0], []
        weight = layer.weight
        bias = np.zeros(weight.shape[1]) if layer.bias is None else layer.bias
        is_folded = False
        while at in made_by and at in inner:
            before = made_by[at]
            if isinstance(before.operation, op.Scale | op.AddConstant):
                row, is_folded = _row(before.operation, graph.values[at].shape), True
                assert row is not None, "it folds"
                if isinstance(before.operation, op.Scale):
                    weight = weight * row[:, None]
                else:
                    bias = bias + row @ weight
            else:
                reshapes.append(before)
            at = before.inputs[0]
        ends_well = at in made_by and isinstance(made_by[at].operation, op.Elementwise | op.Mul)
        if not is_folded or not ends_well:
            return None
        base = rewriter.new[at]
        for reshape in reversed(reshapes):
            base = rewriter.add_new(reshape.name, reshape.operation, base)
        return rewriter.add(node, op.Dense(weight, bias), base)

    return rewriter.walk(rewrite)


def _inner(graph: Graph) -> set[int]:
    """Values that nodes make which fold into layers, and that nothing but layers reads, perhaps
    through other such nodes."""
    read_by: dict[int, list[Node]] = {}
    for node in graph.nodes:
        for value in node.inputs:
            read_by.setdefault(value, []).append(node)
    ends = {output.value for output in graph.outputs}
    inner: set[int] = set()
    for node in reversed(graph.nodes):
        readers = read_by.get(node.output, [])
        serves_layers = all(
            isinstance(reader.operation, op.Dense) or reader.output in inner for reader in readers
        )
        if node.output not in ends and serves_layers and _folds(graph, node):
            inner.add(node.output)
    return inner


def _folds(graph: Graph, node: Node) -> bool:
    """Whether a node keeps columns apart and treats all rows alike, by its form."""
    shape = graph.values[node.output].shape
    match node.operation:
        case op.Reshape():
            return graph.values[node.inputs[0]].shape[-1:] == shape[-1:]
        case op.Scale() | op.AddConstant():
            return _row(node.operation, shape) is not None
        case _:
            return False


def _row(operation: op.Scale | op.AddConstant, shape: tuple[int, ...]) -> Array | None:
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
