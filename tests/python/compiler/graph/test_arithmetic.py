"""Add, Sub, Mul, Div, Neg and Sum against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import check, constant, expected, model, node, single

from privet.compiler.compile import compile
from privet.compiler.executor import execute
from privet.compiler.graph import import_model
from privet.compiler.graph.operations import AddConstant
from privet.errors import UnsupportedModel

SHAPES = [
    ((2, 3), (2, 3)),
    ((2, 3), (3,)),
    ((2, 3), (2, 1)),
    ((2, 3, 4, 4), (3, 1, 1)),
    ((1, 3, 4, 4), (1, 3, 4, 4)),
    ((2, 3, 4, 4), (4,)),
    ((2, 3, 5), (1, 3, 1)),
    ((3,), (2, 3)),
    ((1, 3, 1, 1), (2, 3, 4, 4)),
    ((2, 3), ()),
    ((), (2,)),
    ((), ()),
]


@pytest.mark.parametrize(("a", "b"), SHAPES)
@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div"])
def test_operators_of_a_private_tensor_and_a_constant(
    operator: str, a: tuple[int, ...], b: tuple[int, ...]
) -> None:
    operand = constant(*b) + np.float32(2 if operator == "Div" else 0)
    check(single(operator, [a, operand]))


@pytest.mark.parametrize(("a", "b"), SHAPES)
@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul"])
def test_operators_of_a_constant_and_a_private_tensor(
    operator: str, a: tuple[int, ...], b: tuple[int, ...]
) -> None:
    check(single(operator, [constant(*a), b]))


@pytest.mark.parametrize(("a", "b"), SHAPES)
@pytest.mark.parametrize("operator", ["Add", "Sub"])
def test_operators_of_two_private_tensors(
    operator: str, a: tuple[int, ...], b: tuple[int, ...]
) -> None:
    check(single(operator, [a, b]))


def test_neg() -> None:
    check(single("Neg", [(2, 3)]))


@pytest.mark.parametrize(
    "operands",
    [
        [(2, 3)],
        [(2, 3), (2, 3), (2, 3)],
        [(2, 3), (3,), constant(2, 1)],
        [constant(1), (2, 3), constant(3)],
    ],
)
def test_sum_of_any_number(operands: list[Any]) -> None:
    check(single("Sum", operands))


def test_a_tensor_added_to_itself() -> None:
    check(model([node("Add", ["x", "x"], ["y"])], {"x": (2, 3)}, ["y"]))


def test_opset_6_lines_operands_up_by_axis() -> None:
    x, b = constant(2, 3, 4), constant(3)
    proto = single("Add", [(2, 3, 4), b], opset=6, broadcast=1, axis=1)
    check(proto, {"x0": x}, wanted=[x + b[:, None]])


def test_products_of_two_private_tensors() -> None:
    check(single("Mul", [(2, 3), (2, 3)]), units=8)
    check(single("Mul", [(2, 3), (3,)]), units=8)


def integers(nodes: list[Any], constants: dict[str, Any] | None = None) -> onnx.ModelProto:
    """A model of nodes from the whole numbers `a` and `b` to `y`."""
    proto = model(nodes, {"a": (2, 3), "b": (2, 3)}, ["y"], constants)
    for entry in (*proto.graph.input, *proto.graph.output):
        entry.type.tensor_type.elem_type = onnx.TensorProto.INT64
    del proto.graph.value_info[:]
    return proto


@pytest.mark.parametrize("operator", ["Mul", "MatMul", "Einsum"])
def test_products_of_integers(operator: str) -> None:
    """Masks of padding are multiplied with one another, and with places."""
    attributes = {"equation": "ij,kj->ik"} if operator == "Einsum" else {}
    nodes = [node(operator, ["a", "t" if operator == "MatMul" else "b"], ["y"], **attributes)]
    if operator == "MatMul":
        nodes.insert(0, node("Transpose", ["b"], ["t"]))
    inputs = {"a": np.array([[3, 0, 1], [-2, 7, 1]]), "b": np.array([[1, 0, 5], [6, -1, 0]])}
    compiled = compile(integers(nodes), calibration=[inputs])
    (output,) = execute(compiled.program, compiled.weights, inputs).outputs.values()
    np.testing.assert_array_equal(output, expected(integers(nodes), inputs)[0])


@pytest.mark.parametrize("operator", ["Where", "Concat", "Clip", "Sign", "TopK", "ReduceL1"])
def test_division_is_refused_of_integers_that_were_chosen_or_joined(operator: str) -> None:
    reads = {"Where": ["c", "a", "b"], "Concat": ["a", "b"], "Clip": ["a", "low", "high"]}
    reads |= {"TopK": ["a", "k"]}
    attributes = {"axis": 1} if operator == "Concat" else {}
    nodes = [
        node("Less", ["a", "b"], ["c"]),
        node(operator, reads.get(operator, ["a"]), ["d"], **attributes),
        node("Div", ["d", "two"], ["y"]),
    ]
    nodes[1].output.extend(["places"] if operator == "TopK" else [])
    nodes = nodes if operator == "Where" else nodes[1:]
    proto = integers(nodes, {"two": 2, "low": -9, "high": 9, "k": [2]})
    with pytest.raises(UnsupportedModel, match="divides integers"):
        import_model(proto, name="m")


def test_averages_of_integers_are_refused() -> None:
    proto = integers([node("ReduceMean", ["a"], ["m"]), node("Mul", ["m", "b"], ["y"])])
    with pytest.raises(UnsupportedModel, match="averages integers"):
        import_model(proto, name="m")


@pytest.mark.parametrize("operator", [None, "Add", "Mul", "CumSum", "ReduceSum", "Sum"])
def test_division_of_integers_is_refused(operator: str | None) -> None:
    """Whatever integers were made of before."""
    nodes, operand = [], "a"
    if operator is not None:
        nodes, operand = [node(operator, ["a", "one"], ["c"])], "c"
    proto = integers([*nodes, node("Div", [operand, "two"], ["y"])], {"one": 1, "two": 2})
    with pytest.raises(UnsupportedModel, match="divides integers"):
        import_model(proto, name="m")
    proto = integers([*nodes, node("Div", [operand, "b"], ["y"])], {"one": 1})
    with pytest.raises(UnsupportedModel, match="divides integers"):
        import_model(proto, name="m")


def test_division_by_zero_is_refused() -> None:
    with pytest.raises(UnsupportedModel, match="zero"):
        import_model(single("Div", [(2,), np.asarray([1, 0], np.float32)]), name="m")


def test_what_is_made_of_a_tensor_and_itself_is_a_constant() -> None:
    """So exporters write ones and zeros of its shape."""
    nodes = [
        node("Div", ["x", "x"], ["ones"]),
        node("Sub", ["x", "x"], ["zeros"]),
        node("Add", ["x", "ones"], ["a"]),
        node("Sub", ["a", "zeros"], ["y"]),
    ]
    proto = model(nodes, {"x": (2, 3)}, ["y"])
    graph = import_model(proto, name="m")
    biases = [
        entry.operation.bias for entry in graph.nodes if isinstance(entry.operation, AddConstant)
    ]
    assert len(biases) == len(graph.nodes)
    assert np.array_equal(sum(biases), np.ones((2, 3)))
