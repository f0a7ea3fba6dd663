"""Between reals and integers: what a client needs, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import expected, model, node, single

from privet.compiler.compile import compile
from privet.compiler.executor import decode_output, encode_input, execute
from privet.compiler.executor.codec import describe_outputs
from privet.compiler.program import Program
from privet.errors import InputError, InvalidModel, InvalidProgram, Misuse


@pytest.fixture(scope="module")
def program() -> Program:
    proto = single("Add", [(1, 3), (1, 3)])
    sample = {"x0": np.full((1, 3), 3.0), "x1": np.full((1, 3), 3.0)}
    return compile(proto, calibration=[sample]).program


ONES = np.ones((1, 3))


def test_encoding_rounds_to_nearest(program: Program) -> None:
    reals = np.array([[0.4, 0.6, -0.6]]) / 4096
    arrays = encode_input(program, {"x1": ONES, "x0": reals})
    assert [array.tolist() for array in arrays] == [[[0, 1, -1]], [[4096] * 3]]
    assert arrays[0].dtype == np.int64


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int32, np.uint8])
def test_number_types(program: Program, kind: Any) -> None:
    arrays = encode_input(program, [ONES.astype(kind), ONES])
    np.testing.assert_array_equal(arrays[0], arrays[1])


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([ONES], "1 array given, the model has 2 inputs"),
        ({"x0": ONES}, "missing: x1"),
        ({"x0": ONES, "x1": ONES, "z": ONES}, "unknown: z"),
        ([ONES, np.ones(3)], r"x1 has shape \[3\], not \[1, 3\]: give it the axis of samples"),
        ([ONES, np.ones((4, 3))], r"\[4, 3\], not \[1, 3\]: .* batch=N"),
        ([ONES, np.ones((1, 4))], r"\[1, 4\], not \[1, 3\]$"),
        (np.ones((2, 1, 3)), "one array given, the model has 2 inputs, x0, x1: give a list"),
        ("x0.npy", "a path is no input"),
        ([ONES, ONES.astype(str)], "input x1 has type"),
        ([ONES, ONES.astype(complex)], "input x1 has type"),
        ([ONES * np.nan, ONES], "input x0 holds NaN"),
        ([ONES * np.inf, ONES], "input x0 holds NaN or infinity"),
        ([ONES * 6.1, ONES], "x0 reaches 6.1, and the program was compiled for magnitudes up to 6"),
    ],
)
def test_unfit_inputs(program: Program, inputs: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        encode_input(program, inputs)


def test_the_only_input_needs_no_list() -> None:
    program = compile(single("Relu", [(1, 3)])).program
    (from_list,), (alone,) = encode_input(program, [ONES]), encode_input(program, ONES)
    np.testing.assert_array_equal(from_list, alone)
    with pytest.raises(InputError, match=r"has shape \[3\], not \[1, 3\]"):
        encode_input(program, ONES[0])


@pytest.mark.parametrize(
    ("nodes", "kinds"),
    [
        ([node("ArgMax", ["x"], ["y"], axis=1)], {"y": np.int64}),
        ([node("TopK", ["x", "k"], ["y", "z"], axis=1)], {"y": np.float64, "z": np.int64}),
        ([node("Greater", ["x", "c"], ["y"])], {"y": np.bool_}),
        (
            [node("ArgMax", ["x"], ["a"], axis=1), node("Cast", ["a"], ["y"], to=1)],
            {"y": np.float64},
        ),
    ],
    ids=["ArgMax", "TopK", "Greater", "a place as a real"],
)
def test_outputs_have_the_kinds_of_the_model(nodes: Any, kinds: dict[str, Any]) -> None:
    """Places and truths came as float64, and a service described places of TopK as reals."""
    constants: dict[str, Any] = {"k": np.array([2]), "c": np.zeros((1, 4), np.float32)}
    proto = model(nodes, {"x": (1, 4)}, list(kinds), constants)
    compiled = compile(proto, input_range=(-1, 1))
    program = Program.from_public_bytes(compiled.program.to_public_bytes())
    x = np.array([[0.25, -0.5, 0.75, 0.5]], np.float32)
    outputs = execute(program, compiled.weights, {"x": x}).outputs
    assert {name: array.dtype for name, array in outputs.items()} == kinds
    descriptions = {output.name: output.kind for output in describe_outputs(program)}
    names = {np.int64: "integer", np.float64: "real", np.bool_: "boolean"}
    assert descriptions == {name: names[kind] for name, kind in kinds.items()}
    references = dict(zip(kinds, expected(proto, {"x": x}), strict=True))
    for name, array in outputs.items():
        np.testing.assert_allclose(array, references[name], atol=1e-3)
    # Programs that were compiled before kinds were told say none, and their places are such.
    if "y" in kinds and kinds["y"] is np.int64:
        assert b'"kind"' not in compiled.program.to_public_bytes()


@pytest.mark.parametrize("row", [[3, 4, 4, 4, 4, 4], [-3, -4, -4, -4, -4, -4], [4] * 6, [-1] * 6])
def test_a_mean_of_whole_numbers_is_cut_off(row: list[int]) -> None:
    nodes = [node("ReduceMean", ["x", "axes"], ["y"])]
    proto = model(nodes, {"x": (1, 6)}, ["y"], {"axes": np.array([1])})
    for entry in (proto.graph.input[0], proto.graph.output[0]):
        entry.type.tensor_type.elem_type = onnx.TensorProto.INT64
    compiled = compile(proto, input_range=(-9, 9))
    x = np.array([row], np.int64)
    output = execute(compiled.program, compiled.weights, {"x": x}).outputs["y"]
    np.testing.assert_array_equal(output, expected(proto, {"x": x})[0])
    assert output.dtype == np.int64


def test_a_kind_that_is_none_is_refused(program: Program) -> None:
    odd = tuple(replace(output, kind="complex") for output in program.outputs)
    with pytest.raises(InvalidProgram, match="a kind 'complex'"):
        Program.from_public_bytes(replace(program, outputs=odd).to_public_bytes())


def test_decoding_checks_shapes(program: Program) -> None:
    with pytest.raises(InputError, match="outputs given"):
        decode_output(program, [])
    with pytest.raises(InputError, match="output y0"):
        decode_output(program, [np.zeros((3, 1), np.int64)])


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (ONES, "maps their names to arrays"),
        ({"x0": ONES}, "names"),
        ({"x0": ONES, "x1": np.ones(4)}, r"of x1 has a sample of shape \[4\], not \[1, 3\]"),
        ({"x0": ONES, "x1": ONES * np.nan}, "finite numbers"),
    ],
)
def test_unfit_calibration(sample: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compile(single("Add", [(1, 3), (1, 3)]), calibration=[sample])


@pytest.mark.parametrize(
    ("calibration", "message"),
    [
        ([], "empty"),
        (np.zeros((0, 3)), "empty"),
        ("samples.npy", "samples, not a path"),
        ({"x0": np.ones((2, 3)), "z": np.ones((3, 3))}, "different numbers of samples"),
    ],
)
def test_calibration_that_is_no_samples_is_refused(calibration: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compile(single("Relu", [(1, 3)]), calibration=calibration)


@pytest.mark.parametrize("client_side", [False, True])
def test_calibration_lies_along_the_first_axis(client_side: bool) -> None:
    proto = single("Add", [(1, 3), (1, 3)])
    rows = {"x0": np.arange(12.0).reshape(4, 3), "x1": np.full((4, 3), 50.0)}
    sample_list = [{name: row[i : i + 1] for name, row in rows.items()} for i in range(4)]
    of_list, of_rows = (
        compile(proto, calibration=calibration, client_side=client_side)
        for calibration in (sample_list, rows)
    )
    assert of_rows.magnitudes == of_list.magnitudes
    alone = single("Relu", [(1, 3)])
    assert compile(alone, calibration=rows["x0"]).magnitudes["x0"] == 22.0


@pytest.mark.parametrize("input_range", [1, (1, 0), (0, np.inf), (0, 1, 2), "01x"])
def test_an_input_range_has_two_ends(input_range: Any) -> None:
    with pytest.raises(Misuse, match="give the lowest and the highest number"):
        compile(single("Relu", [(1, 3)]), input_range=input_range)


def test_input_range_covers_its_ends() -> None:
    program = compile(single("Relu", [(1, 3)]), input_range=(0.0, 255.0)).program
    assert program.inputs[0].magnitude == 512.0


def test_stated_ranges_replace_measured_ones() -> None:
    proto = model([node("Relu", ["x"], ["y"])], {"x": (1, 3)}, ["y"])
    compiled = compile(proto, ranges={"x": 100.0})
    assert compiled.magnitudes["x"] == 200.0
    assert compiled.magnitudes["y"] < 20.0
    with pytest.raises(InputError, match="ranges names z"):
        compile(proto, ranges={"z": 1.0})


def test_softmax_of_large_logits_is_finite() -> None:
    program = compile(single("Softmax", [(1, 3)]), input_range=(-1000, 1000)).program
    outputs = decode_output(program, [np.array([[1000 << 12, 0, -1000 << 12]])])
    np.testing.assert_allclose(outputs["y0"], [[1, 0, 0]], atol=1e-12)


def test_weights_that_are_not_finite_are_refused() -> None:
    proto = single("Mul", [(1, 2), np.asarray([1, np.nan], np.float32)])
    with pytest.raises(InvalidModel, match="NaN, infinity"):
        compile(proto)
