"""If and Loop with conditions that are known, and sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import check, constant, model, node

from privet.compiler.graph import import_model
from privet.errors import UnsupportedModel

FLOAT, INT64, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL


def body(
    nodes: Sequence[onnx.NodeProto],
    outputs: Sequence[tuple[str, int]],
    inputs: Sequence[tuple[str, int]] = (),
    constants: dict[str, Any] | None = None,
) -> onnx.GraphProto:
    entries = [
        onnx.helper.make_tensor_value_info(n, k, None if k == FLOAT else []) for n, k in inputs
    ]
    results = [onnx.helper.make_tensor_value_info(n, k, None) for n, k in outputs]
    initializers = [
        onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in (constants or {}).items()
    ]
    return onnx.helper.make_graph(list(nodes), "body", entries, results, initializers)


def branches() -> dict[str, onnx.GraphProto]:
    """Both use the same names, and read what is outside."""
    add = [node("Add", ["h", "c"], ["out"])]
    mul = [node("Mul", ["h", "c"], ["in"]), node("Relu", ["in"], ["out"])]
    constants = {"c": constant(3)}
    return {
        "then_branch": body(add, [("out", FLOAT)], constants=constants),
        "else_branch": body(mul, [("out", FLOAT)], constants=constants),
    }


@pytest.mark.parametrize("condition", [True, False])
def test_a_branch_that_is_known_takes_the_place_of_the_node(condition: bool) -> None:
    nodes = [
        node("Relu", ["x"], ["h"]),
        node("If", ["condition"], ["a"], **branches()),
        node("Softmax", ["a"], ["y"]),
    ]
    check(model(nodes, {"x": (2, 3)}, ["y"], {"condition": np.array(condition)}))


def test_a_condition_on_shapes_and_one_inside_another() -> None:
    inner = node("If", ["few"], ["out"], **branches())
    outer = {
        "then_branch": body([inner], [("out", FLOAT)]),
        "else_branch": body([node("Identity", ["h"], ["other"])], [("other", FLOAT)]),
    }
    nodes = [
        node("Neg", ["x"], ["h"]),
        node("Shape", ["h"], ["shape"]),
        node("Gather", ["shape", "zero"], ["rows"]),
        node("Less", ["rows", "five"], ["few"]),
        node("If", ["few"], ["y"], **outer),
    ]
    check(model(nodes, {"x": (2, 3)}, ["y"], {"zero": np.array(0), "five": np.array(5)}))


def test_a_condition_on_the_input_is_refused() -> None:
    nodes = [
        node("Identity", ["x"], ["h"]),
        node("ReduceMax", ["x"], ["largest"], keepdims=0),
        node("Greater", ["largest", "zero"], ["condition"]),
        node("If", ["condition"], ["y"], **branches()),
    ]
    with pytest.raises(UnsupportedModel, match="its condition depends on the private input"):
        import_model(model(nodes, {"x": (2, 3)}, ["y"], {"zero": np.float32(0)}), name="m")


def loop(condition: str = "going") -> onnx.GraphProto:
    """Adds the step's number and what is outside, and gives each step's sum, too."""
    nodes = [
        node("Cast", ["step"], ["number"], to=FLOAT),
        node("Add", ["sum", "number"], ["more"]),
        node("Add", ["more", "h"], ["sum_out"]),
        node("Less", ["step", "two"], ["few"]),
        node("Identity", ["going"], ["same"]),
        node("Identity", ["sum_out"], ["part"]),
    ]
    for index, operator in enumerate(nodes):
        operator.name = f"step_{index}"
    inputs = [("step", INT64), ("going", BOOL), ("sum", FLOAT)]
    outputs = [({"going": "same"}.get(condition, condition), BOOL), ("sum_out", FLOAT)]
    return body(nodes, [*outputs, ("part", FLOAT)], inputs, {"two": np.array(2)})


@pytest.mark.parametrize("condition", ["going", "few"])
def test_a_loop_is_unrolled(condition: str) -> None:
    nodes = [
        node("Relu", ["x"], ["h"]),
        node("Loop", ["times", "on", "x"], ["sum", "parts"], body=loop(condition)),
    ]
    constants = {"times": np.array(5), "on": np.array(True)}
    check(model(nodes, {"x": (2, 3)}, ["sum", "parts"], constants))


def test_a_loop_without_an_end_is_refused() -> None:
    nodes = [
        node("Relu", ["x"], ["h"]),
        node("Loop", ["", "on", "x"], ["sum", "parts"], body=loop()),
    ]
    with pytest.raises(UnsupportedModel, match="nodes"):
        import_model(model(nodes, {"x": (2,)}, ["sum"], {"on": np.array(True)}), name="m")


def test_sequences_of_constants_and_private_tensors() -> None:
    nodes = [
        node("SplitToSequence", ["x"], ["parts"], axis=1, keepdims=0),
        node("SequenceErase", ["parts", "last"], ["fewer"]),
        node("SequenceInsert", ["fewer", "c", "zero"], ["more"]),
        node("Identity", ["more"], ["same"]),
        node("ConcatFromSequence", ["same"], ["y"], axis=1, new_axis=1),
    ]
    constants = {"c": constant(2), "last": np.array(-1), "zero": np.array(0)}
    check(model(nodes, {"x": (2, 3)}, ["y"], constants))


def test_a_sequence_as_an_output_is_refused() -> None:
    proto = model([node("SequenceConstruct", ["x", "x"], ["y"])], {"x": (2,)}, ["y"])
    with pytest.raises(UnsupportedModel, match="sequence of tensors"):
        import_model(proto, name="m")


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_scan_is_unrolled(axis: int, reverse: int) -> None:
    """Distances of a private row to constant ones, with a state, as exporters of kernels write."""
    step = body(
        [
            node("Sub", ["state", "row"], ["apart"]),
            node("ReduceSumSquare", ["apart", "last"], ["distance"], keepdims=0),
            node("Add", ["state", "row"], ["next"]),
        ],
        [("next", FLOAT), ("distance", FLOAT)],
        [("state", FLOAT), ("row", FLOAT)],
        {"last": np.array([1])},
    )
    for entry in step.input:
        entry.type.tensor_type.ClearField("shape")
    attributes: dict[str, Any] = {"num_scan_inputs": 1, "scan_input_directions": [reverse]}
    attributes |= {"scan_output_directions": [reverse], "scan_output_axes": [axis]}
    nodes = [node("Scan", ["x", "rows"], ["end", "y"], body=step, **attributes)]
    check(model(nodes, {"x": (2, 3)}, ["y"], {"rows": constant(4, 3)}))


@pytest.mark.parametrize(
    ("shapes", "axes", "reason"),
    [
        ([(9000, 1)], [0], "more than 8192 nodes"),
        ([(3, 2), (2, 2)], [0, 0], "tensors of different lengths"),
        ([(3, 2)], [2], "an axis that there is not"),
        ([()], [0], "how often it runs depends"),
    ],
)
def test_a_scan_of_too_many_slices_or_none_is_refused(
    shapes: list[tuple[int, ...]], axes: list[int], reason: str
) -> None:
    """Also where its body has hardly a node."""
    rows = {f"rows{index}": np.ones(shape, np.float32) for index, shape in enumerate(shapes)}
    slices = [(f"row{index}", FLOAT) for index in range(len(shapes))]
    step = body([], [("state", FLOAT)], [("state", FLOAT), *slices])
    attributes: dict[str, Any] = {"num_scan_inputs": len(shapes), "scan_input_axes": axes}
    nodes = [node("Scan", ["x", *rows], ["y"], body=step, **attributes)]
    with pytest.raises(UnsupportedModel, match=reason):
        import_model(model(nodes, {"x": (2, 3)}, ["y"], rows), name="m")


def test_a_loop_in_a_loop_is_refused_before_both_are_unrolled() -> None:
    entries = [("step", INT64), ("going", BOOL), ("inner", FLOAT)]
    nodes = [node("Relu", ["inner"], ["next"]), node("Identity", ["going"], ["goes"])]
    inner = body(nodes, [("goes", BOOL), ("next", FLOAT)], entries)
    nodes = [node("Loop", ["times", "", "outer"], ["all"], body=inner)]
    nodes.append(node("Identity", ["going"], ["on"]))
    entries = [("round", INT64), ("going", BOOL), ("outer", FLOAT)]
    outer = body(nodes, [("on", BOOL), ("all", FLOAT)], entries)
    nodes = [node("Loop", ["times", "", "x"], ["y"], body=outer)]
    proto = model(nodes, {"x": (2, 3)}, ["y"], {"times": np.array(10**6)})
    with pytest.raises(UnsupportedModel, match="with what is inside"):
        import_model(proto, name="m")
