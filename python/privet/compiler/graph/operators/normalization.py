"""BatchNormalization, LayerNormalization and RMSNormalization."""

from __future__ import annotations

import math

import numpy as np

from privet.compiler.graph.function import Function, Step
from privet.compiler.graph.operations import (
    NO_PADDING,
    AddConstant,
    AvgPool2d,
    ChannelAffine,
    Elementwise,
    Mul,
    Sub,
)
from privet.compiler.graph.operators.arithmetic import plus_constant, times_constant
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site

_INSIDE = "weights constant; not with `--security malicious`"
INVERSE_ROOT = Function((Step("sqrt", (0,)), Step("reciprocal", (1,))))


@operator("BatchNormalization", restrictions="inference form; statistics constant")
def batch_normalization(site: Site) -> Operand:
    """One factor and offset per channel, folded into a neighbouring layer where possible."""
    x = site.private(0)
    training = site.attribute("training_mode", 0) or (
        site.opset < 7 and not site.attribute("is_test", 0)
    )
    if training or any(site.uses(output) for output in range(1, site.outputs)):
        site.refuse("it is in training mode", "Export the model for inference")
    if not site.attribute("spatial", 1):
        site.refuse("its attribute spatial is 0", "Use one statistic per channel")
    scale, offset, mean, variance = (
        site.constant(index, name).astype(np.float64)
        for index, name in enumerate(("scale", "bias", "mean", "variance"), start=1)
    )
    factor = scale / np.sqrt(variance + site.attribute("epsilon", 1e-5))
    return site.emit(ChannelAffine(factor, offset - mean * factor), x)


@operator("LayerNormalization", since=17, restrictions=_INSIDE)
def layer_normalization(site: Site) -> Operand:
    """`(x - mean) / sqrt(variance + epsilon)` over the last axes, times a scale, plus a bias."""
    if any(site.uses(output) for output in range(1, site.outputs)):
        site.refuse("its mean or deviation is used", "Use its first output alone")
    made = times_constant(site, _normalized(site, centred=True), _weight(site, 1))
    return plus_constant(site, made, _weight(site, 2)) if site.has(2) else made


@operator("RMSNormalization", since=23, restrictions=_INSIDE)
def rms_normalization(site: Site) -> Operand:
    """`x / sqrt(mean of squares + epsilon)` over the last axes, times a scale."""
    return times_constant(site, _normalized(site, centred=False), _weight(site, 1))


def _weight(site: Site, index: int) -> np.ndarray:
    return site.constant(index, "weights").astype(np.float64)


def _normalized(site: Site, *, centred: bool) -> Private:
    x = site.private(0)
    axis = site.axis(site.attribute("axis", -1), len(x.shape))
    width, count = math.prod(x.shape[axis:]), math.prod(x.shape[:axis])
    mean = AvgPool2d((1, width), (1, 1), NO_PADDING, (1, 1), (1, 1), factors=(1.0 / width,))
    rows = site.reshape(x, (1, count, 1, width))
    if centred:
        rows = site.emit(Sub(), rows, site.lift(site.emit(mean, rows), rows.shape))
    variance = site.emit(mean, site.emit(Mul(), rows, rows))
    epsilon = np.asarray(float(site.attribute("epsilon", 1e-5)))
    inverse = site.emit(Elementwise(INVERSE_ROOT), site.emit(AddConstant(epsilon), variance))
    return site.reshape(site.emit(Mul(), rows, site.lift(inverse, rows.shape)), x.shape)
