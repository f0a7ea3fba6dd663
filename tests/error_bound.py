"""How far a private run may lie from the fixed-point executor, proved from the program.

The bound is for the worst case, and so grows quickly with depth: a test of a deep network should
use the bound layer by layer, or statistics.
"""

from __future__ import annotations

from collections.abc import Sequence

from privet.compiler.graph import operations as op
from privet.compiler.graph.operations.exact import row_sum
from privet.compiler.graph.operations.movement import Movement
from privet.compiler.program import Program, Weights
from privet.compiler.program.build import integer_graph


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
        operand_errors = [error for error in incoming if error is not None]
        errors[node.output] = (
            _error(node.operation, operand_errors, linear_error, truncation_error)
            if len(operand_errors) == len(incoming)
            else None
        )
    return {output.name: errors[output.value] for output in graph.outputs}


def _error(
    operation: op.Operation, incoming: Sequence[int], linear: int, truncation: int
) -> int | None:
    """The largest error of an operation's result, given those of its operands."""
    largest = max(incoming)
    match operation:
        case op.Conv2d(weight=weight):
            return row_sum(weight, 0) * largest + linear
        case op.Dense(weight=weight):
            return row_sum(weight, 1) * largest + linear
        case op.Scale(weight=weight):
            return int(abs(weight).max()) * largest + linear
        case op.AvgPool2d(factors=factors, kernel=(height, width)):
            return int(max(map(abs, factors))) * height * width * largest
        case op.ShiftLeft(bits=bits):
            return largest << bits
        case op.Truncate(bits=bits):
            return -(-largest >> bits) + truncation
        case op.Add() | op.Sub():
            return sum(incoming)
        case op.AddConstant() | op.MaxPool2d() | op.Negate() | op.Relu() | Movement():
            return largest
    return None
