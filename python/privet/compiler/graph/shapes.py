"""The output shape of every operation; raises `ValueError` where the inputs do not fit."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Operation, Shape

MAX_RANK = 8
MAX_ELEMENTS = 1 << 28
MAX_SAMPLE = 1 << 25
"""Most elements of a tensor of one sample: far above any layer, and soon computed."""
MAX_DEPTH = 16
MAX_KERNEL = 1 << 10
"""Longest side of a window, as `crates/program/src/shape.rs` has it."""


def infer_shape(operation: Operation, inputs: Sequence[Shape]) -> Shape:
    """Shape of `operation` on inputs of these shapes."""
    shape = _infer(operation, inputs)
    if len(shape) > MAX_RANK:
        raise ValueError(f"{len(shape)} axes, more than {MAX_RANK}")
    if any(dim < 1 for dim in shape):
        raise ValueError(f"shape {list(shape)} is empty")
    if math.prod(shape) > MAX_ELEMENTS:
        raise ValueError(f"shape {list(shape)} has more than {MAX_ELEMENTS} elements")
    return shape


def _infer(operation: Operation, inputs: Sequence[Shape]) -> Shape:
    x = inputs[0]
    match operation:
        case op.Conv2d():
            return _conv2d(operation, _image(x))
        case op.Dense(weight=weight, bias=bias):
            if len(x) != 2 or x[1] != weight.shape[0]:
                raise ValueError(f"weights {list(weight.shape)} do not fit {list(x)}")
            _fits(bias, weight.shape[1])
            return (x[0], weight.shape[1])
        case op.Scale(weight=weight):
            return _same(x, weight.shape)
        case op.AddConstant(bias=bias):
            return _broadcast(bias.shape, x)
        case op.ChannelAffine(factor=factor, offset=offset):
            vectors = (factor,) if offset is None else (factor, offset)
            if len(x) < 2 or any(vector.shape != (x[1],) for vector in vectors):
                raise ValueError(f"{factor.shape[0]} channels do not fit {list(x)}")
            return x
        case op.Add() | op.Sub() | op.Mul():
            return _same(x, inputs[1])
        case op.MatMul():
            return _matmul(x, inputs[1])
        case op.Elementwise() | op.Piecewise() | op.Polynomial():
            return x
        case op.Negate() | op.ShiftLeft() | op.Truncate() | op.Relu() | op.Saturate() | op.Step():
            return x
        case op.Leaves(depth=depth):
            return _leaves(x, depth)
        case op.Trees(feature=feature, values=values):
            if len(x) != 2 or 2 * x[1] <= int(feature.max()):
                raise ValueError(f"{int(feature.max()) + 1} features do not fit {list(x)}")
            return (x[0], values.shape[2])
        case op.MaxPool2d(size=size) | op.AvgPool2d(size=size):
            n, c, _, _ = _image(x)
            _bounded(operation.kernel)
            return (n, c, *size)
        case op.Reshape(shape=shape):
            if math.prod(shape) != math.prod(x):
                raise ValueError(f"{list(x)} cannot become {list(shape)}")
            return shape
        case op.Broadcast(shape=shape):
            return _broadcast(x, shape)
        case op.Transpose(perm=perm):
            if sorted(perm) != list(range(len(x))):
                raise ValueError(f"{list(perm)} is no permutation of {len(x)} axes")
            return tuple(x[axis] for axis in perm)
        case op.Slice():
            slices = zip(operation.starts, operation.ends, operation.steps, strict=True)
            return tuple(len(range(*bounds)) for bounds in slices)
        case op.Concat(axis=axis):
            return _concat(inputs, axis)
        case op.Pad(before=before, after=after):
            return tuple(d + b + a for d, b, a in zip(x, before, after, strict=True))
        case op.ArgMax(axis=axis, keepdims=keepdims):
            return x[:axis] + ((1,) if keepdims else ()) + x[axis + 1 :]


def _leaves(nodes: Shape, depth: int) -> Shape:
    if not 1 <= depth <= MAX_DEPTH or len(nodes) != 2 or nodes[1] % ((1 << depth) - 1):
        raise ValueError(f"{list(nodes)} is no row of complete trees of depth {depth}")
    return (nodes[0], nodes[1] + nodes[1] // ((1 << depth) - 1))


def _image(shape: Shape) -> tuple[int, int, int, int]:
    if len(shape) != 4:
        raise ValueError(f"an image has 4 axes, not {list(shape)}")
    n, c, h, w = shape
    return n, c, h, w


def _fits(bias: op.Array | None, count: int) -> None:
    if bias is not None and bias.shape != (count,):
        raise ValueError(f"a bias {list(bias.shape)} for {count} outputs")


def _bounded(kernel: Sequence[int]) -> None:
    if max(kernel) > MAX_KERNEL:
        raise ValueError(f"a window of {list(kernel)}, longer than {MAX_KERNEL}")


def _same(a: Shape, b: Shape) -> Shape:
    if a != b:
        raise ValueError(f"shapes {list(a)} and {list(b)} differ")
    return a


def _matmul(a: Shape, b: Shape) -> Shape:
    if len(a) != 3 or len(b) != 3 or a[0] != b[0] or a[2] != b[1]:
        raise ValueError(f"{list(a)} times {list(b)}")
    return (a[0], a[1], b[2])


def _broadcast(shape: Shape, to: Shape) -> Shape:
    try:
        joined = np.broadcast_shapes(shape, to)
    except ValueError:
        joined = ()
    if joined != to:
        raise ValueError(f"{list(shape)} does not broadcast to {list(to)}")
    return to


def _conv2d(conv: op.Conv2d, image: tuple[int, int, int, int]) -> Shape:
    n, c, *size = image
    out, per_group, *kernel = conv.weight.shape
    if per_group * conv.groups != c or out % conv.groups:
        raise ValueError(
            f"weights {list(conv.weight.shape)} in {conv.groups} groups do not fit {c} channels"
        )
    _fits(conv.bias, out)
    positions = []
    _bounded(kernel)
    for axis in range(2):
        reach = (kernel[axis] - 1) * conv.dilation[axis] + 1
        free = size[axis] + conv.padding[axis] + conv.padding[axis + 2] - reach
        if free < 0:
            raise ValueError("the kernel is larger than the padded image")
        positions.append(free // conv.stride[axis] + 1)
    return (n, out, *positions)


def _concat(inputs: Sequence[Shape], axis: int) -> Shape:
    first = inputs[0]
    for other in inputs[1:]:
        if other[:axis] + other[axis + 1 :] != first[:axis] + first[axis + 1 :]:
            raise ValueError(f"{list(other)} cannot be joined to {list(first)} on axis {axis}")
    return (*first[:axis], sum(shape[axis] for shape in inputs), *first[axis + 1 :])
