"""Constants that vary only along one axis, and layers that can take them in."""

from __future__ import annotations

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Array, Shape


def along(constant: Array, shape: Shape, axis: int) -> Array | None:
    """The constant, broadcast to `shape`, as a vector along `axis`; None if it varies elsewhere."""
    aligned = constant.reshape((1,) * (len(shape) - constant.ndim) + constant.shape)
    axis %= len(shape)
    if any(size != 1 for i, size in enumerate(aligned.shape) if i != axis):
        return None
    return np.broadcast_to(aligned.reshape(-1), (shape[axis],))


def affine(
    layer: op.Conv2d | op.Dense, factor: Array, offset: Array | None
) -> op.Conv2d | op.Dense:
    """The layer followed by `y * factor + offset` per output channel or column."""
    dtype = layer.weight.dtype
    bias = offset
    if layer.bias is not None:
        bias = plus(layer.bias.astype(np.float64) * factor, offset)
    if isinstance(layer, op.Dense):
        return op.Dense(layer.weight * factor.astype(dtype), bias)
    weight = layer.weight * factor.astype(dtype)[:, None, None, None]
    return op.Conv2d(weight, bias, layer.stride, layer.padding, layer.dilation, layer.groups)


def plus(a: Array, b: Array | None) -> Array:
    """The sum, if there is a second summand."""
    return a if b is None else np.asarray(a + b)
