"""Relu, LeakyRelu and Clip, and Softmax and LogSoftmax, which are left to the client."""

from __future__ import annotations

import numpy as np

from privet.compiler.graph.graph import ClientStep
from privet.compiler.graph.operations import Add, AddConstant, Array, Negate, Relu, Sub
from privet.compiler.graph.operators.arithmetic import times_constant
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site


@operator("Relu")
def relu(site: Site) -> Operand:
    """`max(x, 0)`."""
    return site.emit(Relu(), site.private(0))


@operator("LeakyRelu")
def leaky_relu(site: Site) -> Operand:
    """`x + (1 - alpha) max(-x, 0)`: one comparison."""
    x = site.private(0)
    rest = 1.0 - float(site.attribute("alpha", 0.01))
    if rest == 0:
        return x
    below = site.emit(Relu(), site.emit(Negate(), x))
    return site.emit(Add(), x, times_constant(site, below, np.asarray(rest, dtype=np.float64)))


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
        gap = site.emit(Relu(), _shift(site, site.emit(Negate(), x), high))
        return _shift(site, site.emit(Negate(), gap), high)
    over = site.emit(Relu(), _shift(site, x, -low))
    if high is not None:
        # Both comparisons read x, so they can run side by side.
        over = site.emit(Sub(), over, site.emit(Relu(), _shift(site, x, -high)))
    return _shift(site, over, low)


def _bound(site: Site, name: str, index: int) -> float | None:
    """A finite bound, or None; the widest floats mean that there is none."""
    bound: float | None = site.attribute(name, None)
    if bound is None and site.has(index):
        value: Array = site.constant(index, "bounds")
        bound = float(value.reshape(-1)[0])
    if bound is None or abs(bound) >= float(np.finfo(np.float32).max):
        return None
    return bound


def _shift(site: Site, x: Private, by: float) -> Private:
    return x if by == 0 else site.emit(AddConstant(np.asarray(by, dtype=np.float64)), x)


@operator("Softmax", restrictions="only as an output: the client computes it")
def softmax(site: Site) -> Operand:
    """Over one axis, or flattened before opset 13."""
    return _client(site, "softmax")


@operator("LogSoftmax", restrictions="only as an output: the client computes it")
def log_softmax(site: Site) -> Operand:
    """Over one axis, or flattened before opset 13."""
    return _client(site, "log_softmax")


def _client(site: Site, name: str) -> Private:
    x = site.private(0)
    flatten = site.opset < 13
    axis = site.axis(site.attribute("axis", 1 if flatten else -1), len(x.shape))
    if all(size == 1 for size in x.shape[axis + 1 :]):
        flatten = False
    return Private(x.id, x.shape, ClientStep(name, axis, flatten))
