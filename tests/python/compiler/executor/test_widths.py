"""Rings and scales that the compiler chooses: every size of values comes out."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from skl2onnx import to_onnx
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.svm import SVR
from tests.combinations import combinations
from typer.testing import CliRunner

import privet
from privet.cli import app
from privet.compiler.compile import Compiled, compile
from privet.compiler.executor import execute
from privet.compiler.executor.beside import beside
from privet.compiler.executor.widths import KEPT, SAMPLES, TOLERANCE, WIDEST
from privet.errors import Misuse, OverflowRisk

Arrays = list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]


def network(
    inputs: float, weights: float, activation: str = "Relu", rng: np.random.Generator | None = None
) -> onnx.ModelProto:
    """Two dense layers: inputs of that size, and weights before the activation."""
    rng = rng or np.random.default_rng(1)
    tensors = {
        "w": rng.normal(size=(8, 8)) * weights / inputs,
        "v": rng.normal(size=(8, 2)),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "first"),
        helper.make_node(activation, ["a"], ["b"], "middle"),
        helper.make_node("MatMul", ["b", "v"], ["y"], "last"),
    ]
    x, y = (
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, size])]
        for name, size in (("x", 8), ("y", 2))
    )
    constants = [numpy_helper.from_array(a.astype(np.float32), name) for name, a in tensors.items()]
    graph = helper.make_graph(nodes, "sizes", x, y, constants)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=9)


def samples(size: float, count: int, rng: np.random.Generator | None = None) -> Arrays:
    rng = rng or np.random.default_rng(2)
    return [(size * rng.uniform(0, 1, (1, 8))).astype(np.float32) for _ in range(count)]


def relative_error(model: onnx.ModelProto, compiled: Compiled, inputs: Arrays) -> float:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    reference = np.array([session.run(None, {"x": x})[0] for x in inputs])
    outputs = [execute(compiled.program, compiled.weights, [x]).outputs["y"] for x in inputs]
    return float(np.abs(np.array(outputs) - reference).max() / np.ptp(reference))


@pytest.mark.parametrize("activation", ["Relu", "Sigmoid"])
@pytest.mark.parametrize("inputs", [1e5, 255.0, 1e-4])
def test_values_of_every_size_are_right(inputs: float, activation: str) -> None:
    model = network(inputs, 1.0, activation)
    compiled = compile(model, calibration=samples(inputs, 16), smooth="piecewise")
    assert relative_error(model, compiled, samples(inputs, 16)) < 2e-3


@pytest.mark.parametrize(
    ("inputs", "weights", "bits"),
    [(1.0, 1e-8, 48), (1.0, 1e-6, None), (1e-4, 1e-4, None), (1.0, 1e4, None)],
)
def test_weights_of_every_size_are_right(inputs: float, weights: float, bits: int | None) -> None:
    """The smallest ones in a ring that a user has to ask for: not every suite carries it."""
    model = network(inputs, weights)
    compiled = compile(model, calibration=samples(inputs, 16), bits=bits)
    assert relative_error(model, compiled, samples(inputs, 16)) < 2e-3


def test_a_model_of_usual_sizes_keeps_the_usual_widths() -> None:
    program = compile(network(1.0, 1.0), calibration=samples(1.0, 16)).program
    assert (program.ring_bits, program.scale_bits) == (37, 12)
    assert program.values[program.inputs[0].value].scale == 12


def test_what_the_user_gives_is_kept_and_said_where_it_is_not_accurate() -> None:
    options: dict[str, Any] = {"bits": 37, "scale": 12, "calibration": samples(1e3, 16)}
    compiled = compile(network(1e3, 1.0), **options)
    program = compiled.program
    assert (program.ring_bits, program.values[0].scale) == (37, 12)
    warning = compiled.accuracy().warning
    assert warning is not None
    assert "layer first (Dense)" in warning


def test_the_error_of_a_polynomial_in_place_of_a_function_counts() -> None:
    """A bell by a polynomial up to the margin, and large coefficients that nearly cancel."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((SAMPLES, 4)).astype(np.float32)
    targets = rows @ np.array([1, 2, -1, 0.5]) + np.sin(rows[:, 0])
    proto = to_onnx(SVR(C=1e4, gamma=0.01).fit(rows[:60], targets[:60]), rows[:1])
    calibration = [row[None] for row in rows]
    compiled = compile(proto, calibration=calibration)
    (reference,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"X": rows})
    outputs = [
        execute(compiled.program, compiled.weights, [x]).outputs["variable"] for x in calibration
    ]
    error = float(np.abs(np.concatenate(outputs) - reference).max())
    accuracy = compiled.accuracy()
    assert error > 0.1
    assert accuracy.outputs[0].error == pytest.approx(error, rel=1e-3)
    assert accuracy.warning is not None


