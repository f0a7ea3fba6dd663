"""Numbers cast to integers or booleans and compared with zero, as boosting by AdaBoost asks."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import node

from privet.compiler.compile import compile
from privet.compiler.executor import execute
from privet.compiler.executor.reference import run_plaintext

X = np.array([[-1.5, -1.0, -0.5, 0.0, 0.5, 0.75, 1.0, 2.0]], np.float32)
TYPE = onnx.TensorProto


@pytest.mark.parametrize(
    ("kind", "zero"),
    [
        (TYPE.INT64, np.zeros((), np.int64)),
        (TYPE.INT32, np.zeros(1, np.int32)),
        (TYPE.INT64, np.zeros((1, 1, 1), np.int64)),
        (TYPE.BOOL, np.zeros(1, np.bool_)),
    ],
)
def test_a_number_is_zero_where_it_is_in_onnx_runtime(kind: int, zero: Any) -> None:
    rank = max(zero.ndim, 2)
    # Nodes of this domain alone come with such comparisons.
    scaled = node("Scaler", ["x"], ["scaled"], domain="ai.onnx.ml", offset=[0.0], scale=[1.0])
    nodes = [
        scaled,
        onnx.helper.make_node("Cast", ["scaled"], ["rounded"], "rounds", to=kind),
        node("Equal", ["rounded", "zero"], ["is_zero"]),
        onnx.helper.make_node("Cast", ["is_zero"], ["y"], "counts", to=TYPE.FLOAT),
    ]
    entry = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes,
        "rounding",
        [entry("x", TYPE.FLOAT, X.shape)],
        [entry("y", TYPE.FLOAT, [1] * (rank - 2) + list(X.shape))],
        [onnx.numpy_helper.from_array(zero, "zero")],
    )
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    proto = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    compiled = compile(proto, smooth="piecewise", calibration=[X])
    output = execute(compiled.program, compiled.weights, [X]).outputs["y"]
    reference = run_plaintext(compiled.source, [{"x": X}], ["y"])["y"]
    assert np.array_equal(np.reshape(output, np.shape(reference)), reference)
    assert np.ndim(output) == rank
