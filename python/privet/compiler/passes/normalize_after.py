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
    return rewritten(graph, _moved)


def _moved(rewriter: Rewriter, node: Node) -> int | None:
    if not isinstance(node.operation, op.MatMul):
        return None
    x, y = (rewriter.new[id] for id in node.inputs)
    batch, rows, inner = rewriter.builder.shape(x)
    columns = rewriter.builder.shape(y)[2]
    parted = _parted(rewriter, x) if columns < inner else None
    if parted is None:
        return None
    weights, factor = parted
    weights = rewriter.add_new(node.name, op.Reshape((batch, rows, inner)), weights)
    product = rewriter.add_new(node.name, op.MatMul(), weights, y)
    factor = rewriter.add_new(node.name, op.Reshape((batch, rows, 1)), factor)
    factor = rewriter.add_new(node.name, op.Broadcast((batch, rows, columns)), factor)
    return rewriter.add(node, op.Mul(), product, factor)


def _parted(rewriter: Rewriter, x: int) -> tuple[int, int] | None:
    """What is multiplied by one number for each row, and these numbers."""
    width = rewriter.builder.shape(x)[-1]
    node = rewriter.source(x)
    while node is not None and isinstance(node.operation, op.Reshape):
        if rewriter.builder.shape(node.inputs[0])[-1] != width:
            return None
        node = rewriter.source(node.inputs[0])
    if node is None or not isinstance(node.operation, op.Mul):
        return None
    lifted = rewriter.source(node.inputs[1])
    if lifted is None or not isinstance(lifted.operation, op.Broadcast):
        return None
    shape = rewriter.builder.shape(lifted.inputs[0])
    full = rewriter.builder.shape(node.inputs[0])
    one_each = len(shape) == len(full) and shape[:-1] == full[:-1] and shape[-1] == 1
    if not one_each or math.prod(full) == math.prod(shape):
        return None
    return node.inputs[0], lifted.inputs[0]
