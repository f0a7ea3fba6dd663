"""Functions of few pieces, comparisons, and what works on their results, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import Array, check, constant, expected, model, node, single

POINTS = np.array([[-2.0, -1.0, -0.5, 0.0], [0.25, 0.5, 1.0, 3.0]], np.float32)
OTHER = np.array([[-2.0, 1.0, -0.75, 0.0], [0.5, 0.25, 1.0, -3.0]], np.float32)
COMPARISONS = ["Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"]


def checked(proto: Any, **inputs: Array) -> None:
    """Agreement on numbers that fixed point has exactly, so that equal ones are equal."""
    references = [array.astype(np.float64) for array in expected(proto, inputs)]
    check(proto, inputs, units=2, wanted=references)


@pytest.mark.parametrize("operator", ["Abs", "Sign", "ThresholdedRelu", "Shrink"])
def test_operators_of_one_tensor(operator: str) -> None:
    checked(single(operator, [(2, 4)]), x0=POINTS)


@pytest.mark.parametrize("attributes", [{"alpha": 0.5}, {"alpha": 0.0}, {"alpha": -0.5}])
def test_thresholded_relu(attributes: dict[str, Any]) -> None:
    checked(single("ThresholdedRelu", [(2, 4)], **attributes), x0=POINTS)


@pytest.mark.parametrize("attributes", [{"lambd": 1.0}, {"lambd": 0.5, "bias": 0.5}, {"bias": 1.5}])
def test_shrink(attributes: dict[str, Any]) -> None:
    checked(single("Shrink", [(2, 4)], **attributes), x0=POINTS)


@pytest.mark.parametrize("shape", [(1,), (4, 1, 1), (4, 3, 2)])
def test_prelu(shape: tuple[int, ...]) -> None:
    check(single("PRelu", [(1, 4, 3, 2), constant(*shape)]))


@pytest.mark.parametrize("operator", ["Max", "Min"])
def test_extremes_of_private_and_constant_tensors(operator: str) -> None:
    checked(single(operator, [(2, 4)]), x0=POINTS)
    checked(single(operator, [(2, 4), (2, 4)]), x0=POINTS, x1=OTHER)
    half = np.float32(0.5)
    checked(single(operator, [(2, 4), half, (1, 4), OTHER]), x0=POINTS, x2=OTHER[:1])


@pytest.mark.parametrize("operator", COMPARISONS)
def test_comparisons(operator: str) -> None:
    checked(single(operator, [(2, 4), (2, 4)]), x0=POINTS, x1=OTHER)
    checked(single(operator, [(2, 4), (1, 4)]), x0=POINTS, x1=OTHER[1:])
    checked(single(operator, [(2, 4), OTHER]), x0=POINTS)
    checked(single(operator, [OTHER, (2, 4)]), x1=POINTS)


@pytest.mark.parametrize("operator", ["And", "Or", "Xor"])
def test_logic(operator: str) -> None:
    nodes = [
        node("Greater", ["x", "y"], ["a"]),
        node("Less", ["x", "half"], ["b"]),
        node("Not", ["b"], ["c"]),
        node(operator, ["a", "c"], ["d"]),
        node("Cast", ["d"], ["z"], to=1),
    ]
    proto = model(nodes, {"x": (2, 4), "y": (2, 4)}, ["z"], {"half": np.float32(0.5)})
    checked(proto, x=POINTS, y=OTHER)


@pytest.mark.parametrize("kind", ["INT32", "INT64"])
@pytest.mark.parametrize("operator", [*COMPARISONS, "And", "Not"])
def test_truth_values_are_whole_numbers(operator: str, kind: str) -> None:
    """As in `(x > y).long().sum()`, or as places in a table of two rows."""
    first = ["x", "y"]
    nodes = []
    if operator in ("And", "Not"):
        nodes = [node("Greater", ["x", "y"], ["a"]), node("Less", ["x", "half"], ["b"])]
        first = ["a", "b"][: 1 + (operator == "And")]
    nodes += [
        node(operator, first, ["truth"]),
        node("Cast", ["truth"], ["number"], to=getattr(onnx.TensorProto, kind)),
        node("Transpose", ["number"], ["turned"], perm=[1, 0]),
        node("ReduceSum", ["turned", "axis"], ["sum"]),
        node("Gather", ["table", "turned"], ["rows"]),
    ]
    table = np.array([[1.5, -0.5], [3.0, 0.25]], np.float32)
    constants: dict[str, Any] = {"half": np.float32(0.5), "axis": np.array([0]), "table": table}
    shapes = {"x": (2, 4), "y": (2, 4)}
    checked(model(nodes, shapes, ["sum", "rows"], constants), x=POINTS, y=OTHER)


@pytest.mark.parametrize("constants", [(), ("a",), ("b",), ("a", "b"), ("c",), ("a", "c")])
def test_where(constants: tuple[str, ...]) -> None:
    values = {"a": 2 * OTHER, "b": POINTS - 1, "c": POINTS > OTHER}
    nodes = [node("Where", ["c", "a", "b"], ["y"])]
    if "c" not in constants:
        nodes.insert(0, node("Greater", ["x", "x2"], ["c"]))
    tensors = {name: values[name] for name in constants}
    free = {name: values[name] for name in ("a", "b") if name not in constants}
    if "c" not in constants:
        free |= {"x": POINTS, "x2": OTHER}
    checked(model(nodes, dict.fromkeys(free, (2, 4)), ["y"], tensors), **free)


def test_a_cast_to_booleans_tells_zero_from_others() -> None:
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("Cast", ["r"], ["b"], to=onnx.TensorProto.BOOL),
        node("Not", ["b"], ["n"]),
        node("Cast", ["n"], ["m"], to=onnx.TensorProto.FLOAT),
        node("Add", ["m", "r"], ["y"]),
    ]
    check(model(nodes, {"x": (3, 5)}, ["y"]))


@pytest.mark.parametrize("operator", ["Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
@pytest.mark.parametrize("bound", [3.4e38, -3.4e38])
@pytest.mark.parametrize("swap", [False, True])
def test_no_number_is_beyond_the_largest_float(operator: str, bound: float, swap: bool) -> None:
    """As KBinsDiscretizer is exported for a column of two values."""
    operands = ["bound", "x"] if swap else ["x", "bound"]
    nodes = [
        node(operator, operands, ["t"]),
        node("Cast", ["t"], ["n"], to=onnx.TensorProto.FLOAT),
        node("Concat", ["n", "x"], ["y"], axis=1),
    ]
    check(model(nodes, {"x": (2, 3)}, ["y"], {"bound": np.array([bound], np.float32)}))


@pytest.mark.parametrize("kind", ["UINT8", "INT8", "INT32"])
def test_truth_values_as_integers(kind: str) -> None:
    """As segmentation ends in a mask of bytes."""
    nodes = [
        node("Greater", ["x", "c"], ["is"]),
        node("Cast", ["is"], ["y"], to=getattr(onnx.TensorProto, kind)),
    ]
    check(model(nodes, {"x": (2, 3)}, ["y"], {"c": np.array(0.1, np.float32)}), units=0)
