"""Relu and other functions of few pieces, and Softmax and LogSoftmax, left to the client."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.graph import ClientStep
from privet.compiler.graph.operations import Array, real
from privet.compiler.graph.operators.arithmetic import plus_constant, times_constant
from privet.compiler.graph.operators.attention import private_softmax
from privet.compiler.graph.operators.comparison import is_above
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site


@operator("Relu")
def relu(site: Site) -> Operand:
    """`max(x, 0)`."""
    return site.emit(op.Relu(), site.private(0))


@operator("LeakyRelu")
def leaky_relu(site: Site) -> Operand:
    """`x + (1 - alpha) max(-x, 0)`: one comparison."""
    x = site.private(0)
    slope_change = 1.0 - float(site.attribute("alpha", 0.01))
    if slope_change == 0:
        return x
    negative_part = site.emit(op.Relu(), site.emit(op.Negate(), x))
    return site.emit(
        op.Add(), x, times_constant(site, negative_part, np.asarray(slope_change, dtype=np.float64))
    )


@operator("PRelu", restrictions="slope constant")
def prelu(site: Site) -> Operand:
    """`x + (1 - slope) max(-x, 0)`: one comparison, and a slope for each element or channel."""
    x = site.private(0)
    slope_change = 1.0 - real(site.constant(1, "slope"))
    if site.opset < 7 and slope_change.ndim == 1 and len(x.shape) > 1:
        slope_change = slope_change.reshape(-1, *([1] * (len(x.shape) - 2)))
    negative_part = site.emit(op.Relu(), site.emit(op.Negate(), x))
    return site.emit(op.Add(), x, times_constant(site, negative_part, slope_change))


@operator(
    "ThresholdedRelu", restrictions="`alpha` 0 in suite `stream` and with `--security malicious`"
)
def thresholded_relu(site: Site) -> Operand:
    """`x` above `alpha`, else 0: `max(x - alpha, 0)` and `alpha` where `x` is above it."""
    x, alpha = site.private(0), float(site.attribute("alpha", 1.0))
    excess = site.emit(op.Relu(), _shift(site, x, -alpha))
    if alpha == 0:
        return excess
    return site.emit(
        op.Add(), excess, times_constant(site, is_above(site, x, alpha), np.asarray(alpha))
    )


@operator(
    "Shrink",
    since=9,
    restrictions="`bias` is `lambd` in suite `stream` and with `--security malicious`",
)
def shrink(site: Site) -> Operand:
    """`x + bias` below `-lambd`, `x - bias` above `lambd`, and 0 between."""
    x, lambd = site.private(0), float(site.attribute("lambd", 0.5))
    step_height = np.asarray(lambd - float(site.attribute("bias", 0.0)))
    parts = []
    for side in (x, site.emit(op.Negate(), x)):
        excess = site.emit(op.Relu(), _shift(site, side, -lambd))
        if step_height != 0:
            step = times_constant(site, is_above(site, side, lambd), step_height)
            excess = site.emit(op.Add(), excess, step)
        parts.append(excess)
    return site.emit(op.Sub(), *parts)


@operator("Abs")
def absolute(site: Site) -> Operand:
    """`x + 2 max(-x, 0)`."""
    return magnitude(site, site.private(0))


def magnitude(site: Site, x: Private) -> Private:
    """`|x|`: one comparison."""
    negative_part = site.emit(op.Relu(), site.emit(op.Negate(), x))
    return site.emit(op.Add(), x, times_constant(site, negative_part, np.asarray(2.0)))


@operator("Max")
@operator("Min")
def largest_or_smallest(site: Site) -> Operand:
    """Of any number of tensors, private or constant: one comparison for each but one."""
    return extreme(site, site.operands(), sign=1.0 if site.operator == "Max" else -1.0)


def extreme(site: Site, operands: Sequence[Operand], *, sign: float) -> Private:
    """`max(a, b) = b + max(a - b, 0)`, `min(a, b) = b - max(b - a, 0)`, pair by pair."""
    constants = [real(x) for x in operands if not isinstance(x, Private)]
    private = [x for x in operands if isinstance(x, Private)]
    while len(private) > 1:
        a, b = private.pop(0), private.pop(0)
        shape = np.broadcast_shapes(a.shape, b.shape)
        a, b = site.broadcast(a, shape), site.broadcast(b, shape)
        excess = site.emit(op.Relu(), site.emit(op.Sub(), *((a, b) if sign > 0 else (b, a))))
        private.append(site.emit(op.Add() if sign > 0 else op.Sub(), b, excess))
    if not constants:
        return private[0]
    bound = constants[0]
    for constant in constants[1:]:
        bound = np.maximum(bound, constant) if sign > 0 else np.minimum(bound, constant)
    difference = plus_constant(site, private[0], -bound)
    excess = site.emit(op.Relu(), difference if sign > 0 else site.emit(op.Negate(), difference))
    return plus_constant(site, excess if sign > 0 else site.emit(op.Negate(), excess), bound)


@operator("Clip", restrictions="bounds constant")
def clip(site: Site) -> Operand:
    """Any lower and upper bound, as attributes (old opsets) or inputs."""
    x = site.private(0)
    low, high = _bound(site, "min", 1), _bound(site, "max", 2)
    if low is not None and high is not None and low > high:
        site.refuse(f"its lower bound {low} is above its upper bound {high}", "Check the model")
    if low is None and high is None:
        return x
    if low is None:
        # min(x, high) = high - max(high - x, 0)
        assert high is not None
        gap = site.emit(op.Relu(), _shift(site, site.emit(op.Negate(), x), high))
        return _shift(site, site.emit(op.Negate(), gap), high)
    excess = site.emit(op.Relu(), _shift(site, x, -low))
    if high is not None:
        # Both comparisons read x, so they can run side by side.
        excess = site.emit(op.Sub(), excess, site.emit(op.Relu(), _shift(site, x, -high)))
    return _shift(site, excess, low)


def _bound(site: Site, name: str, index: int) -> float | None:
    """A finite bound, or None; the widest numbers of a type mean that there is none."""
    bound: float | None = site.attribute(name, None)
    widest = float(np.finfo(np.float32).max)
    if bound is None and site.has_input(index):
        value: Array = site.constant(index, "bounds")
        bound = float(value.reshape(-1)[0])
        if value.dtype.kind in "iu":
            widest = float(np.iinfo(value.dtype).max)
    return None if bound is None or abs(bound) >= widest else bound


def _shift(site: Site, x: Private, offset: float) -> Private:
    return x if offset == 0 else site.emit(op.AddConstant(np.asarray(offset, dtype=np.float64)), x)


@operator("Softmax", restrictions="inside the network not with `--security malicious`")
def softmax(site: Site) -> Operand:
    """Over one axis, or flattened before opset 13; at the client where it is the last step."""
    if site.inner or site.private(0).neg_inf is not None:
        return private_softmax(site)
    return _client_step(site, "softmax")


@operator("LogSoftmax", restrictions="only as an output: the client computes it")
def log_softmax(site: Site) -> Operand:
    """Over one axis, or flattened before opset 13."""
    return _client_step(site, "log_softmax")


def _client_step(site: Site, name: str) -> Private:
    x = site.private(0)
    flatten = site.opset < 13
    axis = site.axis(site.attribute("axis", 1 if flatten else -1), len(x.shape))
    if all(size == 1 for size in x.shape[axis + 1 :]):
        flatten = False
    return Private(x.id, x.shape, ClientStep(name, axis, flatten))
