"""Joins chains of reshapes and drops those that change nothing."""

from __future__ import annotations

from privet.compiler.graph import Graph, Node
from privet.compiler.graph.operations import Reshape
from privet.compiler.passes.rewriter import Rewriter


def merge_reshapes(graph: Graph) -> Graph:
    """The same function with at most one reshape in a row."""
    rewriter = Rewriter(graph)
    before: dict[int, int] = {}

    def rewrite(node: Node) -> int:
        if not isinstance(node.operation, Reshape):
            return rewriter.copy(node)
        x = rewriter.new[node.inputs[0]]
        x = before.get(x, x)
        if rewriter.builder.shape(x) == node.operation.shape:
            return x
        made = rewriter.add(node, node.operation, x)
        before[made] = x
        return made

    return rewriter.walk(rewrite)
