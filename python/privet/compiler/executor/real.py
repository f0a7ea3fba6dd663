"""Runs a real graph in floating point, to measure how large its values become."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.polynomial.chebyshev import chebval

from privet.compiler.executor import kernels, trees
from privet.compiler.executor.movement import moved
from privet.compiler.graph import Graph
from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Array, Operation, Shape


def run(
    graph: Graph, inputs: Sequence[Array], observe: Callable[[int, Array], None]
) -> list[Array]:
    """The outputs on one batch of inputs; `observe(id, tensor)` sees every value.

    Tensors keep the inputs' type and are dropped after their last use.
    """
    left = graph.uses()
    held: dict[int, Array] = {}
    for entry, array in zip(graph.inputs, inputs, strict=True):
        held[entry.value] = array
        observe(entry.value, array)
    for node in graph.nodes:
        operands = [held[id] for id in node.inputs]
        shape = graph.values[node.output].shape
        held[node.output] = compute(node.operation, operands, shape)
        observe(node.output, held[node.output])
        for id in node.inputs:
            left[id] -= 1
            if not left[id]:
                held.pop(id, None)
    return [held[output.value] for output in graph.outputs]


def compute(operation: Operation, operands: Sequence[Array], shape: Shape) -> Array:
    """One operation on reals, into a tensor of `shape`."""
    x = operands[0]
    match operation:
        case op.Conv2d(weight=weight, bias=bias):
            kind, size = x.dtype, (shape[2], shape[3])
            out = kernels.conv2d(x, weight.astype(kind, copy=False), operation, size)
            return _plus(out, None if bias is None else bias[:, None, None])
        case op.Dense(weight=weight, bias=bias):
            return _plus(kernels.dense(x, weight), bias)
        case op.Scale(weight=weight):
            return np.asarray(x * weight.astype(x.dtype))
        case op.AddConstant(bias=bias):
            return np.asarray(x + bias.astype(x.dtype))
        case op.ChannelAffine(factor=factor, offset=offset):
            per_channel = (-1, *([1] * (x.ndim - 2)))
            scaled = x * factor.reshape(per_channel).astype(x.dtype)
            return _plus(scaled, None if offset is None else offset.reshape(per_channel))
        case op.Add():
            return x + operands[1]
        case op.Sub():
            return x - operands[1]
        case op.Mul():
            return np.asarray(x * operands[1])
        case op.MatMul():
            return np.asarray(np.matmul(x, operands[1]))
        case op.Elementwise(function=function):
            return function(x)
        case op.Piecewise():
            raise AssertionError("lines are integers: reals have the function")
        case op.Polynomial(coefficients=coefficients, bound=bound):
            return np.asarray(chebval(x / bound, coefficients)).astype(x.dtype)
        case op.Negate():
            return -x
        case op.ShiftLeft() | op.Truncate():
            return x
        case op.Relu():
            return np.asarray(np.maximum(x, 0))
        case op.Saturate(low=low, high=high):
            return np.asarray(np.clip(x, low, high))
        case op.Step():
            return (x >= 0).astype(x.dtype)
        case op.Leaves(depth=depth):
            return trees.leaves(x >= 0, depth).astype(x.dtype)
        case op.Trees():
            return trees.ensemble(x, operation).astype(x.dtype)
        case op.MaxPool2d():
            return kernels.max_pool2d(x, operation)
        case op.AvgPool2d(factors=factors):
            total = kernels.sum_pool2d(x, operation)
            by = np.asarray(factors, dtype=x.dtype).reshape(factor_shape(operation))
            return np.asarray(total * by)
        case op.ArgMax():
            return argmax(x, operation).astype(x.dtype)
        case _:
            return moved(operation, operands, shape)


def argmax(x: Array, operation: op.ArgMax) -> Array:
    """Indices of the largest elements, as the operation asks for them."""
    axis = operation.axis
    if operation.select_last:
        found = x.shape[axis] - 1 - np.flip(x, axis).argmax(axis)
    else:
        found = x.argmax(axis)
    return np.expand_dims(found, axis) if operation.keepdims else np.asarray(found)


def factor_shape(pool: op.AvgPool2d) -> Shape:
    """One factor broadcasts by itself; several lie on the output positions."""
    return pool.size if len(pool.factors) > 1 else (1, 1)


def _plus(out: Array, bias: Array | None) -> Array:
    if bias is None:
        return out
    out += bias.astype(out.dtype, copy=False)
    return out