@pytest.mark.parametrize("rows", [1, 8192])
def test_a_large_model_keeps_the_usual_widths_up_to_a_larger_error(rows: int) -> None:
    rng = np.random.default_rng(5)
    proto = network(1.0, 0.03, rng=rng)
    for entry in (*proto.graph.input, *proto.graph.output):
        entry.type.tensor_type.shape.dim[0].dim_value = rows
    calibration = [np.repeat(x, rows, axis=0) for x in samples(1.0, 16, rng)]
    usual = compile(proto, calibration=calibration, bits=37, scale=12).accuracy().relative
    assert TOLERANCE < usual < KEPT
    chosen = compile(proto, calibration=calibration).accuracy().relative
    assert (chosen == usual) == (rows > 1)


def kernel_machine(rows: np.ndarray[Any, Any], alpha: float) -> onnx.ModelProto:
    """A Gaussian process, whose coefficients are the larger, the less `alpha` is."""
    targets = rows @ np.array([1, 2, -1, 0.5]) + np.sin(rows[:, 0])
    kernel = ConstantKernel(4, "fixed") * RBF(4, "fixed")
    machine = GaussianProcessRegressor(kernel, alpha=alpha).fit(rows[:60], targets[:60])
    proto: onnx.ModelProto = to_onnx(machine, rows[:1])
    return proto


