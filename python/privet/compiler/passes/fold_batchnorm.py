"""Removes `ChannelAffine`: into the layer before it, or into a layer of its own.

Folding into the layer after it would save a layer, but where the factors are small the weights
would shrink below their fixed-point step, and a choice by the factors' size would be public
(docs/decisions/public-half.md). So what happens depends on the graph's form alone.
"""

from __future__ import annotations

import math

import numpy as np

from privet.compiler.graph import Graph, Node
from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Array, Operation, Shape
from privet.compiler.passes.channels import affine, plus
from privet.compiler.passes.rewriter import Rewriter, rewritten


def fold_batchnorm(graph: Graph) -> Graph:
    """The same function without `ChannelAffine`."""
    return rewritten(rewritten(graph, _fold_backward), _lower)


def _fold_backward(rewriter: Rewriter, node: Node) -> int | None:
    if not isinstance(node.operation, op.ChannelAffine):
        return None
    factor, offset = node.operation.factor, node.operation.offset
    source = rewriter.source(rewriter.new[node.inputs[0]])
    if source is None:
        return None
    if node.operation.uniform and offset is None:
        result = _scale_source(rewriter, source, float(factor[0]), node)
        if result is not None:
            return result
    match source.operation:
        case op.Conv2d() | op.Dense() as layer:
            return rewriter.add(node, affine(layer, factor, offset), *source.inputs)
        case op.ChannelAffine() as preceding:
            total_offset = (
                offset if preceding.offset is None else plus(preceding.offset * factor, offset)
            )
            uniform = preceding.uniform and node.operation.uniform
            combined = op.ChannelAffine(preceding.factor * factor, total_offset, uniform=uniform)
            return rewriter.add(node, combined, *source.inputs)
        case op.Reshape() as reshape:
            layer_output = _fold_through_reshape(rewriter, source, node.operation)
            return None if layer_output is None else rewriter.add(node, reshape, layer_output)
    return None


def _scale_source(rewriter: Rewriter, source: Node, factor: float, node: Node | None) -> int | None:
    """What a node made, times one number: by the layer that a product or a rearrangement reads.

    A power of two is left to the product of two values itself, whose scale it changes: that is
    exact and costs nothing, and is public as shapes are.
    """
    operation: Operation
    match source.operation:
        case op.Conv2d() | op.Dense() as layer:
            count = layer.weight.shape[0 if isinstance(layer, op.Conv2d) else 1]
            operation, inputs = affine(layer, np.full(count, factor), None), source.inputs
        case op.Reshape() | op.Transpose() | op.MatMul():
            operation, exponent = source.operation, 0
            if isinstance(operation, op.MatMul):
                factor, exponent = math.frexp(factor)
            producer = rewriter.source(source.inputs[0])
            scaled_input = (
                None if producer is None else _scale_source(rewriter, producer, factor, None)
            )
            if scaled_input is None:
                return None
            inputs = (scaled_input, *source.inputs[1:])
            if exponent < 0:
                return _scale_by_power_of_two(rewriter, source, node, inputs, exponent)
        case _:
            return None
    if node is not None:
        return rewriter.add(node, operation, *inputs)
    return rewriter.add_new(
        source.name, operation, *inputs, like=rewriter.builder.value(source.output)
    )


def _scale_by_power_of_two(
    rewriter: Rewriter, source: Node, node: Node | None, inputs: tuple[int, ...], exponent: int
) -> int:
    """A product of two values, times a power of two."""
    product = rewriter.add_new(source.name, source.operation, *inputs)
    shape = _, rows, columns = rewriter.builder.shape(product)
    image = rewriter.add_new(source.name, op.Reshape((1, *shape)), product)
    factors = (math.ldexp(1.0, exponent),)
    pool = op.AvgPool2d((1, 1), (1, 1), op.NO_PADDING, (1, 1), (rows, columns), factors)
    pooled = rewriter.add_new(source.name, pool, image)
    if node is not None:
        return rewriter.add(node, op.Reshape(shape), pooled)
    return rewriter.add_new(source.name, op.Reshape(shape), pooled)


def _fold_through_reshape(
    rewriter: Rewriter, reshape: Node, channel_affine: op.ChannelAffine
) -> int | None:
    """Folds into the layer in front of a reshape, if the channels stay or share one number."""
    layer = rewriter.source(reshape.inputs[0])
    if layer is None or not isinstance(layer.operation, op.Conv2d | op.Dense):
        return None
    shape = rewriter.builder.shape(layer.output)
    factor, offset = channel_affine.factor, channel_affine.offset
    if shape[:2] != rewriter.builder.shape(reshape.output)[:2]:
        if not channel_affine.uniform:
            return None
        factor = np.full(shape[1], factor[0])
        offset = None if offset is None else np.full(shape[1], offset[0])
    return rewriter.add_new(layer.name, affine(layer.operation, factor, offset), *layer.inputs)


def _lower(rewriter: Rewriter, node: Node) -> int | None:
    """A layer of its own: a 1x1 convolution over images, an elementwise product over rows."""
    channel_affine, x = node.operation, rewriter.new[node.inputs[0]]
    if not isinstance(channel_affine, op.ChannelAffine):
        return None
    factor, offset = channel_affine.factor, channel_affine.offset
    shape = rewriter.builder.shape(x)
    if channel_affine.uniform:
        single_offset = None if offset is None else offset[:1]
        return _convolve(rewriter, node, x, (1, 1, 1, math.prod(shape)), factor[:1], single_offset)
    if len(shape) > 2:
        image = (*shape[:2], math.prod(shape[2:-1]), shape[-1])
        return _convolve(rewriter, node, x, image, factor, offset)
    scale = op.Scale(np.array(np.broadcast_to(factor, shape)))
    if offset is None:
        return rewriter.add(node, scale, x)
    return rewriter.add(node, op.AddConstant(offset), rewriter.add_new(node.name, scale, x))


def _convolve(
    rewriter: Rewriter, node: Node, x: int, image: Shape, factor: Array, offset: Array | None
) -> int:
    """A depthwise 1x1 convolution over `x` seen as `image`."""
    shape = rewriter.builder.shape(x)
    layer = op.Conv2d(factor.reshape(-1, 1, 1, 1), offset, groups=len(factor))
    if image == shape:
        return rewriter.add(node, layer, x)
    view = rewriter.add_new(node.name, op.Reshape(image), x)
    return rewriter.add(node, op.Reshape(shape), rewriter.add_new(node.name, layer, view))
