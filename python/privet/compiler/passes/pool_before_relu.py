"""`MaxPool(Relu(x))` becomes `Relu(MaxPool(x))`, which compares fewer elements.

A ReLU also sinks below a reshape, so that one-dimensional pooling is reached.
"""

from __future__ import annotations

from privet.compiler.graph import Graph, Node
from privet.compiler.graph import operations as op
from privet.compiler.passes.rewriter import Rewriter, rewritten


def pool_before_relu(graph: Graph) -> Graph:
    """The same function with ReLUs behind the reshapes and max pools that only they feed."""
    return rewritten(graph, _sink)


def _sink(rewriter: Rewriter, node: Node) -> int | None:
    if isinstance(node.operation, op.MaxPool2d | op.Reshape):
        source = rewriter.source(rewriter.new[node.inputs[0]])
        if source is not None and isinstance(source.operation, op.Relu):
            pooled = rewriter.add_new(node.name, node.operation, *source.inputs)
            return rewriter.add(node, op.Relu(), pooled, name=source.name)
    return None
