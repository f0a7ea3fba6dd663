"""Removes `ChannelAffine`: into the layer before it, the layer after it, or a layer of its own.

Folding into the layer after it is exact unless that layer pads with zeros, and costs precision
where the factors are small: the weights would shrink below their fixed-point step.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from privet.graph import Graph, Node
from privet.graph.operations import (
    AddConstant,
    Array,
    ChannelAffine,
    Conv2d,
    Dense,
    Reshape,
    Scale,
    Shape,
)
from privet.passes.channels import affine
from privet.passes.rewriter import Rewriter

SMALLEST_FACTOR = 0.5
"""Factors below this are not folded forward."""


def fold_batchnorm(graph: Graph) -> Graph:
    """The same function without `ChannelAffine`."""
    return _lower(_fold_forward(_fold_backward(graph)))


def _fold_backward(graph: Graph) -> Graph:
    rewriter = Rewriter(graph)

    def rewrite(node: Node) -> int:
        if not isinstance(node.operation, ChannelAffine):
            return rewriter.copy(node)
        factor, offset = node.operation.factor, node.operation.offset
        source = rewriter.source(rewriter.new[node.inputs[0]])
        if source is None:
            return rewriter.copy(node)
        match source.operation:
            case Conv2d() | Dense() as layer:
                return rewriter.add(node, affine(layer, factor, offset), *source.inputs)
            case ChannelAffine() as inner:
                joined = ChannelAffine(inner.factor * factor, inner.offset * factor + offset)
                return rewriter.add(node, joined, *source.inputs)
            case Reshape() as reshape:
                made = _through(rewriter, source, node.operation)
                if made is not None:
                    return rewriter.add(node, reshape, made)
        return rewriter.copy(node)

    return rewriter.walk(rewrite)


def _through(rewriter: Rewriter, reshape: Node, change: ChannelAffine) -> int | None:
    """Folds into the layer in front of a reshape, if the channels stay or are all alike."""
    layer = rewriter.source(reshape.inputs[0])
    if layer is None or not isinstance(layer.operation, Conv2d | Dense):
        return None
    shape = rewriter.builder.shape(layer.output)
    factor, offset = change.factor, change.offset
    if shape[:2] != rewriter.builder.shape(reshape.output)[:2]:
        if not (_alike(factor) and _alike(offset)):
            return None
        factor, offset = np.full(shape[1], factor[0]), np.full(shape[1], offset[0])
    return rewriter.add_new(layer.name, affine(layer.operation, factor, offset), *layer.inputs)


def _fold_forward(graph: Graph) -> Graph:
    rewriter = Rewriter(graph)

    def rewrite(node: Node) -> int:
        if not isinstance(node.operation, Conv2d | Dense):
            return rewriter.copy(node)
        source = rewriter.source(rewriter.new[node.inputs[0]])
        if source is None or not isinstance(source.operation, ChannelAffine):
            return rewriter.copy(node)
        factor, offset = source.operation.factor, source.operation.offset
        layer = node.operation
        padded = isinstance(layer, Conv2d) and any(layer.padding)
        if np.abs(factor).min() < SMALLEST_FACTOR or (padded and np.any(offset)):
            return rewriter.copy(node)
        return rewriter.add(node, _after(layer, factor, offset), *source.inputs)

    return rewriter.walk(rewrite)


def _after(layer: Conv2d | Dense, factor: Array, offset: Array) -> Conv2d | Dense:
    """The layer on `x * factor + offset`, per input channel or row."""
    kind = layer.weight.dtype
    if isinstance(layer, Dense):
        added = offset @ layer.weight
        weight = layer.weight * factor.astype(kind)[:, None]
    else:
        groups, per_group = layer.groups, layer.weight.shape[1]
        per_out = layer.weight.shape[0] // groups
        by_out = np.repeat(offset.reshape(groups, per_group), per_out, axis=0)
        added = (layer.weight.sum(axis=(2, 3), dtype=np.float64) * by_out).sum(axis=1)
        factors = np.repeat(factor.reshape(groups, per_group), per_out, axis=0)
        weight = layer.weight * factors.astype(kind)[:, :, None, None]
    bias = added if layer.bias is None else layer.bias + added
    return replace(layer, weight=weight, bias=bias)


def _lower(graph: Graph) -> Graph:
    rewriter = Rewriter(graph)

    def rewrite(node: Node) -> int:
        if not isinstance(node.operation, ChannelAffine):
            return rewriter.copy(node)
        x = rewriter.new[node.inputs[0]]
        return _layer(rewriter, node, node.operation, x)

    return rewriter.walk(rewrite)


def _layer(rewriter: Rewriter, node: Node, change: ChannelAffine, x: int) -> int:
    """A layer of its own: a 1x1 convolution over images, an elementwise product over rows."""
    factor, offset = change.factor, change.offset
    shape = rewriter.builder.shape(x)
    per_channel = (-1, *([1] * (len(shape) - 2)))
    if np.all(factor == 1):
        return rewriter.add(node, AddConstant(offset.reshape(per_channel)), x)
    if _alike(factor) and _alike(offset):
        return _convolve(rewriter, node, x, (1, 1, 1, math.prod(shape)), factor[:1], offset[:1])
    if len(shape) > 2:
        image = (*shape[:2], math.prod(shape[2:-1]), shape[-1])
        return _convolve(rewriter, node, x, image, factor, offset)
    scale = Scale(np.array(np.broadcast_to(factor, shape)))
    if not np.any(offset):
        return rewriter.add(node, scale, x)
    return rewriter.add(node, AddConstant(offset), rewriter.add_new(node.name, scale, x))


def _convolve(
    rewriter: Rewriter, node: Node, x: int, image: Shape, factor: Array, offset: Array
) -> int:
    """A depthwise 1x1 convolution over `x` seen as `image`."""
    shape = rewriter.builder.shape(x)
    bias = offset if np.any(offset) else None
    layer = Conv2d(factor.reshape(-1, 1, 1, 1), bias, groups=len(factor))
    if image == shape:
        return rewriter.add(node, layer, x)
    seen = rewriter.add_new(node.name, Reshape(image), x)
    return rewriter.add(node, Reshape(shape), rewriter.add_new(node.name, layer, seen))


def _alike(vector: Array) -> bool:
    return bool(np.all(vector == vector[0]))
