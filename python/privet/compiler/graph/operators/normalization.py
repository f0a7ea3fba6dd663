"""Normalisations: by constants, as BatchNormalization, or by what is in the tensor."""

from __future__ import annotations

import math

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.function import Function, Step, chain
from privet.compiler.graph.onnx_model import ML
from privet.compiler.graph.operators.activation import magnitude
from privet.compiler.graph.operators.arithmetic import plus_constant, times_constant
from privet.compiler.graph.operators.attention import RECIPROCAL
from privet.compiler.graph.operators.reduction import (
    largest_of_rows,
    squares_of_rows,
    sum_of_rows,
)
from privet.compiler.graph.public_maps import as_rows, from_rows
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site

_INSIDE = "weights constant; not with `--security malicious`"
_DIVIDES = "as what divides by a private tensor; rows that are not near 0"
INVERSE_ROOT = chain("sqrt", "reciprocal")


@operator("BatchNormalization", restrictions="inference form; statistics constant")
def batch_normalization(site: Site) -> Operand:
    """One factor and offset per channel, folded into a neighbouring layer where possible."""
    x = site.private(0)
    training = site.attribute("training_mode", 0) or (
        site.opset < 7 and not site.attribute("is_test", 0)
    )
    if training or any(site.uses_output(output) for output in range(1, site.output_count)):
        site.refuse("it is in training mode", "Export the model for inference")
    if not site.attribute("spatial", 1):
        site.refuse("its attribute spatial is 0", "Use one statistic per channel")
    scale, offset, mean, variance = (
        site.constant(index, name).astype(np.float64)
        for index, name in enumerate(("scale", "bias", "mean", "variance"), start=1)
    )
    factor = scale / np.sqrt(variance + site.attribute("epsilon", 1e-5))
    return site.emit(op.ChannelAffine(factor, offset - mean * factor), x)


@operator("LayerNormalization", since=17, restrictions=_INSIDE)
def layer_normalization(site: Site) -> Operand:
    """`(x - mean) / sqrt(variance + epsilon)` over the last axes, times a scale, plus a bias."""
    if any(site.uses_output(output) for output in range(1, site.output_count)):
        site.refuse("its mean or deviation is used", "Use its first output alone")
    scaled = times_constant(site, _normalize_axes(site, centred=True), _weight(site, 1))
    return plus_constant(site, scaled, _weight(site, 2)) if site.has_input(2) else scaled


@operator("RMSNormalization", since=23, restrictions=_INSIDE)
def rms_normalization(site: Site) -> Operand:
    """`x / sqrt(mean of squares + epsilon)` over the last axes, times a scale."""
    return times_constant(site, _normalize_axes(site, centred=False), _weight(site, 1))


@operator("Normalizer", domain=ML, since=1, restrictions=_DIVIDES)
def normalizer(site: Site) -> Operand:
    """Each row by its largest element, its sum of magnitudes or its length; a vector is a row."""
    x = site.private(0)
    rows = site.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))
    return site.reshape(_divide_by_norm(site, rows, site.attribute("norm", "MAX")), x.shape)


def _divide_by_norm(site: Site, rows: Private, norm: str) -> Private:
    """Each row by its norm."""
    match norm:
        case "MAX":
            divisor, inverse = largest_of_rows(site, rows), RECIPROCAL
        case "L1":
            divisor, inverse = sum_of_rows(site, magnitude(site, rows)), RECIPROCAL
        case "L2":
            divisor, inverse = squares_of_rows(site, rows), INVERSE_ROOT
        case unknown_norm:
            site.refuse(f"its norm is {unknown_norm!r}", "Use MAX, L1 or L2")
    return site.emit(
        op.Mul(), rows, site.broadcast(site.emit(op.Elementwise(inverse), divisor), rows.shape)
    )


def _weight(site: Site, index: int) -> np.ndarray:
    return site.constant(index, "weights").astype(np.float64)


def _normalize_axes(site: Site, *, centred: bool) -> Private:
    x = site.private(0)
    axis = site.axis(site.attribute("axis", -1), len(x.shape))
    rows = site.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))
    epsilon = float(site.attribute("epsilon", 1e-5))
    return site.reshape(standardise(site, rows, epsilon, centred=centred), x.shape)


