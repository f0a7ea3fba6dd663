"""How large each value of a program can become on any input within its public bound.

Intervals of integers go through the program layer by layer, with the weights as they are: above a
sum of products lies `sum w+ hi + sum w- lo`. Everything is exact in 64 bits; what could be larger
has no bound. Suites' own errors (a unit of a linear layer, a unit of a truncation) are counted in,
so that a bound holds for a private run as for the executor.

A bound depends on the weights. It is for their owner, and is in no public half.

An interval has one entry per element, channel or tensor, as numpy broadcasts it to the value's
shape: convolutions and pools keep one per channel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from privet.compiler.executor import kernels
from privet.compiler.executor.exact import exact_matmul, row_sum
from privet.compiler.executor.function import MOST, PRIMITIVES
from privet.compiler.executor.movement import moved
from privet.compiler.executor.piecewise import lines
from privet.compiler.executor.real import factor_shape
from privet.compiler.graph import Graph, Node
from privet.compiler.graph import operations as op
from privet.compiler.graph.function import Function, apply
from privet.compiler.graph.operations import COEFFICIENT_BITS, Array, Shape

BEYOND = 1 << 61
"""From here on a value has no bound."""
LINEAR_ERROR, TRUNCATION_ERROR = 1, 1
"""Units by which a suite's linear layer or truncation may be off (see `bounds`)."""
SLAB_ELEMENTS = 1 << 22
FLOAT_ERROR = 1e-14
"""Bound on the relative error of a step of a smooth function, or on the absolute one below 1."""


@dataclass(frozen=True)
class Interval:
    """Integers from `low` to `high`, element by element."""

    low: Array
    high: Array

    @property
    def largest(self) -> int:
        return max(-int(self.low.min()), int(self.high.max()), 0)


def sound_bounds(graph: Graph, inputs: Mapping[int, int], ring_bits: int) -> dict[int, int | None]:
    """The largest magnitude of each value of an integer graph; None where there is no bound.

    `inputs` has the largest magnitude of each input's integers, by value.
    """
    left = graph.uses()
    held: dict[int, Interval | None] = {}
    for id, most in inputs.items():
        end = np.full((1,) * len(graph.values[id].shape), most, dtype=np.int64)
        held[id] = Interval(-end, end)
    bounds: dict[int, int | None] = dict(inputs)
    for node in graph.nodes:
        made = _made(graph, node, [held[id] for id in node.inputs], ring_bits)
        if made is not None and made.largest >= BEYOND:
            made = None
        held[node.output] = made
        bounds[node.output] = None if made is None else made.largest
        for id in node.inputs:
            left[id] -= 1
            if not left[id]:
                held.pop(id, None)
    return bounds


def _made(
    graph: Graph, node: Node, operands: Sequence[Interval | None], ring_bits: int
) -> Interval | None:
    known = [operand for operand in operands if operand is not None]
    shape = graph.values[node.output].shape
    before = graph.values[node.inputs[0]].shape
    if isinstance(node.operation, op.ArgMax):
        last = np.full((1,) * len(shape), before[node.operation.axis] - 1, dtype=np.int64)
        return Interval(np.zeros_like(last), last)
    if len(known) < len(operands):
        return None
    x = known[0]
    match node.operation:
        case op.Conv2d() as conv:
            return _conv2d(x, conv, before)
        case op.Dense() as dense:
            return _dense(x, dense, before)
        case op.Scale(weight=weight):
            if x.largest * int(np.abs(weight).max()) >= BEYOND:
                return None
            return _wider(_between(x.low * weight, x.high * weight), LINEAR_ERROR)
        case op.AddConstant(bias=bias):
            return Interval(x.low + bias, x.high + bias)
        case op.Add():
            return Interval(x.low + known[1].low, x.high + known[1].high)
        case op.Sub():
            return Interval(x.low - known[1].high, x.high - known[1].low)
        case op.Negate():
            return Interval(-x.high, -x.low)
        case op.Mul():
            return _product(x, known[1], square=node.inputs[0] == node.inputs[1])
        case op.MatMul():
            return _matmul(x, known[1], before, graph.values[node.inputs[1]].shape)
        case op.ShiftLeft(bits=bits):
            if x.largest << bits >= BEYOND:
                return None
            return Interval(x.low << bits, x.high << bits)
        case op.Truncate(bits=bits):
            return _wider(Interval(x.low >> bits, x.high >> bits), TRUNCATION_ERROR)
        case op.Relu():
            return Interval(np.maximum(x.low, 0), np.maximum(x.high, 0))
        case op.Step() | op.Leaves():
            return Interval(*(np.full((1,) * len(shape), end, dtype=np.int64) for end in (0, 1)))
        case op.MaxPool2d():
            return _per_channel(x)
        case op.AvgPool2d() as pool:
            return _average(x, pool, before)
        case op.Polynomial() as polynomial:
            scale = graph.values[node.output].scale
            assert scale is not None
            return _polynomial(x, polynomial, scale)
        case op.Elementwise(function=function):
            first, last_scale = (graph.values[id].scale for id in (node.inputs[0], node.output))
            assert first is not None
            assert last_scale is not None
            return _function(x, function, first, last_scale, ring_bits)
        case op.Piecewise() as piecewise:
            scales = [graph.values[id].scale for id in (node.inputs[0], node.output)]
            assert scales[0] is not None
            assert scales[1] is not None
            slopes, offsets = lines(piecewise, scales[0], scales[1], ring_bits)
            far = (1 << piecewise.step_bits) - 1
            ends_of_lines = np.concatenate([offsets, slopes * far + offsets])
            top = piecewise.low + (1 << piecewise.bits) - 1
            over = np.maximum(x.high - top, 0) << piecewise.step_bits if piecewise.rises else 0
            return Interval(
                np.full_like(x.low, ends_of_lines.min()),
                np.full_like(x.high, ends_of_lines.max()) + over,
            )
        case other:
            shapes = [graph.values[id].shape for id in node.inputs]
            pairs = list(zip(known, shapes, strict=True))
            lows = [np.broadcast_to(each.low, full) for each, full in pairs]
            highs = [np.broadcast_to(each.high, full) for each, full in pairs]
            return _compact(Interval(moved(other, lows, shape), moved(other, highs, shape)))


