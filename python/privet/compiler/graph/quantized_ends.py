"""Quantised outputs of a last Softmax or Sigmoid, which the client computes.

ONNX Runtime's quantiser puts a QuantizeLinear and a DequantizeLinear behind every operator. Private
tensors are not rounded to the steps between the two, and nothing saturates where the range of the
integers is that of probabilities. So the pair is nothing, and does not keep the last step private.
"""

from __future__ import annotations

import onnx
from onnx import helper

from privet.compiler.graph.constants import array_of
from privet.compiler.graph.onnx_model import DEFAULT_DOMAINS
from privet.compiler.graph.operators.quantized import RANGES
from privet.compiler.graph.rewriting import expand_nodes

_PROBABILITIES = ("Sigmoid", "Softmax")


def without_last_quantizations(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without such pairs in front of its outputs; itself if it has none."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    outputs = {output.name for output in model.graph.output}
    producers = {name: node for node in model.graph.node for name in node.output}

    def probabilities(node: onnx.NodeProto) -> str | None:
        """What a DequantizeLinear in front of an output stands for, if that is probabilities."""
        quantize = producers.get(node.input[0]) if node.input else None
        if quantize is None or outputs.isdisjoint(node.output) or not _is_pair(quantize, node):
            return None
        producer = producers.get(quantize.input[0])
        low, high, step = value_range = _range(quantize, constants)
        covers_probabilities = (
            low <= step and high >= 1.0 - step and value_range == _range(node, constants)
        )
        is_last = producer is not None and producer.op_type in _PROBABILITIES
        return quantize.input[0] if covers_probabilities and is_last else None

    def identity(node: onnx.NodeProto, _graph: onnx.GraphProto) -> list[onnx.NodeProto]:
        source = probabilities(node)
        assert source is not None
        return [helper.make_node("Identity", [source], node.output, name=node.name)]

    return expand_nodes(model, lambda node: probabilities(node) is not None, identity)


def _is_pair(quantize: onnx.NodeProto, dequantize: onnx.NodeProto) -> bool:
    operators = [(node.op_type, node.domain in DEFAULT_DOMAINS) for node in (quantize, dequantize)]
    return operators == [("QuantizeLinear", True), ("DequantizeLinear", True)]


def _range(
    node: onnx.NodeProto, constants: dict[str, onnx.TensorProto]
) -> tuple[float, float, float]:
    """The smallest and the largest number that integers stand for, and their step; no range where
    the node does not say so in single constants."""
    scale_tensor, zero_tensor = (constants.get(name) for name in [*node.input, "", ""][1:3])
    if scale_tensor is None or zero_tensor is None:
        return 0.0, 0.0, 0.0
    scale, zero_point = array_of(scale_tensor), array_of(zero_tensor)
    if scale.size != 1 or zero_point.size != 1 or zero_point.dtype.name not in RANGES:
        return 0.0, 0.0, 0.0
    low, high = (
        float(scale.item() * (end - int(zero_point.item())))
        for end in RANGES[zero_point.dtype.name]
    )
    return low, high, float(scale.item())
