"""Writes a graph as an ONNX file, one weight in memory at a time.

A `ModelProto` built whole costs several times the size of its weights. Here the file is laid out
by hand around pieces that protobuf serialises: the model's own fields, then the graph's length,
the graph without weights, and each weight as it is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from onnx import GraphProto, ModelProto, OperatorSetIdProto, TensorProto, helper

from .graph import Array, Fixed, GraphBuilder, Weight

OPSET = 17
IR_VERSION = 8
# A protobuf message must stay below 2 GiB.
LARGEST_FILE = 2**31 - 1

# Wire tags (field number << 3 | 2, length-delimited) of onnx.proto.
_MODEL_GRAPH = 7 << 3 | 2
_GRAPH_INITIALIZER = 5 << 3 | 2
_TENSOR_RAW_DATA = 9 << 3 | 2


def write(graph: GraphBuilder, path: Path, values: Callable[[Weight], Array]) -> None:
    """Write `graph` to `path`, asking `values` for each weight's elements in turn. Raises
    `ValueError` if a weight's elements have another shape or type than declared, or if the file
    would exceed what protobuf can hold."""
    skeleton = _skeleton(graph).SerializeToString(deterministic=True)
    sizes = [_initializer_bytes(weight) for weight in graph.weights]
    total = len(skeleton) + sum(sizes)
    if total > LARGEST_FILE:
        raise ValueError(f"{graph.name} takes {total} bytes, more than an ONNX file can hold")
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:
        file.write(_model().SerializeToString(deterministic=True))
        file.write(_varint(_MODEL_GRAPH) + _varint(total))
        file.write(skeleton)
        for weight in graph.weights:
            array = _checked(weight, values(weight))
            header, size = _tensor_header(weight), array.nbytes
            raw = _varint(_TENSOR_RAW_DATA) + _varint(size)
            length = len(header) + len(raw) + size
            file.write(_varint(_GRAPH_INITIALIZER) + _varint(length) + header + raw)
            file.write(array.data)
    partial.replace(path)


def _model() -> ModelProto:
    return ModelProto(
        ir_version=IR_VERSION,
        producer_name="privet-zoo",
        opset_import=[OperatorSetIdProto(domain="", version=OPSET)],
    )


def _skeleton(graph: GraphBuilder) -> GraphProto:
    inputs = [
        helper.make_tensor_value_info(
            end.name, TensorProto.INT64 if ids else TensorProto.FLOAT, end.shape
        )
        for end, ids in ((graph.input, graph.ids), *graph.more_inputs)
    ]
    outputs = [
        helper.make_tensor_value_info(end.name, TensorProto.FLOAT, end.shape)
        for end in (graph.output, *graph.more_outputs)
    ]
    return helper.make_graph(graph.nodes, graph.name, inputs, outputs)


def _dtype(weight: Weight) -> np.dtype[np.generic]:
    if isinstance(weight.law, Fixed):
        return weight.law.elements.dtype
    return np.dtype(np.float32)


def _tensor_header(weight: Weight) -> bytes:
    kind = TensorProto.INT64 if _dtype(weight) == np.int64 else TensorProto.FLOAT
    tensor = TensorProto(name=weight.name, data_type=kind, dims=weight.shape)
    return bytes(tensor.SerializeToString(deterministic=True))


def _initializer_bytes(weight: Weight) -> int:
    data = math.prod(weight.shape) * _dtype(weight).itemsize
    tensor = len(_tensor_header(weight)) + len(_varint(_TENSOR_RAW_DATA) + _varint(data)) + data
    return len(_varint(_GRAPH_INITIALIZER) + _varint(tensor)) + tensor


def _checked(weight: Weight, array: Array) -> Array:
    if array.shape != weight.shape or array.dtype != _dtype(weight):
        raise ValueError(
            f"{weight.name} needs {_dtype(weight)} {weight.shape}, not {array.dtype} {array.shape}"
        )
    return np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)
