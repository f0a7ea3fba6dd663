"""Tensors of the Open Inference Protocol."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import model, node, private
from tritonclient.utils import deserialize_bytes_tensor

from privet.compiler.compile import compile
from privet.compiler.executor import execute
from privet.compiler.executor.codec import as_tensor, describe_outputs
from privet.errors import InputError
from privet.gateway.oip import predict_pb2, tensors
from privet.gateway.oip.binary import Body
from privet.gateway.oip.exchange import InferenceRequest
from privet.gateway.oip.rpc import _question
from privet.gateway.oip.tensors import (
    DATATYPES,
    from_numbers,
    from_raw,
    output_datatypes,
    to_data,
    to_raw,
)


@pytest.mark.parametrize("datatype", DATATYPES)
def test_raw_elements_there_and_back(datatype: str) -> None:
    array = np.arange(6).astype(DATATYPES[datatype]).reshape(2, 3)
    copy = from_raw("x", datatype, [2, 3], to_raw(array, datatype))
    assert copy.dtype == array.dtype
    assert np.array_equal(copy, array)


@pytest.mark.parametrize("datatype", DATATYPES)
def test_numbers_flat_or_nested(datatype: str) -> None:
    for numbers in ([0, 1, 2, 3], [[0, 1], [2, 3]]):
        array = from_numbers("x", datatype, [2, 2], numbers)
        assert array.dtype == np.dtype(DATATYPES[datatype])
        assert array.tolist() == [[0, 1], [2, 3]]


def test_an_empty_tensor() -> None:
    assert from_numbers("x", "FP32", [0, 3], []).shape == (0, 3)
    assert from_raw("x", "FP32", [0, 3], b"").shape == (0, 3)


@pytest.mark.parametrize(
    ("datatype", "shape", "numbers", "problem"),
    [
        ("FP8", [1], [0], "has type FP8"),
        ("BYTES", [2], ["a"], "has 2 elements; 1 texts were given"),
        ("BYTES", [1], [1], "texts are needed"),
        ("BYTES", [1], [b"\xff"], "not UTF-8"),
        ("FP32", [-1], [0], "negative length"),
        ("FP32", [2], [0], "has 2 elements; 1 were given"),
        ("FP32", [2], [[0], [1, 2]], "cannot be read as FP32"),
        ("FP32", [1], ["0"], "cannot be read as FP32"),
        ("FP32", [1], [None], "cannot be read as FP32"),
        ("FP32", [1], [True], "cannot be read as FP32"),
        ("FP32", [1], [1e300], "cannot be read as FP32"),
        ("INT8", [1], [0.5], "cannot be read as INT8"),
        ("INT8", [1], [200], "cannot be read as INT8"),
        ("UINT8", [1], [-1], "cannot be read as UINT8"),
        ("INT64", [1], [1 << 70], "cannot be read as INT64"),
        ("FP32", [10**3000, 10**3000], [0], "that no tensor has"),
        ("FP32", [0, 1 << 70], [], "that no tensor has"),
        ("FP32", [1] * 100, [0], "100 axes"),
        ("BYTES", [10**3000, 10**3000], ["a"], "that no tensor has"),
    ],
)
def test_what_is_no_tensor(datatype: str, shape: list[int], numbers: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        from_numbers("x", datatype, shape, numbers)


def test_raw_elements_of_another_shape() -> None:
    with pytest.raises(InputError, match="12 bytes; 8 were given"):
        from_raw("x", "FP32", [3], bytes(8))
    with pytest.raises(InputError, match="negative length"):
        from_raw("x", "FP32", [-1, -1], bytes(4))


def test_texts_take_no_more_memory_than_a_request_may_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tensors, "MOST_TEXT_BYTES", 4 * 1000 * 100)
    long = ["a" * 100, *[""] * 999]
    assert from_numbers("x", "BYTES", [1000], long).nbytes == 4 * 1000 * 100
    for texts in (["a" * 101, *[""] * 999], ["a" * 100, *[""] * 1000]):
        with pytest.raises(InputError, match="room of the longest"):
            from_numbers("x", "BYTES", [len(texts)], texts)
    # Without the bound, a request of 5 kB has a tensor of 4 MB.
    monkeypatch.setattr(tensors, "MOST_TEXT_BYTES", 1 << 40)
    assert from_numbers("x", "BYTES", [1001], ["a" * 1000, *[""] * 1000]).nbytes == 4_004_000


def test_texts_of_all_inputs_share_the_room_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "MOST_TEXT_BYTES", 4 * 1000 * 100)
    texts = ["a" * 60, *[""] * 999]

    def rest(names: str) -> InferenceRequest:
        inputs = [
            {"name": name, "datatype": "BYTES", "shape": [1000], "data": texts} for name in names
        ]
        return Body("m", "", json.dumps({"inputs": inputs}).encode(), None).question

    def rpc(names: str) -> InferenceRequest:
        request = predict_pb2.ModelInferRequest(model_name="m")
        for name in names:
            tensor = request.inputs.add(name=name, datatype="BYTES", shape=[1000])
            tensor.contents.bytes_contents.extend(text.encode() for text in texts)
        return _question(request)

    for parse in (rest, rpc):
        assert list(parse("x").inputs) == ["x"]
        with pytest.raises(InputError, match="room of the longest"):
            parse("xy")


def test_positions_are_integers_and_scores_are_real() -> None:
    proto = model(
        [
            node("MatMul", ["x", "w"], ["scores"]),
            node("ArgMax", ["scores"], ["best"], axis=1, keepdims=0),
        ],
        {"x": private(1, 3)},
        ["scores", "best"],
        {"w": np.eye(3, dtype=np.float32)},
    )
    assert output_datatypes(compile(proto).program) == {"scores": "FP32", "best": "INT64"}


def test_labels_are_bytes_and_maps_are_rows() -> None:
    nodes = [
        node("MatMul", ["x", "w"], ["scores"]),
        node("ArgMax", ["scores"], ["best"], axis=1, keepdims=0),
        node("Gather", ["names", "best"], ["label"]),
    ]
    names = ["é", "b", "c"]
    constants = {"w": np.eye(3, dtype=np.float32), "names": np.array(names, dtype=object)}
    proto = model(nodes, {"x": private(1, 3)}, ["label"], constants)
    proto.graph.node.append(
        onnx.helper.make_node(
            "ZipMap", ["scores"], ["map"], domain="ai.onnx.ml", classlabels_strings=names
        )
    )
    entry = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [])
    kind = onnx.helper.make_sequence_type_proto(
        onnx.helper.make_map_type_proto(onnx.TensorProto.STRING, entry)
    )
    proto.graph.output.append(onnx.helper.make_value_info("map", kind))
    proto.opset_import.append(onnx.helper.make_opsetid("ai.onnx.ml", 1))
    compiled = compile(proto)
    program = compiled.program
    assert output_datatypes(program) == {"label": "BYTES", "map": "FP32"}
    assert [output.shape for output in describe_outputs(program)] == [(1,), (1, 3)]
    x = np.array([[0.5, 0.25, 0.125]])
    outputs = execute(program, compiled.weights, [x]).outputs
    assert outputs["map"][0] == {"b": 0.25, "c": 0.125, "é": 0.5}
    assert as_tensor(outputs["map"]).tolist() == [[0.25, 0.125, 0.5]]
    assert to_data(outputs["label"], "BYTES") == ["é"]
    raw = to_raw(outputs["label"], "BYTES")
    assert deserialize_bytes_tensor(raw).tolist() == ["é".encode()]


@pytest.mark.parametrize(
    ("place", "parameter", "value"),
    [
        ("inputs", "shared_memory_region", "region"),
        ("outputs", "shared_memory_region", "region"),
        ("outputs", "classification", 3),
    ],
)
def test_parameters_that_are_not_followed_are_refused_by_rest_and_grpc(
    place: str, parameter: str, value: str | int
) -> None:
    tensor: dict[str, object] = {"name": "x", "datatype": "FP32", "shape": [1], "data": [0.5]}
    document: dict[str, list[dict[str, object]]] = {"inputs": [tensor], "outputs": [{"name": "x"}]}
    document[place][0]["parameters"] = {parameter: value}
    with pytest.raises(InputError, match=f"x: {parameter} is no part"):
        Body("m", "", json.dumps(document).encode(), None)
    request = predict_pb2.ModelInferRequest(model_name="m")
    request.inputs.add(name="x", datatype="FP32", shape=[1]).contents.fp32_contents.append(0.5)
    request.outputs.add(name="x")
    assert list(_question(request).inputs) == ["x"]
    field = "string_param" if isinstance(value, str) else "int64_param"
    setattr(getattr(request, place)[0].parameters[parameter], field, value)
    with pytest.raises(InputError, match=f"x: {parameter} is no part"):
        _question(request)
