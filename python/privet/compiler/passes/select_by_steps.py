"""`Step(x) * y` becomes `Select(x, y)`, and `(1 - Step(x)) * y` becomes `y - Select(x, y)`.

So `Where`, `And`, `Or`, `Xor` and `TopK` take a comparison and a multiplexer, and no product of
private tensors. The one is that of an operator such as `Not`: whether a constant of the model is
one stays private (docs/decisions/public-half.md).
"""

from __future__ import annotations

import numpy as np

from privet.compiler.graph import Graph, Node
from privet.compiler.graph import operations as op
from privet.compiler.graph.operations.comparison import Select
from privet.compiler.passes.rewriter import Rewriter


def select_by_steps(graph: Graph) -> Graph:
    """The same function with a selection for each product with a step that nothing else reads."""
    rewriter = Rewriter(graph)

    def comparison_of(condition: int) -> tuple[int, bool] | None:
        """What a condition compares with zero, and whether it holds where that is below."""
        step, is_negated = rewriter.source(condition), False
        if step is not None and _adds_one(step.operation):
            negative = rewriter.source(step.inputs[0])
            if negative is not None and isinstance(negative.operation, op.Negate):
                step, is_negated = rewriter.source(negative.inputs[0]), True
        if step is None or not isinstance(step.operation, op.Step):
            return None
        return step.inputs[0], is_negated

    def rewrite(node: Node) -> int | None:
        if not isinstance(node.operation, op.Mul):
            return None
        first, second = (rewriter.new[id] for id in node.inputs)
        for condition, y in ((first, second), (second, first)):
            if comparison := comparison_of(condition):
                x, is_negated = comparison
                if not is_negated:
                    return rewriter.add(node, Select(), x, y)
                selection = rewriter.add_new(node.name, Select(), x, y)
                return rewriter.add(node, op.Sub(), y, selection)
        return None

    return rewriter.walk(rewrite)


def _adds_one(operation: op.Operation) -> bool:
    if not isinstance(operation, op.AddConstant) or not operation.defined:
        return False
    return bool(np.all(operation.bias == 1))
