"""Replaces ReLU by products with an approximate sign: `x (1 + s(x)) / 2`.

Suite `ckks` compares nothing; `s` is a composition of polynomials (`minimax`) on the interval that
was measured, with its margin. Beyond the interval values explode.
"""

from __future__ import annotations

from privet.compiler.graph import Graph, Node, Value
from privet.compiler.graph import operations as op
from privet.compiler.passes import minimax
from privet.compiler.passes.rewriter import Rewriter
from privet.errors import Misuse


def approximate_relus(graph: Graph, *, error: float) -> Graph:
    """The graph with each `Relu` a product; values need magnitudes.

    An output is off by at most `error` times the input's magnitude.

    Raises `Misuse` if no composition is that close.
    """
    rewriter = Rewriter(graph)

    def rewrite(node: Node) -> int | None:
        if not isinstance(node.operation, op.Relu):
            return None
        input_value = graph.values[node.inputs[0]]
        x = rewriter.new[node.inputs[0]]
        try:
            stages = minimax.sign(error)
        except ValueError as refusal:
            raise Misuse(f"ReLU by signs: {refusal}; allow a larger error") from refusal
        half_sign = x
        for index, series in enumerate(stages):
            is_last = index == len(stages) - 1
            coefficients = series.copy()
            if is_last:
                coefficients /= 2.0
                coefficients[0] += 0.5
            polynomial = op.Polynomial(
                coefficients, (input_value.magnitude or 1.0) if index == 0 else 1.0
            )
            name = f"{node.name}.sign{index + 1}"
            half_sign = rewriter.add_new(
                name, polynomial, half_sign, like=Value(input_value.shape, name, 1.0)
            )
        return rewriter.add(node, op.Mul(), x, half_sign)

    return rewriter.walk(rewrite)
