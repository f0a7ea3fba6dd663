"""Files that are broken or hostile: each is refused with what, where and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from scripts.audit.models import mutants, problems
from tests.python.compiler.graph.single import check, constant, expected, model, node, single

import privet
from privet.compiler.compile import compile
from privet.compiler.graph import registry
from privet.errors import InvalidModel, ModelError, OverflowRisk, UnsupportedModel

IMAGE = (1, 1, 6, 6)
TYPES = onnx.TensorProto


def _typed(kind: int, constant_kind: int | None = None) -> onnx.ModelProto:
    proto = single("Add", [(2, 3), constant(2, 3)])
    proto.graph.input[0].type.tensor_type.elem_type = kind
    if constant_kind is not None:
        proto.graph.initializer[0].data_type = constant_kind
    return proto


def _window(op: str, **attributes: Any) -> onnx.ModelProto:
    """A node that slides a window, whose attributes ONNX's own inference does not see."""
    fields: dict[str, Any] = {"kernel_shape": [2, 2]}
    operands = [IMAGE, constant(1, 1, 2, 2)] if op == "Conv" else [IMAGE]
    proto = single(op, operands, **fields)
    for name, value in attributes.items():
        for attribute in [entry for entry in proto.graph.node[0].attribute if entry.name == name]:
            proto.graph.node[0].attribute.remove(attribute)
        proto.graph.node[0].attribute.append(onnx.helper.make_attribute(name, value))
    return proto


def _huge(op: str, inputs: list[str]) -> onnx.ModelProto:
    constants: dict[str, Any] = {
        "one": np.ones(1, np.float32),
        "zero": np.float32(0),
        "n": np.float32(1e9),
    }
    constants |= {"shape": np.array([10**9]), "step": np.float32(1)}
    nodes = [node(op, inputs, ["big"]), node("ReduceSum", ["big"], ["sum"])]
    return model([*nodes, node("Add", ["x", "sum"], ["y"])], {"x": (1,)}, ["y"], constants)


def _text(text: bytes) -> onnx.ModelProto:
    proto = single("Pad", [(2, 3), np.array([0, 1, 0, 1])], mode="edge")
    proto.graph.node[0].attribute[0].s = text
    return proto


def _equation(equation: str, *shapes: tuple[int, ...]) -> onnx.ModelProto:
    proto = single("Einsum", list(shapes), equation="...,..." if shapes[1:] else "...")
    proto.graph.node[0].attribute[0].s = equation.encode()
    return proto


def _named(name: bytes) -> bytes:
    proto = single("Relu", [(1, 2)])
    proto.graph.name = "n" * len(name)
    return bytes(proto.SerializeToString()).replace(proto.graph.name.encode(), name)


def _tensor_bytes() -> onnx.ModelProto:
    proto = single("Add", [(2, 3), constant(2, 3)])
    proto.graph.initializer[0].data_type = TYPES.INT64
    return proto


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: _typed(77), r"x0 \(graph input\): its type is of number 77"),
        (lambda: _typed(TYPES.STRING), r"its type is string, and only numbers can be private"),
        (lambda: _typed(TYPES.FLOAT, 77), r"constant 'x1' has a data type 77"),
        (_tensor_bytes, r"x1.* raw_data size"),
        (lambda: _window("Conv", strides=[0, 1]), r"the_conv \(Conv\): strides \[0, 1\]"),
        (lambda: _window("MaxPool", strides=[1, -1]), r"strides \[1, -1\] over 2 axes"),
        (lambda: _window("Conv", dilations=[0, 1]), r"dilations \[0, 1\]"),
        (lambda: _window("AveragePool", kernel_shape=[0, 2]), r"kernel \[0, 2\]"),
        (
            lambda: single("Relu", [(2, 0)]),
            r"input 'x0' has shape \[2, 0\], with an axis that holds",
        ),
        (lambda: single("Relu", [(0, 2)]), r"input 'x0' has shape \[0, 2\]"),
        (lambda: single("Relu", [(1 << 40, 2)]), r"x0 \(graph input\): it has 2199023255552 elem"),
        (
            lambda: _named(b"named\xff\xfe"),
            r"the name b'named.* is no UTF-8|not a valid ONNX model",
        ),
        (lambda: _text(b"\xff"), r"the_pad: attribute 'mode' is no UTF-8"),
        (lambda: _equation("i...j...->ij", (2, 3)), r"the_einsum: 'i\.\.\.j\.\.\.->ij' is no eq"),
        (lambda: _equation("kji,......->", (3, 3, 3), (2,)), r"the_einsum: .* is no equation"),
        (lambda: _equation("i..j->ij", (2, 3)), r"the_einsum: .* is no equation"),
        (
            lambda: _equation("...jk,...ij->...ik", (2, 3, 4), (3, 5, 2, 3)),
            r"the_einsum \(Einsum\): its equation is '\.\.\.jk,",
        ),
        (lambda: single("Expand", [(1,), np.array([10**8])]), r"has 100000000 elements, more than"),
        (lambda: _huge("Expand", ["one", "shape"]), r"the_expand .* has more than"),
        (lambda: _huge("ConstantOfShape", ["shape"]), r"the_constantofshape .* has more than"),
        (lambda: _huge("Tile", ["one", "shape"]), r"the_tile .* has more than"),
        (lambda: _huge("Range", ["zero", "n", "step"]), r"the_range .* has more than"),
    ],
)
def test_a_bad_file_is_refused_by_name(make: Callable[[], onnx.ModelProto], problem: str) -> None:
    with pytest.raises(ModelError, match=problem):
        compile(make())


