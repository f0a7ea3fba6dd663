"""How far a private run may lie from the fixed-point executor, proved from the program.

The bound is for the worst case, and so grows quickly with depth: a test of a deep network should
use the bound layer by layer, or statistics.
"""

from __future__ import annotations

from privet.compiler.program.build import integer_graph
from privet.compiler.program.public import Program
from privet.compiler.program.weights import Weights


def error_bound(
    program: Program, weights: Weights, *, linear_error: int = 1, truncation_error: int = 1
) -> dict[str, int | None]:
    """Per output, the largest |private - fixed-point| in units of the last place.

    A linear layer multiplies the error of its input by its largest row sum of absolute weights
    and adds `linear_error` (shares rounded as they leave BFV). A truncation divides the error,
    rounds it up and adds `truncation_error` (a carry lost between the shares). Products of values,
    polynomials and functions have no such bound here and give None. Nor has an index: it may
    differ where the largest elements lie closer together than twice the bound of what it was taken
    from.
    """
    graph = integer_graph(program, weights)
    errors: dict[int, int | None] = {entry.value: 0 for entry in graph.inputs}
    for node in graph.nodes:
        incoming = [errors[id] for id in node.inputs]
        known = [error for error in incoming if error is not None]
        if len(known) < len(incoming):
            errors[node.output] = None
        else:
            errors[node.output] = node.operation.error(known, linear_error, truncation_error)
    return {output.name: errors[output.value] for output in graph.outputs}
