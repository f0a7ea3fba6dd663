"""Moves the factor of each row behind a product of matrices: `(x * r) y` becomes `(x y) * r`.

So the weights of an attention are normalised after the product with the values, on fewer elements.
"""

from __future__ import annotations

import math

from privet.compiler.graph import Graph, Node
from privet.compiler.graph import operations as op
from privet.compiler.passes.rewriter import Rewriter, rewritten


def normalize_after(graph: Graph) -> Graph:
    """The same function, where a product has fewer columns than it sums over."""
    return rewritten(graph, _move_factor)


def _move_factor(rewriter: Rewriter, node: Node) -> int | None:
    if not isinstance(node.operation, op.MatMul):
        return None
    x, y = (rewriter.new[id] for id in node.inputs)
    batch, rows, inner = rewriter.builder.shape(x)
    columns = rewriter.builder.shape(y)[2]
    weights_and_factor = _split_row_factor(rewriter, x) if columns < inner else None
    if weights_and_factor is None:
        return None
    weights, factor = weights_and_factor
    weights = rewriter.add_new(node.name, op.Reshape((batch, rows, inner)), weights)
    product = rewriter.add_new(node.name, op.MatMul(), weights, y)
    factor = rewriter.add_new(node.name, op.Reshape((batch, rows, 1)), factor)
    factor = rewriter.add_new(node.name, op.Broadcast((batch, rows, columns)), factor)
    return rewriter.add(node, op.Mul(), product, factor)


def _split_row_factor(rewriter: Rewriter, x: int) -> tuple[int, int] | None:
    """What is multiplied by one number for each row, and these numbers."""
    width = rewriter.builder.shape(x)[-1]
    node = rewriter.source(x)
    while node is not None and isinstance(node.operation, op.Reshape):
        if rewriter.builder.shape(node.inputs[0])[-1] != width:
            return None
        node = rewriter.source(node.inputs[0])
    if node is None or not isinstance(node.operation, op.Mul):
        return None
    broadcast = rewriter.source(node.inputs[1])
    if broadcast is None or not isinstance(broadcast.operation, op.Broadcast):
        return None
    factor_shape = rewriter.builder.shape(broadcast.inputs[0])
    product_shape = rewriter.builder.shape(node.inputs[0])
    is_row_factor = (
        len(factor_shape) == len(product_shape)
        and factor_shape[:-1] == product_shape[:-1]
        and factor_shape[-1] == 1
    )
    if not is_row_factor or math.prod(product_shape) == math.prod(factor_shape):
        return None
    return node.inputs[0], broadcast.inputs[0]