@pytest.mark.parametrize(("alpha", "is_accurate"), [(1e-4, True), (1e-10, False)])
def test_coefficients_that_nearly_cancel_get_fine_functions_or_a_warning(
    alpha: float, is_accurate: bool
) -> None:
    rows = np.random.default_rng(0).standard_normal((160, 4)).astype(np.float32)
    proto = kernel_machine(rows, alpha)
    (reference,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(
        None, {"X": rows[60:]}
    )
    compiled = compile(proto, calibration=[row[None] for row in rows[:60]], smooth="piecewise")
    outputs = [
        execute(compiled.program, compiled.weights, [row[None]]).outputs["GPmean"]
        for row in rows[60:]
    ]
    error = float(np.abs(np.concatenate(outputs) - reference).max() / np.ptp(reference))
    accuracy = compiled.accuracy()
    assert (accuracy.relative <= TOLERANCE) == is_accurate
    assert error < 2 * accuracy.relative
    warning = accuracy.warning
    assert is_accurate or (warning is not None and "gpr_MatMul (Dense) is the first" in warning)


def test_a_program_that_is_not_its_model_is_told_by_onnx_runtime() -> None:
    """No layer of it is off from the graph that it was made of."""
    rng = np.random.default_rng(5)
    proto, calibration = network(1.0, 1.0, rng=rng), samples(1.0, 16, rng)
    compiled = compile(proto, calibration=calibration)
    accuracy = compiled.accuracy()
    (error,) = accuracy.beside
    assert error.name == "y"
    assert error.relative < KEPT
    assert accuracy.warning is None
    other = beside(network(1.0, 1.0, rng=rng), compiled.program, compiled.weights, calibration)
    warning = replace(accuracy, beside=other).warning
    assert warning is not None
    assert "output y is off from ONNX Runtime's by" in warning
    broken = network(1.0, 1.0, rng=rng)
    broken.graph.node[0].op_type = "NoSuchOperator"
    assert beside(broken, compiled.program, compiled.weights, calibration) == ()


def test_a_scale_that_needs_a_wider_ring_gets_one() -> None:
    model, calibration = network(1.0, 3e3), samples(1.0, 16)
    program = compile(model, calibration=calibration, scale=12).program
    assert program.ring_bits > 37
    assert {value.scale for value in program.values} == {12, 24}


def test_no_ring_is_chosen_that_some_choice_in_a_suite_does_not_carry() -> None:
    rng = np.random.default_rng(1)
    proto, calibration = network(1e-5, 1e-5, rng=rng), samples(1e-5, 16, rng)
    program = compile(proto, calibration=calibration).program
    assert program.ring_bits == WIDEST
    for prime in (suite for suite in privet.Gmw.labelled() if suite.field == "prime"):
        prime.plan(program)
    privet.Stream().plan(program)


def test_what_no_choice_computes_accurately_stays_refused() -> None:
    with pytest.raises(OverflowRisk, match="all zero at scale 12"):
        compile(network(1.0, 1e-8), calibration=samples(1.0, 16))


def test_without_calibration_the_usual_widths_are_kept_where_they_have_room() -> None:
    proto, calibration = network(255.0, 1.0), samples(255.0, 4)
    assert compile(proto, input_range=(0, 255)).program.values[0].scale == 12
    assert compile(proto, calibration=calibration).program.values[0].scale != 12
    assert compile(network(1e5, 1.0), input_range=(0, 1e5)).accuracy().relative < 1e-3


def test_a_ring_that_is_given_and_too_wide_is_refused_by_a_prime_field() -> None:
    program = compile(network(1.0, 1.0), bits=48, scale=16).program
    with pytest.raises(Misuse, match="24 to 42 bits, not 48"):
        privet.Gmw(rounds="log", field="prime").plan(program)


@pytest.mark.parametrize(
    ("width", "suite"),
    combinations(
        [
            (1.0, {"bits": 42, "scale": 14}),
            (1.0, {"bits": 48, "scale": 16}),
            (1e5, {}),
            (1e-4, {"bits": 42}),
        ],
        [privet.Gmw(rounds="log"), privet.Fss()],
    ),
)
def test_chosen_widths_compute_the_executors_integers(
    width: tuple[float, dict[str, Any]], suite: privet.Suite
) -> None:
    size, options = width
    inputs = samples(size, 8)
    model = network(size, 1.0, "Relu" if size == 1.0 else "Sigmoid")
    compiled = compile(model, calibration=inputs, smooth="piecewise", **options)
    assert privet.run(compiled, inputs[:1], suite=suite).max_fixed_point_error == 0


def small_factor() -> onnx.ModelProto:
    """A factor of 1e-9 beside weights of about 1, and a residual: as some networks scale layers."""
    tensors = {
        "w": np.random.default_rng(5).normal(size=(8, 8)),
        "g": np.full((1, 8), 1e-9),
        "v": np.eye(8) * 1e9,
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "first"),
        helper.make_node("Mul", ["a", "g"], ["b"], "factor"),
        helper.make_node("MatMul", ["b", "v"], ["c"], "last"),
        helper.make_node("Add", ["c", "x"], ["y"], "sum"),
    ]
    x, y = (
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 8])] for name in ("x", "y")
    )
    constants = [numpy_helper.from_array(a.astype(np.float32), name) for name, a in tensors.items()]
    graph = helper.make_graph(nodes, "factor", x, y, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def test_a_ring_that_would_hold_a_model_is_named() -> None:
    proto, inputs = small_factor(), samples(1.0, 4)
    with pytest.raises(OverflowRisk, match="or with --bits 48, at which outputs are off by"):
        compile(proto, calibration=inputs)
    assert relative_error(proto, compile(proto, calibration=inputs, bits=48), inputs) < 4e-3


def test_a_wide_ring_is_chosen_where_no_other_holds_a_model_and_says_so(tmp_path: Path) -> None:
    proto, inputs = small_factor(), samples(1.0, 4)
    compiled = privet.compile(proto, calibration=inputs)
    assert compiled.program.ring_bits == 48
    assert relative_error(proto, compiled, inputs) < 4e-3
    assert compiled.widened is not None
    assert re.search("48 bits, as layer factor has no room.*up to 29 % more", compiled.widened)
    assert privet.run(compiled, inputs[:1]).widened == compiled.widened
    alone = privet.run(proto, inputs[:1], calibration=inputs, suite="fss")
    assert alone.widened == compiled.widened
    onnx.save(proto, tmp_path / "factor.onnx")
    np.save(tmp_path / "samples.npy", np.concatenate(inputs))
    words = [str(tmp_path / "factor.onnx"), "--calibration", str(tmp_path / "samples.npy")]
    result = CliRunner().invoke(app, ["inspect", *words, "--json"])
    assert json.loads(result.stdout)["ring_bits"] == 48
    surveyed = CliRunner().invoke(app, ["inspect", *words, "--all-suites", "--json"])
    rings = {row["suite"]: row["ring_bits"] for row in json.loads(surveyed.stdout)["suites"]}
    assert rings["gmw"] == rings["fss"] == 48
    usual = privet.compile(network(1.0, 1.0), calibration=samples(1.0, 16))
    assert usual.widened is None


@pytest.mark.parametrize(
    "options",
    [{"bits": 42}, {"sound": True}, {"suite": "stream"}, {"suite": privet.Gmw(field="prime")}],
)
def test_what_does_not_take_a_wide_ring_stays_refused(options: dict[str, Any]) -> None:
    with pytest.raises(OverflowRisk, match="all zero at scale 12"):
        privet.compile(small_factor(), calibration=samples(1.0, 4), **options)
    with pytest.raises(OverflowRisk, match="all zero at scale"):
        privet.compile(network(1.0, 1e-12), calibration=samples(1.0, 16))


def test_an_approximate_sign_and_lines_do_not_go_together() -> None:
    with pytest.raises(Misuse, match="give one or the other"):
        compile(network(1.0, 1.0), relu="sign", smooth="piecewise")
