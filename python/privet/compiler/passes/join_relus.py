"""`Concat(Relu(a), Relu(b))` becomes `Relu(Concat(a, b))`: one comparison layer, fewer rounds."""

from __future__ import annotations

from privet.compiler.graph import Graph, Node
from privet.compiler.graph import operations as op
from privet.compiler.passes.rewriter import Rewriter, rewritten


def join_relus(graph: Graph) -> Graph:
    """The same function with each group of joined ReLUs made one."""
    return rewritten(graph, _join)


def _join(rewriter: Rewriter, node: Node) -> int | None:
    if not isinstance(node.operation, op.Concat) or len(set(node.inputs)) < len(node.inputs):
        return None
    sources = [rewriter.source(rewriter.new[id]) for id in node.inputs]
    relus = [
        source for source in sources if source is not None and isinstance(source.operation, op.Relu)
    ]
    if len(relus) < len(sources):
        return None
    relu_inputs = [source.inputs[0] for source in relus]
    concatenation = rewriter.add_new(node.name, node.operation, *relu_inputs)
    return rewriter.add(node, op.Relu(), concatenation, name=relus[0].name)