def standardise(site: Site, rows: Private, epsilon: float, *, centred: bool = True) -> Private:
    """`[rows, n]`: each row less its mean, over the root of its variance plus `epsilon`."""
    if centred:
        mean = sum_of_rows(site, rows, mean=True)
        rows = site.emit(op.Sub(), rows, site.broadcast(mean, rows.shape))
    variance = sum_of_rows(site, site.emit(op.Mul(), rows, rows), mean=True)
    shifted = site.emit(op.AddConstant(np.asarray(epsilon)), variance)
    inverse = site.emit(op.Elementwise(INVERSE_ROOT), shifted)
    return site.emit(op.Mul(), rows, site.broadcast(inverse, rows.shape))


def _per_channel(site: Site, x: Private, index: int) -> np.ndarray:
    """A weight for each channel."""
    return _weight(site, index).reshape(-1, *[1] * (len(x.shape) - 2))


def _normalize_groups(site: Site, groups: int) -> Private:
    x = site.private(0)
    if len(x.shape) < 3 or groups < 1 or x.shape[1] % groups:
        site.refuse(f"{groups} groups of {list(x.shape)}", "Check the model's shapes")
    count = x.shape[0] * groups
    rows = site.reshape(x, (count, math.prod(x.shape) // count))
    scaled = standardise(site, rows, float(site.attribute("epsilon", 1e-5)))
    scaled = times_constant(site, site.reshape(scaled, x.shape), _per_channel(site, x, 1))
    return plus_constant(site, scaled, _per_channel(site, x, 2))


@operator("InstanceNormalization", restrictions=_INSIDE)
def instance_normalization(site: Site) -> Operand:
    """Each channel of each image by its own mean and variance."""
    return _normalize_groups(site, site.private(0).shape[1])


@operator("GroupNormalization", since=18, restrictions=_INSIDE)
def group_normalization(site: Site) -> Operand:
    """Groups of channels by their means and variances."""
    return _normalize_groups(site, site.attribute("num_groups", 0))


@operator("MeanVarianceNormalization", since=9, restrictions=_INSIDE)
def mean_variance_normalization(site: Site) -> Operand:
    """Over any axes, by default batch and space."""
    x = site.private(0)
    rank = len(x.shape)
    axes = sorted({site.axis(axis, rank) for axis in site.ints("axes") or (0, 2, 3)})
    rows, leading = as_rows(site, x, axes)
    scaled = site.reshape(standardise(site, rows, 0.0), (*leading, *(x.shape[i] for i in axes)))
    inverse_perm = np.argsort([*(axis for axis in range(rank) if axis not in axes), *axes])
    return site.transpose(scaled, inverse_perm.tolist())


@operator("LpNormalization", restrictions="not with `--security malicious`")
def lp_normalization(site: Site) -> Operand:
    """Over one axis, by the sum of magnitudes or the root of the sum of squares."""
    x = site.private(0)
    axis = site.axis(site.attribute("axis", -1), len(x.shape))
    rows, leading = as_rows(site, x, [axis])
    divided = _divide_by_norm(site, rows, "L1" if site.attribute("p", 2) == 1 else "L2")
    return from_rows(site, divided, leading, axis, x.shape[axis])


@operator("LRN", restrictions="not with `--security malicious`")
def local_response_normalization(site: Site) -> Operand:
    """`x (bias + alpha / size * s)^-beta`, with s the sum of squares over `size` channels."""
    x, size = site.private(0), site.attribute("size", 1)
    if len(x.shape) < 3:
        site.refuse(f"its input {list(x.shape)} has no spatial axes", "Reshape to [N, C, H, W]")
    n, c, places = x.shape[0], x.shape[1], math.prod(x.shape[2:])
    image = site.reshape(x, (n, 1, c, places))
    padding = ((size - 1) // 2, 0, size // 2, 0)
    factors = (site.attribute("alpha", 1e-4) / size,)
    pool = op.AvgPool2d((size, 1), (1, 1), padding, (1, 1), (c, places), factors)
    square_sums = site.emit(pool, site.emit(op.Mul(), image, image))
    base = site.emit(op.AddConstant(np.asarray(site.attribute("bias", 1.0))), square_sums)
    power = (Step("log", (0,)), Step("scale", (1,), -site.attribute("beta", 0.75)))
    inverse = site.emit(op.Elementwise(Function((*power, Step("exp", (2,))))), base)
    return site.reshape(site.emit(op.Mul(), image, inverse), x.shape)
