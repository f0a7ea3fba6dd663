"""Rounds weights, biases and constants to integers at the scales that `move_truncation` set."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from privet.compiler.graph import Graph, Node
from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Array, Operation
from privet.compiler.passes.rewriter import Rewriter


def quantize(graph: Graph) -> Graph:
    """The graph with integer constants: weights at the difference of the scales around them."""
    rewriter = Rewriter(graph)

    def scale(id: int) -> int:
        value_scale = graph.values[id].scale
        assert value_scale is not None, "move_truncation runs before this pass"
        return value_scale

    def rewrite(node: Node) -> int:
        weight_scale = scale(node.output) - scale(node.inputs[0])
        operation = _quantize_constants(
            node.operation, weight_scale, scale(node.inputs[0]), scale(node.output)
        )
        return rewriter.add(node, operation, *(rewriter.new[id] for id in node.inputs))

    return rewriter.walk(rewrite)


def _quantize_constants(
    operation: Operation, weight_scale: int, input_scale: int, scale: int
) -> Operation:
    match operation:
        case op.Conv2d(weight=weight, bias=bias) | op.Dense(weight=weight, bias=bias):
            rounded = None if bias is None else to_fixed(bias, scale)
            return replace(operation, weight=to_fixed(weight, weight_scale), bias=rounded)
        case op.Scale(weight=weight):
            return op.Scale(to_fixed(weight, weight_scale))
        case op.AddConstant(bias=bias):
            return op.AddConstant(to_fixed(bias, scale))
        case op.AvgPool2d(factors=factors):
            rounded = to_fixed(np.asarray(factors, dtype=np.float64), weight_scale)
            return replace(operation, factors=tuple(int(factor) for factor in rounded))
        case op.Pad(constant=constant):
            return replace(operation, constant=int(to_fixed(np.asarray(constant), scale)))
        case op.Polynomial(coefficients=coefficients, bound=bound):
            rounded = to_fixed(coefficients, op.COEFFICIENT_BITS)
            return op.Polynomial(rounded, max(int(to_fixed(np.asarray(bound), input_scale)), 1))
        case _:
            return operation


def to_fixed(reals: Array, scale: int) -> Array:
    """`round(x * 2^scale)` as int64, halves to even; exact scaling, in the reals' own type."""
    return np.rint(np.ldexp(reals, scale)).astype(np.int64)
