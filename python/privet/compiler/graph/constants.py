"""Computing nodes whose inputs are all constants, so that exporters' shape arithmetic vanishes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from privet.compiler.graph.operations import Array
from privet.compiler.graph.shapes import MAX_SAMPLE
from privet.errors import InvalidModel

RANDOM = frozenset(
    {
        *("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike"),
        *("RandomUniform", "RandomUniformLike"),
    }
)
SEQUENCES = frozenset(
    {
        *("ConcatFromSequence", "SequenceAt", "SequenceConstruct", "SequenceEmpty"),
        *("SequenceErase", "SequenceInsert", "SequenceLength", "SplitToSequence"),
    }
)
"""Operators that make or read sequences, which are no tensors."""

NEWER = {"QuantizeLinear": 21, "DequantizeLinear": 21}
"""Opsets whose form of an operator the evaluator knows, and which older forms agree with."""


def foldable(node: onnx.NodeProto) -> bool:
    """Whether the node gives the same result every time and holds no graph of its own."""
    graphs = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
    return node.op_type not in RANDOM | SEQUENCES and all(
        a.type not in graphs for a in node.attribute
    )


def array_of(tensor: onnx.TensorProto) -> Array:
    """An initialiser as an array; raises `InvalidModel` if its bytes are not what it says."""
    try:
        return onnx.numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidModel(f"constant {tensor.name!r} cannot be read: {error}") from error


def dense(sparse: onnx.SparseTensorProto) -> Array:
    """A sparse initialiser as an array; raises `InvalidModel` if it does not fit itself."""
    name, shape = sparse.values.name, tuple(sparse.dims)
    try:
        _check_size(shape)
        values = onnx.numpy_helper.to_array(sparse.values)
        indices = onnx.numpy_helper.to_array(sparse.indices)
        flat_indices = (
            indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), shape)
        )
        array = np.zeros(math.prod(shape), values.dtype)
        array[flat_indices] = values
    except (ValueError, IndexError, TypeError) as error:
        raise InvalidModel(f"sparse initialiser {name}: {error}") from error
    return array.reshape(shape)


def _check_size(shape: Sequence[int]) -> None:
    if min(shape, default=0) < 0 or math.prod(shape) > MAX_SAMPLE:
        raise ValueError(f"shape {list(shape)} has more than {MAX_SAMPLE} elements")


def _check_result_size(node: onnx.NodeProto, inputs: Sequence[Array | None]) -> None:
    """Raises `ValueError` where a small node would make a huge constant."""
    arrays = [operand for operand in inputs if operand is not None]
    match node.op_type:
        case "ConstantOfShape":
            _check_size([int(size) for size in arrays[0].ravel()])
        case "Expand":
            _check_size(np.broadcast_shapes(arrays[0].shape, tuple(map(int, arrays[1].ravel()))))
        case "Tile":
            repeats = map(int, arrays[1].ravel())
            _check_size(
                [size * count for size, count in zip(arrays[0].shape, repeats, strict=False)]
            )
        case "Range":
            start, limit, delta = (float(operand.ravel()[0]) for operand in arrays)
            _check_size([max(math.ceil((limit - start) / delta), 0)] if delta else [])
        case "Add" | "Sub" | "Mul" | "Div" | "Where" | "Pow" | "Equal" | "Less" | "Greater":
            _check_size(np.broadcast_shapes(*(operand.shape for operand in arrays)))


def fold(
    node: onnx.NodeProto, inputs: Sequence[Array | None], opsets: Sequence[onnx.OperatorSetIdProto]
) -> list[Array]:
    """The node's outputs.

    Raises whatever the reference evaluator raises on an operator it does not know, and `TypeError`
    on a result that is not a tensor.
    """
    _check_result_size(node, inputs)
    feeds = {
        name: array
        for name, array in zip(node.input, inputs, strict=True)
        if name and array is not None
    }
    undefined = onnx.TensorProto.UNDEFINED
    graph = onnx.helper.make_graph(
        [node],
        "constant",
        [onnx.helper.make_tensor_value_info(name, undefined, None) for name in feeds],
        [onnx.helper.make_tensor_value_info(name, undefined, None) for name in node.output if name],
    )
    if node.op_type in NEWER:
        opsets = [onnx.helper.make_opsetid("", NEWER[node.op_type])]
    model = onnx.helper.make_model(graph, opset_imports=list(opsets))
    results = ReferenceEvaluator(model).run(None, feeds)
    for result in results:
        if not isinstance(result, np.ndarray | np.generic):
            raise TypeError(f"{node.op_type} gives no tensor")
    return [np.asarray(result) for result in results]


def holds_rows(type: int, rows: int) -> bool:
    """Whether an ONNX element type holds every whole number below `rows` as it is."""
    if type == onnx.TensorProto.STRING:
        return False
    # Of numbers that a type does not hold, the first is odd or too large.
    largest_ids = np.array([rows - 1, max(rows - 2, 0)], np.int64)
    try:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(type)
        return np.array_equal(largest_ids.astype(dtype).astype(np.int64), largest_ids)
    except (KeyError, TypeError, ValueError):
        return False
