"""Operators that rename axes, and the shape arithmetic that exporters write."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import check, constant, model, node, single

from privet.compiler.graph import import_model
from privet.errors import UnsupportedModel


@pytest.mark.parametrize(
    ("target", "allowzero"), [([6, 4], 0), ([0, -1], 0), ([-1], 0), ([4, 0, 2], 0), ([2, 12], 1)]
)
def test_reshape(target: list[int], allowzero: int) -> None:
    check(single("Reshape", [(2, 3, 4), np.array(target)], allowzero=allowzero))


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1, -2])
def test_flatten(axis: int) -> None:
    check(single("Flatten", [(2, 3, 4)], axis=axis))


@pytest.mark.parametrize("axes", [None, [0], [-1], [0, 2]])
@pytest.mark.parametrize("opset", [11, 13])
def test_squeeze(axes: list[int] | None, opset: int) -> None:
    shape = (1, 3, 1)
    if axes is None:
        check(single("Squeeze", [shape], opset=opset))
    elif opset < 13:
        check(single("Squeeze", [shape], opset=opset, axes=axes))
    else:
        check(single("Squeeze", [shape, np.array(axes)], opset=opset))


@pytest.mark.parametrize("axes", [[0], [-1], [0, 2], [1, -1]])
@pytest.mark.parametrize("opset", [11, 13])
def test_unsqueeze(axes: list[int], opset: int) -> None:
    if opset < 13:
        check(single("Unsqueeze", [(2, 3)], opset=opset, axes=axes))
    else:
        check(single("Unsqueeze", [(2, 3), np.array(axes)], opset=opset))


def test_identity_and_dropout() -> None:
    check(single("Identity", [(2, 3)]))
    check(single("Dropout", [(2, 3)]))
    check(single("Dropout", [(2, 3)], opset=7, ratio=0.3))
    check(single("Dropout", [(2, 3), np.float32(0.3), np.array(False)]))


def test_a_mask_that_nobody_reads_is_no_problem() -> None:
    nodes = [node("Dropout", ["x"], ["y", "mask"])]
    check(model(nodes, {"x": (2, 3)}, ["y"], opset=9))


@pytest.mark.parametrize("outputs", [1, 2])
def test_dropout_in_training_or_with_its_mask_is_refused(outputs: int) -> None:
    training = np.array(outputs == 1)
    proto = single("Dropout", [(2, 3), np.float32(0.3), training], outputs=outputs)
    with pytest.raises(UnsupportedModel):
        import_model(proto, name="m")


def test_cast_between_floats() -> None:
    nodes = [
        node("Cast", ["x"], ["d"], to=onnx.TensorProto.DOUBLE),
        node("Cast", ["d"], ["y"], to=onnx.TensorProto.FLOAT),
    ]
    check(model(nodes, {"x": (2, 3)}, ["y"]))


def test_cast_of_an_index() -> None:
    nodes = [
        node("ArgMax", ["x"], ["i"], axis=1),
        node("Cast", ["i"], ["f"], to=onnx.TensorProto.FLOAT),
        node("Mul", ["f", "half"], ["y"]),
    ]
    check(model(nodes, {"x": (2, 5)}, ["y"], {"half": np.float32(0.5)}))


@pytest.mark.parametrize("reader", [None, "Relu", "Cast"])
def test_cast_to_integers_is_refused(reader: str | None) -> None:
    cast = {"to": onnx.TensorProto.INT64}
    nodes = [node("Cast", ["x"], ["i"], **cast), node("Cast", ["i"], ["f"], to=1)][
        : 1 + bool(reader)
    ]
    if reader == "Relu":
        nodes[1] = node("Relu", ["i"], ["f"])
    proto = model(nodes, {"x": (2,)}, [nodes[-1].output[0]])
    with pytest.raises(UnsupportedModel, match=r"a cast rounds (it|what it reads) to integers"):
        import_model(proto, name="m")


@pytest.mark.parametrize("reader", ["Gather", "OneHot"])
def test_places_that_a_cast_cuts_off(reader: str) -> None:
    """Numbers from one below -4 to one above 4, and places that count from behind."""
    table = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    nodes = [
        node("Cast", ["x"], ["i"], to=onnx.TensorProto.INT64),
        node("Unsqueeze", ["i", "axis"], ["j"]),
        node("Gather", ["table", "j"], ["y"])
        if reader == "Gather"
        else node("OneHot", ["j", "depth", "both"], ["y"], axis=0),
    ]
    constants = {
        "axis": np.array([1]),
        "table": table,
        "depth": np.array(5),
        "both": np.array([0.5, -2.0], np.float32),
    }
    proto = model(nodes, {"x": (12,)}, ["y"], constants)
    x = np.array([-4.9, -4, -1, -0.98, 0.5, 0.9, 1, 1.7, 3, 3.97, 4, 4.9], np.float32)
    check(proto, {"x": x})


@pytest.mark.parametrize("op", ["ArrayFeatureExtractor", "Gather"])
def test_a_column_of_what_a_cast_cuts_off_is_cut_off(op: str) -> None:
    def read_by(reader: onnx.NodeProto) -> onnx.ModelProto:
        nodes = [
            node("Cast", ["x"], ["i"], to=onnx.TensorProto.INT64),
            node("Gather", ["i", "columns"], ["j"], axis=1),
            reader,
        ]
        constants = {
            "columns": np.array([1]),
            "depth": np.array(3),
            "both": np.array([0, 1], np.float32),
        }
        proto = model(nodes, {"x": x.shape}, ["y"], constants)
        if op == "ArrayFeatureExtractor":
            proto.graph.node[1].CopyFrom(node(op, ["i", "columns"], ["j"], domain="ai.onnx.ml"))
            proto.opset_import.append(onnx.helper.make_opsetid("ai.onnx.ml", 3))
        return proto

    x = np.array([[0.7, 2.7], [1.7, 1.2], [2.9, 0.9]], np.float32)
    check(read_by(node("OneHot", ["j", "depth", "both"], ["y"])), {"x": x})
    with pytest.raises(UnsupportedModel, match="a cast rounds what it reads to integers"):
        import_model(read_by(node("Cast", ["j"], ["y"], to=onnx.TensorProto.FLOAT)), name="m")


def test_flatten_as_exporters_write_it() -> None:
    """Shape, Gather, Unsqueeze, Concat and Reshape vanish into one reshape."""
    nodes: list[Any] = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["b"], axis=0),
        node("Unsqueeze", ["b", "axes"], ["u"]),
        node("Concat", ["u", "rest"], ["t"], axis=0),
        node("Reshape", ["x", "t"], ["y"]),
    ]
    constants = {"zero": np.array(0), "axes": np.array([0]), "rest": np.array([-1])}
    proto = model(nodes, {"x": (2, 3, 4)}, ["y"], constants)
    assert len(import_model(proto, name="m").nodes) == 1
    check(proto)


def test_weights_computed_from_constants() -> None:
    nodes = [
        node("Mul", ["w", "two"], ["w2"]),
        node("Transpose", ["w2"], ["wt"], perm=[1, 0]),
        node("MatMul", ["x", "wt"], ["y"]),
    ]
    check(model(nodes, {"x": (2, 3)}, ["y"], {"w": constant(4, 3), "two": np.float32(2)}))


def test_size_is_a_constant() -> None:
    nodes = [
        node("Size", ["x"], ["n"]),
        node("Cast", ["n"], ["f"], to=onnx.TensorProto.FLOAT),
        node("Div", ["x", "f"], ["y"]),
    ]
    check(model(nodes, {"x": (2, 2)}, ["y"]))
