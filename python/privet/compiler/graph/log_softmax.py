"""`x - logsumexp(x)` over the last axis, as exporters of naive Bayes and mixtures write LogSoftmax.

Under that name it can be part of what the client computes, and needs no logarithm of a sum. An
exponential of it is a softmax, which the parties can compute as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy

import numpy as np
import onnx

from privet.compiler.graph.constants import array_of
from privet.compiler.graph.operations import Shape


def fuse_log_softmax(model: onnx.ModelProto, shapes: Mapping[str, Shape]) -> onnx.ModelProto:
    """The model with each such difference of a matrix as a LogSoftmax, and each exponential of a
    LogSoftmax as a Softmax; itself if it has none.

    `shapes` has those of private tensors, by name.
    """
    differences = _differences(model, shapes)
    log_softmaxes = {
        node.output[0]: node for node in model.graph.node if node.op_type == "LogSoftmax"
    }
    log_softmaxes |= {
        model.graph.node[index].output[0]: model.graph.node[index] for index in differences
    }
    exponentials = [
        index
        for index, node in enumerate(model.graph.node)
        if node.op_type == "Exp" and not node.domain and node.input[0] in log_softmaxes
    ]
    if not differences and not exponentials:
        return model
    copy = deepcopy(model)
    for index in differences:
        node = copy.graph.node[index]
        del node.input[1]
        node.op_type = "LogSoftmax"
        node.attribute.append(onnx.helper.make_attribute("axis", 1))
    copied_nodes = {
        node.output[0]: node for node in copy.graph.node if node.op_type == "LogSoftmax"
    }
    for index in exponentials:
        node = copy.graph.node[index]
        log_softmax = copied_nodes[node.input[0]]
        node.op_type, node.input[0] = "Softmax", log_softmax.input[0]
        node.attribute.extend(log_softmax.attribute)
    return copy


def _differences(model: onnx.ModelProto, shapes: Mapping[str, Shape]) -> list[int]:
    """Nodes that subtract from a matrix the logarithms of its rows' sums."""
    nodes = model.graph.node
    log_sums = {node.output[0]: node for node in nodes if node.op_type == "ReduceLogSumExp"}
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in nodes:
        if node.op_type == "Reshape" and node.input[0] in log_sums and node.input[1] in constants:
            target_shape = array_of(constants[node.input[1]])
            if target_shape.size == 2 and target_shape[-1] == 1:
                log_sums[node.output[0]] = log_sums[node.input[0]]
    differences = []
    for index, node in enumerate(nodes):
        log_sum = log_sums.get(node.input[1]) if node.op_type == "Sub" else None
        if log_sum is None or log_sum.input[0] != node.input[0] or node.domain:
            continue
        shape = shapes.get(node.input[0], ())
        # What has no axis of its own left would be taken along the other one.
        is_column = node.input[1] != log_sum.output[0] or _keepdims(log_sum) or shape[:1] == (1,)
        if len(shape) == 2 and is_column and _axes(log_sum, constants) in ([1], [-1]):
            differences.append(index)
    return differences


def _keepdims(node: onnx.NodeProto) -> bool:
    return next((bool(a.i) for a in node.attribute if a.name == "keepdims"), True)


def _axes(node: onnx.NodeProto, constants: dict[str, onnx.TensorProto]) -> list[int] | None:
    if len(node.input) > 1:
        tensor = constants.get(node.input[1])
        return None if tensor is None else [int(axis) for axis in np.ravel(array_of(tensor))]
    return next((list(a.ints) for a in node.attribute if a.name == "axes"), None)