def _conv2d(x: Interval, conv: op.Conv2d, shape: Shape) -> Interval | None:
    if x.largest * row_sum(conv.weight, 0) >= BEYOND:
        return None
    channels, groups = shape[1], conv.groups
    ends = _per_channel(x)
    low, high = (np.broadcast_to(e, (1, channels, 1, 1)) for e in (ends.low, ends.high))
    if any(conv.padding):
        low, high = np.minimum(low, 0), np.maximum(high, 0)
    low, high = (end.reshape(groups, channels // groups, 1) for end in (low, high))
    taps = conv.weight.reshape(groups, -1, *conv.weight.shape[1:])
    plus = np.maximum(taps, 0).sum(axis=(3, 4))
    minus = np.minimum(taps, 0).sum(axis=(3, 4))
    made = Interval(plus @ low + minus @ high, plus @ high + minus @ low)
    bias = 0 if conv.bias is None else conv.bias.reshape(1, -1, 1, 1)
    image = Interval(made.low.reshape(1, -1, 1, 1), made.high.reshape(1, -1, 1, 1))
    return _wider(Interval(image.low + bias, image.high + bias), LINEAR_ERROR)


def _dense(x: Interval, dense: op.Dense, shape: Shape) -> Interval | None:
    inner, columns = dense.weight.shape
    if x.largest * row_sum(dense.weight, 1) >= BEYOND:
        return None
    low = np.broadcast_to(x.low.min(axis=0, keepdims=True), (1, inner))
    high = np.broadcast_to(x.high.max(axis=0, keepdims=True), (1, inner))
    least = np.zeros((1, columns), dtype=np.int64)
    most = np.zeros((1, columns), dtype=np.int64)
    step = max(1, SLAB_ELEMENTS // columns)
    for start in range(0, inner, step):
        rows = slice(start, start + step)
        plus = np.maximum(dense.weight[rows], 0)
        minus = dense.weight[rows] - plus
        least += low[:, rows] @ plus + high[:, rows] @ minus
        most += high[:, rows] @ plus + low[:, rows] @ minus
    bias = 0 if dense.bias is None else dense.bias
    return _wider(Interval(least + bias, most + bias), LINEAR_ERROR)


def _average(x: Interval, pool: op.AvgPool2d, shape: Shape) -> Interval | None:
    """Each output is its factor times a sum of so many elements as its window has on the image."""
    counts = kernels.sum_pool2d(np.ones((1, 1, *shape[2:]), dtype=np.int64), pool)
    times = counts * np.asarray(pool.factors, dtype=np.int64).reshape(factor_shape(pool))
    if x.largest * int(np.abs(times).max()) >= BEYOND:
        return None
    ends = _per_channel(x)
    corners = [
        _between(ends.low * int(extreme), ends.high * int(extreme))
        for extreme in (times.min(), times.max())
    ]
    return Interval(
        np.minimum(corners[0].low, corners[1].low), np.maximum(corners[0].high, corners[1].high)
    )


def _product(x: Interval, y: Interval, *, square: bool) -> Interval | None:
    if x.largest * y.largest >= BEYOND:
        return None
    made = _between(x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high)
    return Interval(np.maximum(made.low, 0), made.high) if square else made


def _matmul(x: Interval, y: Interval, rows: Shape, columns: Shape) -> Interval | None:
    """By centres and radii: `|xy - cd| <= |c| s + r |d| + r s` for `x = c +- r` and `y = d +- s`.

    Everything is doubled, so that centres are whole.
    """
    inner = rows[2]
    if 4 * x.largest * y.largest * inner >= BEYOND:
        return None
    (c, r), (d, s) = (
        (np.broadcast_to(e.high + e.low, full), np.broadcast_to(e.high - e.low, full))
        for e, full in ((x, rows), (y, columns))
    )
    centre = exact_matmul(c, d)
    radius = exact_matmul(np.abs(c) + r, s) + exact_matmul(r, np.abs(d))
    return _compact(Interval((centre - radius) >> 2, -((-centre - radius) >> 2)))


def _polynomial(x: Interval, polynomial: op.Polynomial, scale: int) -> Interval | None:
    """Within its bound, where Chebyshev's polynomials are at most 1; outside there is no bound.

    Rounding in each of its steps is a unit times at most `degree + 1`.
    """
    if x.largest > int(polynomial.bound):
        return None
    rounding = (polynomial.degree + 1) * (polynomial.degree + 2)
    most = int(np.abs(polynomial.coefficients).sum()) + rounding
    drop = COEFFICIENT_BITS - scale
    most = (most >> drop) + 1 if drop >= 0 else most << -drop
    return Interval(np.full_like(x.low, -most), np.full_like(x.high, most))


def _function(x: Interval, function: Function, before: int, after: int, ring_bits: int) -> Interval:
    """Interval arithmetic in floats, each step widened by what rounding may do."""
    results = [_outward(*(np.ldexp(e.astype(np.float64), -before) for e in (x.low, x.high)))]
    for step in function.steps:
        ends = [results[index] for index in step.operands]
        match step.name:
            case "reciprocal" if (ends[0][0] <= 0.0).any() and (ends[0][1] >= 0.0).any():
                most = np.full_like(ends[0][0], MOST)
                results.append((-most, most))
                continue
            case "mul":
                pairs = list(product(ends[0], ends[1]))
            case "sub":
                pairs = [(ends[0][0], ends[1][1]), (ends[0][1], ends[1][0])]
            case _:  # rises or falls in all operands at once
                pairs = list(zip(*ends, strict=True))
        corners = [apply(step, list(pair), PRIMITIVES) for pair in pairs]
        low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
        if step.name == "mul" and step.operands[0] == step.operands[1]:
            low = np.maximum(low, 0.0)
        results.append(_outward(np.clip(low, -MOST, MOST), np.clip(high, -MOST, MOST)))
    room = float(1 << (min(ring_bits, 60) - 1))
    low, high = (np.clip(np.ldexp(end, after), -room, room) for end in results[-1])
    return Interval(np.floor(low).astype(np.int64), np.ceil(high).astype(np.int64))


def _outward(low: Array, high: Array) -> tuple[Array, Array]:
    return (
        low - FLOAT_ERROR * np.maximum(np.abs(low), 1.0),
        high + FLOAT_ERROR * np.maximum(np.abs(high), 1.0),
    )


def _between(*corners: Array) -> Interval:
    return Interval(np.minimum.reduce(corners), np.maximum.reduce(corners))


def _wider(x: Interval, by: int) -> Interval:
    return Interval(x.low - by, x.high + by)


def _per_channel(x: Interval) -> Interval:
    """One interval for all elements of a channel of an image, in all samples."""
    return Interval(
        x.low.min(axis=(0, 2, 3), keepdims=True), x.high.max(axis=(0, 2, 3), keepdims=True)
    )


def _compact(x: Interval) -> Interval:
    """The same intervals with one entry along each axis where all are equal."""
    low, high = x.low, x.high
    for axis in range(low.ndim):
        first = [end.take([0], axis) for end in (low, high)]
        if np.array_equal(np.broadcast_to(first[0], low.shape), low) and np.array_equal(
            np.broadcast_to(first[1], high.shape), high
        ):
            low, high = first
    return Interval(low, high)