def test_a_window_whose_average_has_no_room_is_said() -> None:
    with pytest.raises(OverflowRisk, match=r"the_averagepool \(AvgPool2d\).*bits at scale"):
        compile(
            single("AveragePool", [(1, 1, 300, 300)], kernel_shape=[300, 300]), bits=30, scale=12
        )


@pytest.mark.parametrize("spread", [1e-6, 1e-5])
def test_weights_below_the_scale_are_said(spread: float) -> None:
    with pytest.raises(OverflowRisk, match=r"all zero at scale .*larger --scale"):
        compile(single("MatMul", [(1, 4), constant(4, 3, spread=spread)]), scale=12)


def test_outputs_below_the_scale_are_said() -> None:
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("MatMul", ["a", "v"], ["y"])]
    weights = {"w": constant(4, 4, spread=3e-4), "v": constant(4, 2, seed=2, spread=3e-4)}
    proto = model(nodes, {"x": (1, 4)}, ["y"], weights)
    with pytest.raises(OverflowRisk, match=r"output y: .* all zero at scale"):
        compile(proto, input_range=(-1e-3, 1e-3))


@pytest.mark.parametrize("places", [np.array([0, 5]), np.array([[0, 0], [1, 2]])])
def test_sparse_initialisers_are_constants(places: Any) -> None:
    proto = single("MatMul", [(1, 4), constant(4, 3)])
    values = onnx.helper.make_tensor("x1", TYPES.FLOAT, [2], [1.0, 2.0])
    indices = onnx.numpy_helper.from_array(places, "places")
    del proto.graph.initializer[:]
    proto.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, indices, [4, 3]))
    x = constant(1, 4, seed=5)
    weights = np.zeros((4, 3))
    weights[[0, 1], [0, 2]] = [1.0, 2.0]
    check(proto, {"x0": x}, wanted=[x @ weights])
    proto.graph.sparse_initializer[0].dims[0] = 1
    with pytest.raises(InvalidModel, match=r"sparse initialiser x1|is not a valid ONNX model"):
        compile(proto)


def test_nodes_in_any_order_run_and_a_circle_is_refused() -> None:
    """ONNX Runtime runs such files, which converters to half precision write; also over bodies."""
    constants = {"c": np.array(2, np.float32), "true": np.array(True)}
    body = onnx.helper.make_graph(
        [node("Mul", ["a", "a"], ["r"])],
        "body",
        [],
        [onnx.helper.make_tensor_value_info("r", TYPES.FLOAT, (2, 3))],
    )
    nodes = [
        node("Relu", ["b"], ["y"]),
        node("If", ["true"], ["b"], then_branch=body, else_branch=body),
        node("Add", ["x", "c"], ["a"]),
    ]
    proto = model(nodes, {"x": (2, 3)}, ["y"], constants)
    check(proto, units=64)
    proto.graph.node[2].input[1] = "y"
    with pytest.raises(InvalidModel, match="topologically sorted"):
        compile(proto)


