"""Makes one function of each element of neighbouring nodes that work element by element.

`x * sigmoid(x)`, or a polynomial written with `Mul` and `Add`, is a function of one value `x`.
Where such a function is not linear, its last node becomes one `Elementwise` that reads `x` itself.
Only constants that the model states as a single number take part, whatever their values.
"""

from __future__ import annotations

from privet.compiler.graph import Graph, Node
from privet.compiler.graph import operations as op
from privet.compiler.graph.function import Function, combine
from privet.compiler.passes.rewriter import Rewriter


def join_elementwise(graph: Graph, *, products: bool = False) -> Graph:
    """The same function with every smooth activation in one node.

    With `products` a polynomial of the model stays the products that it is made of.
    """
    rewriter = Rewriter(graph)
    # Values that are a function of one other value, their root.
    terms: dict[int, tuple[int, Function]] = {}

    def rewrite(node: Node) -> int | None:
        operands = [terms.get(id, (id, Function())) for id in node.inputs]
        roots = {root for root, _ in operands}
        composition = _compose(node.operation, [function for _, function in operands])
        if composition is None or len(roots) != 1:
            return None
        (root,) = roots
        terms[node.output] = root, composition
        if composition.degree == 1 or (products and composition.degree is not None):
            return None
        if isinstance(node.operation, op.Elementwise) and root == node.inputs[0]:
            return None
        return rewriter.add(node, op.Elementwise(composition), rewriter.new[root])

    return rewriter.walk(rewrite)


def _compose(operation: op.Operation, operands: list[Function]) -> Function | None:
    """What the operation computes from functions of one root, if it works element by element."""
    match operation:
        case op.Add():
            return combine("add", *operands)
        case op.Sub():
            return combine("sub", *operands)
        case op.Mul():
            return combine("mul", *operands)
        case op.Negate():
            return combine("scale", *operands, constant=-1.0)
        case op.AddConstant(bias=bias) if bias.size == 1:
            return combine("shift", *operands, constant=float(bias.reshape(-1)[0]))
        case op.Scale(weight=weight, uniform=True):
            return combine("scale", *operands, constant=float(weight.reshape(-1)[0]))
        case op.ChannelAffine(factor=factor, offset=None, uniform=True):
            return combine("scale", *operands, constant=float(factor[0]))
        case op.Elementwise(function=function):
            return function.after(operands[0])
        case _:
            return None
