"""Adds constants that follow a linear layer to its bias, and joins neighbouring constants.

Adding a constant costs nothing in any suite, so constants in front of a layer stay where they are.
"""

from __future__ import annotations

import numpy as np

from privet.compiler.graph import Graph, Node
from privet.compiler.graph import operations as op
from privet.compiler.passes.channels import affine, along, plus
from privet.compiler.passes.rewriter import Rewriter, rewritten


def fold_affine(graph: Graph) -> Graph:
    """The same function with fewer `AddConstant`."""
    return rewritten(graph, _fold)


def _fold(rewriter: Rewriter, node: Node) -> int | None:
    addition = node.operation
    if not isinstance(addition, op.AddConstant):
        return None
    source = rewriter.source(rewriter.new[node.inputs[0]])
    if source is None:
        return None
    shape = rewriter.builder.shape(source.output)
    reshape = None
    if isinstance(source.operation, op.Reshape):
        reshape, source = source, rewriter.source(source.inputs[0])
        if source is None or not isinstance(source.operation, op.Conv2d | op.Dense):
            return None
    layer = source.operation
    axis = 1
    if reshape is not None:
        layer_shape = rewriter.builder.shape(source.output)
        if isinstance(layer, op.Dense) and layer_shape[-1] == shape[-1]:
            axis = -1
        elif layer_shape[:2] != shape[:2]:
            return None
    match layer:
        case op.AddConstant(bias=bias):
            bias_sum = np.asarray(bias.astype(np.float64) + addition.bias)
            return rewriter.add(node, op.AddConstant(bias_sum), *source.inputs)
        case op.ChannelAffine(factor=factor, offset=offset, uniform=uniform):
            vector = along(addition.bias, shape, 1)
            if vector is None:
                return None
            combined = op.ChannelAffine(
                factor, plus(vector, offset), uniform=uniform and addition.bias.size == 1
            )
            return rewriter.add(node, combined, *source.inputs)
        case op.Conv2d() | op.Dense():
            vector = along(addition.bias, shape, axis)
            if vector is None:
                return None
            folded_layer = affine(layer, np.ones_like(vector), vector)
            if reshape is None:
                return rewriter.add(node, folded_layer, *source.inputs)
            layer_output = rewriter.add_new(source.name, folded_layer, *source.inputs)
            return rewriter.add(node, reshape.operation, layer_output)
        case _:
            return None
