"""Rows of constant tables at private places: the client gives zeros and ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import BITS, SCALE, Array, constant, expected, node

import privet
from privet.compiler.compile import compile
from privet.compiler.executor import encode_input, execute
from privet.compiler.program import Program
from privet.errors import InputError, InvalidProgram, UnsupportedModel

IDS = np.array([[3, 0, 4, 4]])


def embedding(
    nodes: list[onnx.NodeProto], tables: Mapping[str, Array], *shape: int, type: str = "INT64"
) -> onnx.ModelProto:
    """A model from `ids` to `y`."""
    tensors = onnx.TensorProto
    entry = onnx.helper.make_tensor_value_info("ids", getattr(tensors, type), shape or (1, 4))
    graph = onnx.helper.make_graph(
        nodes,
        "test",
        [entry],
        [onnx.helper.make_tensor_value_info("y", tensors.FLOAT, None)],
        [onnx.numpy_helper.from_array(array, name) for name, array in tables.items()],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    model.ir_version = 8
    return onnx.shape_inference.infer_shapes(model)


def small() -> onnx.ModelProto:
    """An embedding, positions and a layer."""
    tables = {"table": constant(5, 3), "places": constant(4, 3), "w": constant(3, 2)}
    nodes = [
        node("Gather", ["table", "ids"], ["rows"]),
        node("Add", ["rows", "places"], ["x"]),
        node("Relu", ["x"], ["r"]),
        node("MatMul", ["r", "w"], ["y"]),
    ]
    return embedding(nodes, tables)


@pytest.mark.parametrize("shape", [(1, 4), (4,), (2, 2)])
@pytest.mark.parametrize("width", [(3,), (2, 3), ()])
def test_rows_are_those_of_onnx_runtime(shape: tuple[int, ...], width: tuple[int, ...]) -> None:
    proto = embedding(
        [node("Gather", ["table", "ids"], ["y"])], {"table": constant(5, *width)}, *shape
    )
    inputs = {"ids": IDS.reshape(shape)}
    compiled = compile(proto, bits=BITS, scale=SCALE, calibration=[inputs])
    (output,) = execute(compiled.program, compiled.weights, inputs).outputs.values()
    np.testing.assert_allclose(output, expected(proto, inputs)[0], rtol=0, atol=2.0**-SCALE)


@pytest.mark.parametrize(
    ("type", "rows", "holds"),
    [
        *(("INT8", 128, True), ("INT8", 129, False), ("UINT8", 256, True), ("UINT8", 257, False)),
        *(("FLOAT16", 2049, True), ("BOOL", 2, True), ("BOOL", 3, False), ("STRING", 5, False)),
    ],
)
def test_places_are_cast_only_to_a_type_that_holds_them(type: str, rows: int, holds: bool) -> None:
    proto = embedding(
        [
            node("Cast", ["ids"], ["cast"], to=getattr(onnx.TensorProto, type)),
            node("Cast", ["cast"], ["places"], to=onnx.TensorProto.INT64),
            node("Gather", ["table", "places"], ["y"]),
        ],
        {"table": constant(rows, 2)},
    )
    inputs = {"ids": np.array([[rows - 1, 0, 1, rows - 2]])}
    if not holds:
        with pytest.raises(UnsupportedModel, match=f"table of {rows} rows .* does not hold"):
            compile(proto, bits=BITS, scale=SCALE, calibration=[inputs])
        return
    compiled = compile(proto, bits=BITS, scale=SCALE, calibration=[inputs])
    (output,) = execute(compiled.program, compiled.weights, inputs).outputs.values()
    np.testing.assert_allclose(output, expected(proto, inputs)[0], rtol=0, atol=2.0**-SCALE)


@pytest.mark.parametrize("step", ["Cast", "Identity", "Reshape"])
@pytest.mark.parametrize("last", ["Softmax", "ArgMax"])
@pytest.mark.parametrize("reveal", ["outputs", "scores"])
def test_a_table_that_ids_choose_from_is_never_published(step: str, last: str, reveal: str) -> None:
    """Whatever stands in between, and whatever the client computes behind it."""
    tables: dict[str, Array] = {"table": constant(5, 3)}
    if step == "Reshape":
        tables["shape"] = np.array([1, 4])
    proto = embedding(
        [
            node(step, ["ids", *(["shape"] if step == "Reshape" else [])], ["places"])
            if step != "Cast"
            else node("Cast", ["ids"], ["places"], to=onnx.TensorProto.INT32),
            node("Gather", ["table", "places"], ["rows"]),
            node(last, ["rows"], ["made"]),
            node("Cast", ["made"], ["y"], to=onnx.TensorProto.FLOAT),
        ],
        tables,
    )
    program = compile(proto, calibration=[{"ids": IDS}], reveal=reveal).program
    assert program.inputs[0].one_hot
    assert program.head is None or "table" not in program.head.constants


def test_tables_of_one_length_share_the_input() -> None:
    tables = {"a": constant(5, 3), "b": constant(5, 3, seed=2)}
    nodes = [
        node("Gather", ["a", "ids"], ["u"]),
        node("Gather", ["b", "ids"], ["v"]),
        node("Add", ["u", "v"], ["y"]),
    ]
    compiled = compile(embedding(nodes, tables, type="INT32"))
    (entry,) = compiled.program.inputs
    assert entry.one_hot
    assert compiled.program.values[entry.value] == type(compiled.program.values[0])((1, 4, 5), 0)
    assert compiled.program.input_shape(entry) == (1, 4)
    assert Program.from_public_bytes(compiled.program.to_public_bytes()) == compiled.program


def test_places_are_counted_without_padding() -> None:
    """As RoBERTa has them: each token that is no padding is one further on."""
    tables: dict[str, Array] = {
        "table": constant(5, 3),
        "places": constant(7, 3, seed=2),
        "pad": np.array(4),
        "axis": np.array(1),
        "kinds": np.zeros((1, 7), np.int64),
        "types": constant(1, 3),
    }
    nodes = [
        node("Gather", ["table", "ids"], ["rows"]),
        node("Equal", ["ids", "pad"], ["is_pad"]),
        node("Not", ["is_pad"], ["is_token"]),
        node("Cast", ["is_token"], ["mask"], to=onnx.TensorProto.INT32),
        node("CumSum", ["mask", "axis"], ["count"]),
        node("Mul", ["count", "mask"], ["few"]),
        node("Cast", ["few"], ["wide"], to=onnx.TensorProto.INT64),
        node("Add", ["wide", "axis"], ["at"]),
        node("Gather", ["places", "at"], ["place"]),
        node("GatherElements", ["kinds", "at"], ["kind"], axis=1),
        node("Gather", ["types", "kind"], ["type"]),
        node("Sum", ["rows", "place", "type"], ["y"]),
    ]
    proto, ids = embedding(nodes, tables), {"ids": IDS}
    compiled = compile(proto, bits=BITS, scale=SCALE)
    assert compiled.program.inputs[0].one_hot
    (output,) = execute(compiled.program, compiled.weights, ids).outputs.values()
    np.testing.assert_allclose(output, expected(proto, ids)[0], rtol=0, atol=2e-3)


@pytest.mark.parametrize("axis", [0, 1])
def test_elements_of_like_rows_of_a_constant(axis: int) -> None:
    rows = np.moveaxis(np.tile(constant(5), (4, 1)), 1, axis)
    proto = embedding(
        [node("GatherElements", ["rows", "ids"], ["y"], axis=axis)], {"rows": rows}, 1, 4
    )
    inputs = {"ids": IDS}
    compiled = compile(proto, bits=BITS, scale=SCALE, calibration=[inputs])
    (output,) = execute(compiled.program, compiled.weights, inputs).outputs.values()
    np.testing.assert_allclose(output, expected(proto, inputs)[0], rtol=0, atol=2.0**-SCALE)
    other = embedding(list(proto.graph.node), {"rows": constant(*rows.shape)})
    with pytest.raises(UnsupportedModel, match="rows of a constant that are not alike"):
        compile(other)


def test_other_readers_read_tokens_as_numbers() -> None:
    tables = {"table": constant(5, 3), "one": np.array([[[1.0]]], np.float32)}
    nodes = [
        node("Gather", ["table", "ids"], ["rows"]),
        node("Cast", ["ids"], ["f"], to=onnx.TensorProto.FLOAT),
        node("Mul", ["f", "one"], ["m"]),
        node("Add", ["rows", "m"], ["y"]),
    ]
    proto, ids = embedding(nodes, tables, 1, 1), {"ids": IDS[:, :1]}
    compiled = compile(proto, calibration=[ids])
    assert compiled.program.inputs[0].one_hot
    (output,) = execute(compiled.program, compiled.weights, ids).outputs.values()
    np.testing.assert_allclose(output, expected(proto, ids)[0], rtol=0, atol=2e-3)


def test_numbers_beside_a_part_that_is_looked_up_are_not_bounded_by_its_table() -> None:
    nodes = [
        node("Gather", ["ids", "first"], ["kind"], axis=1),
        node("Gather", ["table", "kind"], ["rows"]),
        node("Slice", ["ids", "from", "to", "axes"], ["rest"]),
        node("Cast", ["rest"], ["numbers"], to=onnx.TensorProto.FLOAT),
        node("MatMul", ["numbers", "w"], ["seen"]),
        node("Add", ["rows", "seen"], ["y"]),
    ]
    tables = {"table": constant(5, 3), "w": constant(3, 3), "first": np.array(0)}
    tables |= {"from": np.array([1]), "to": np.array([4]), "axes": np.array([1])}
    proto, inputs = embedding(nodes, tables), {"ids": np.array([[2, 80, 1, 60]])}
    compiled = compile(proto, bits=BITS, scale=SCALE, calibration=[inputs])
    (output,) = execute(compiled.program, compiled.weights, inputs).outputs.values()
    np.testing.assert_allclose(output, expected(proto, inputs)[0], rtol=0, atol=0.01)


@pytest.mark.parametrize("wrong", [5, -1, 0.5])
def test_tokens_beyond_the_table_are_refused(wrong: float) -> None:
    program = compile(small()).program
    with pytest.raises(InputError, match="ids takes whole numbers from 0 to 4"):
        encode_input(program, [np.where(IDS == 3, wrong, IDS)])
    with pytest.raises(InputError, match=r"shape \[1, 3\], not \[1, 4\]"):
        encode_input(program, [IDS[:, :3]])


@pytest.mark.parametrize(
    "suite",
    [
        privet.Fss(security="malicious"),
        *(
            pytest.param(suite, marks=pytest.mark.slow)
            for suite in (
                privet.Gmw(),
                privet.Gmw(correlations="dealer"),
                privet.Fss(),
                privet.Stream(),
            )
        ),
    ],
)
def test_suites_look_up_what_the_executor_does(suite: privet.Suite) -> None:
    result = privet.run(small(), {"ids": IDS}, suite=suite)
    assert result.max_fixed_point_error <= 2
    (reference,) = expected(small(), {"ids": IDS})
    assert np.abs(np.asarray(result.outputs["y"], np.float64) - reference).max() < 2.0**-8


def test_suite_ckks_refuses_tokens() -> None:
    with pytest.raises(UnsupportedModel, match="ids"):
        privet.run(small(), suite=privet.Ckks())


def test_a_client_that_does_not_know_tokens_refuses_the_program() -> None:
    public = compile(small()).program.to_public_bytes()
    assert b'"one_hot":true' in public
    with pytest.raises(InvalidProgram, match="canonical"):
        Program.from_public_bytes(public.replace(b'"one_hot":true', b'"two_hot":true'))


@pytest.mark.parametrize("picks", ["Gather", "Slice", "Split", "Transpose"])
def test_columns_are_rows_of_tables_of_their_own(picks: str) -> None:
    """Categories of a table of data, one column each; a shorter table has no rows beyond."""
    tables: dict[str, Array] = {"a": constant(5, 3), "b": constant(3, 3, seed=2)}
    tables |= {name: np.array([k]) for k, name in enumerate(("zero", "one", "two"))}
    columns = {
        "Gather": [
            node("Gather", ["ids", "zero"], ["u"], axis=1),
            node("Gather", ["ids", "one"], ["v"], axis=-1),
        ],
        "Slice": [
            node("Slice", ["ids", "zero", "one", "one"], ["u"]),
            node("Slice", ["ids", "one", "two", "one"], ["v"]),
        ],
        "Split": [node("Split", ["ids"], ["u", "v"], axis=1)],
        "Transpose": [
            node("Transpose", ["ids"], ["t"], perm=[1, 0]),
            node("Gather", ["t", "zero"], ["u"]),
            node("Gather", ["t", "one"], ["v"]),
        ],
    }[picks]
    nodes = [
        *columns,
        node("Gather", ["a", "u"], ["e"]),
        node("Gather", ["b", "v"], ["f"]),
        node("Add", ["e", "f"], ["y"]),
    ]
    proto = embedding(nodes, tables, 2, 2)
    inputs = {"ids": np.array([[4, 2], [1, 0]])}
    if picks == "Transpose":
        inputs = {"ids": np.array([[4, 1], [2, 0]]).T}
    compiled = compile(proto, bits=BITS, scale=SCALE, calibration=[inputs])
    assert compiled.program.inputs[0].one_hot
    (output,) = execute(compiled.program, compiled.weights, inputs).outputs.values()
    np.testing.assert_allclose(output, expected(proto, inputs)[0], rtol=0, atol=2.0**-SCALE)
