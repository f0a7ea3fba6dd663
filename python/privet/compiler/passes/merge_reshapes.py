"""Joins chains of reshapes and drops those that change nothing."""

from __future__ import annotations

from privet.compiler.graph import Graph, Node
from privet.compiler.graph.operations import Reshape, Shape
from privet.compiler.passes.rewriter import Rewriter


def merge_reshapes(graph: Graph, *, shared: bool = False) -> Graph:
    """The same function with at most one reshape in a row.

    With `shared` there is one of each shape for all readers of a value, which is then truncated,
    extended and opened once.
    """
    rewriter = Rewriter(graph)
    before: dict[int, int] = {}
    known: dict[tuple[int, Shape], int] = {}

    def rewrite(node: Node) -> int:
        if not isinstance(node.operation, Reshape):
            return rewriter.copy(node)
        x = rewriter.new[node.inputs[0]]
        x = before.get(x, x)
        if rewriter.builder.shape(x) == node.operation.shape:
            return x
        if shared and (x, node.operation.shape) in known:
            return known[x, node.operation.shape]
        made = rewriter.add(node, node.operation, x)
        before[made] = x
        known[x, node.operation.shape] = made
        return made

    return rewriter.walk(rewrite)