@pytest.mark.parametrize("kind", [TYPES.FLOAT16, TYPES.BFLOAT16, TYPES.DOUBLE])
def test_other_precisions_run(kind: int) -> None:
    wide = single("MatMul", [(1, 4), constant(4, 3)])
    proto = single("MatMul", [(1, 4), constant(4, 3)])
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    weights = onnx.numpy_helper.to_array(proto.graph.initializer[0]).astype(dtype)
    proto.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weights, "x1"))
    for entry in (proto.graph.input[0], proto.graph.output[0]):
        entry.type.tensor_type.elem_type = kind
    x = {"x0": constant(1, 4, seed=5)}
    check(proto, x, wanted=expected(wide, x), units=200)


@pytest.mark.parametrize("kind", [TYPES.INT64, TYPES.UINT8, TYPES.INT32, TYPES.BOOL])
def test_whole_numbers_may_be_private(kind: int) -> None:
    nodes = [node("Cast", ["x"], ["f"], to=TYPES.FLOAT), node("MatMul", ["f", "w"], ["y"])]
    proto = model(nodes, {"x": (1, 4)}, ["y"], {"w": constant(4, 3)})
    proto.graph.input[0].type.tensor_type.elem_type = kind
    x = np.array([[1, 0, 1, 1]], onnx.helper.tensor_dtype_to_np_dtype(kind))
    check(proto, {"x": x})


def test_parties_run_whole_numbers() -> None:
    proto = single("Cast", [(1, 4)], to=TYPES.FLOAT)
    proto.graph.input[0].type.tensor_type.elem_type = TYPES.INT64
    assert privet.run(proto, suite="fss").max_abs_error == 0


@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_files_are_compiled_or_refused(seed: int) -> None:
    assert not list(problems(seed, 150))


def test_the_fuzzer_finds_an_importer_that_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(_site: Any) -> Any:
        raise KeyError(77)

    registry.supported_operators()
    monkeypatch.setitem(registry._IMPORTERS, "Gemm", wrong)
    assert any("KeyError: 77" in problem for problem in problems(3, 20))
    assert len({data for _, data in mutants(3, 20)}) > 10


def test_nothing_of_a_refusal_is_left_out() -> None:
    nodes = [node("Det", ["x"], ["a"]), node("Acos", ["x"], ["b"]), node("Asin", ["b"], ["c"])]
    with pytest.raises(UnsupportedModel) as excinfo:
        compile(model(nodes, {"x": (2, 2)}, ["a", "c"]))
    assert [problem.operator for problem in excinfo.value.problems] == ["Det", "Acos", "Asin"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.onnx", "no model"),
        ("program.json", '{"format":"privet-program"}'),
        ("m.json", "{"),
        ("m.textproto", "no model"),
        pytest.param(
            "m.onnxtxt", "no model", marks=pytest.mark.filterwarnings("ignore:The onnxtxt format")
        ),
    ],
)
def test_files_of_every_form_that_are_no_models(tmp_path: Path, name: str, text: str) -> None:
    """The public half of a program, for one, was read as a model in JSON and raised from within."""
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InvalidModel, match=rf"{name} is not a valid ONNX model: .+$"):
        compile(path)


@pytest.mark.parametrize("source", [object(), None, {"weights": []}, [1]], ids=type)
def test_what_is_no_model_is_told_how_to_export_one(source: Any) -> None:
    with pytest.raises(
        InvalidModel, match=f"the model is a {type(source).__name__}: give the path"
    ):
        privet.compile(source)


def test_halves_in_the_body_of_a_loop() -> None:
    """They are read as single precision there, too, also by ONNX Runtime."""
    helper, half = onnx.helper, TYPES.FLOAT16
    factor = onnx.numpy_helper.from_array(np.array(0.5, np.float16), "factor")
    body = helper.make_graph(
        [node("Mul", ["a", "factor"], ["b"]), node("Identity", ["go"], ["on"])],
        "body",
        [
            helper.make_tensor_value_info("step", TYPES.INT64, []),
            helper.make_tensor_value_info("go", TYPES.BOOL, []),
            helper.make_tensor_value_info("a", half, None),
        ],
        [
            helper.make_tensor_value_info("on", TYPES.BOOL, []),
            helper.make_tensor_value_info("b", half, None),
        ],
        [factor],
    )
    proto = model([node("Loop", ["n", "", "x"], ["y"], body=body)], {"x": (1, 4)}, ["y"])
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array(3), "n"))
    for entry in (*proto.graph.input, *proto.graph.output):
        entry.type.tensor_type.elem_type = half
    run = privet.run(proto, np.array([[1, 2, -3, 4]], np.float16), suite="fss")
    assert run.outputs["y"].tolist() == [[0.125, 0.25, -0.375, 0.5]]
    assert run.agrees
