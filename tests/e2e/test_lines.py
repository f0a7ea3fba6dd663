"""Smooth activations in suites `gmw` and `fss`: the executor's integers, near ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import expected, model, node, samples

import privet
from privet.compiler.compile import compile
from privet.compiler.executor import execute
from privet.errors import UnsupportedModel

SUITES = [
    privet.Fss(),
    privet.Gmw(rounds="linear"),
    privet.Gmw(rounds="log"),
    privet.Gmw(correlations="dealer", rounds="log"),
]


def network() -> onnx.ModelProto:
    """A convolution with SiLU, dense layers with GELU, and a sigmoid."""
    rng = np.random.default_rng(7)
    weights = {
        "k": rng.uniform(-0.5, 0.5, (4, 2, 3, 3)).astype(np.float32),
        "w1": rng.uniform(-0.5, 0.5, (64, 12)).astype(np.float32),
        "w2": rng.uniform(-1, 1, (12, 3)).astype(np.float32),
    }
    nodes = [
        node("Conv", ["x", "k"], ["c"]),
        node("Sigmoid", ["c"], ["gate"]),
        node("Mul", ["c", "gate"], ["silu"]),
        node("Flatten", ["silu"], ["flat"]),
        node("MatMul", ["flat", "w1"], ["hidden"]),
        node("Gelu", ["hidden"], ["active"]),
        node("MatMul", ["active", "w2"], ["logits"]),
        node("Sigmoid", ["logits"], ["y"]),
    ]
    for index, operator in enumerate(nodes):
        operator.name = f"{operator.op_type}{index}"
    return model(nodes, {"x": (1, 2, 6, 6)}, ["y"], weights)


@pytest.mark.parametrize("suite", SUITES)
def test_a_network_of_smooth_activations_is_the_executors(suite: privet.Suite) -> None:
    proto = network()
    inputs = samples(proto)
    result = privet.run(proto, inputs, suite=suite)
    assert result.max_fixed_point_error == 0
    (outputs,) = result.outputs.values()
    found_reals = np.asarray(outputs, dtype=np.float64)
    np.testing.assert_allclose(found_reals, expected(proto, inputs)[0], rtol=0, atol=16 * 2.0**-12)


@pytest.mark.parametrize("behind", ["sum", "pooled sum"])
def test_sums_behind_a_function_have_the_ring_that_the_program_gives_them(behind: str) -> None:
    """A sigmoid fits a few bits, what is added to it does not."""
    constants = {
        "k": np.ones((1, 1, 1, 1), np.float32),
        "c": np.full((1, 1, 1, 1), 3.0, np.float32),
    }
    pooled = behind == "pooled sum"
    pool = [node("MaxPool", ["s"], ["p"], kernel_shape=[2, 2], strides=[2, 2])] if pooled else []
    nodes = [
        node("Conv", ["x", "k"], ["a"]),
        node("Sigmoid", ["a"], ["s"]),
        *pool,
        node("Add", ["p" if pooled else "s", "c"], ["t"]),
        node("Relu", ["t"], ["r"]),
        node("Conv", ["r", "k"], ["y"]),
    ]
    for index, operator in enumerate(nodes):
        operator.name = f"{operator.op_type}{index}"
    proto = model(nodes, {"x": (1, 1, 4, 4)}, ["y"], constants)
    calibration = [{"x": row} for row in np.linspace(-6, 6, 32).reshape(2, 1, 1, 4, 4)]
    compiled = compile(proto, calibration=calibration, smooth="piecewise")
    for suite in SUITES:
        assert privet.run(compiled, calibration[1], suite=suite).max_fixed_point_error == 0


@pytest.mark.parametrize("scale", [13, 14, 15])
def test_a_value_at_the_end_of_its_ring_may_be_one_more(scale: int) -> None:
    """A truncation that loses carries may round the largest sigmoid up."""
    nodes = [node("Sigmoid", ["x"], ["s"]), node("MatMul", ["s", "u"], ["y"])]
    proto = model(nodes, {"x": (1, 8)}, ["y"], {"u": np.eye(8, dtype=np.float32)})
    calibration = [{"x": np.linspace(-17, 17, 8, dtype=np.float32).reshape(1, 8)}]
    compiled = compile(proto, calibration=calibration, smooth="piecewise", scale=scale)
    inputs = {"x": np.array([[17, 16.5, 15.9, 15.5, 14, -17, 12, 10]], np.float32)}
    for suite in [privet.Fss(truncation="one-bit"), privet.Fss()]:
        (output,) = privet.run(compiled, inputs, suite=suite).outputs.values()
        reals = np.asarray(output, dtype=np.float64)
        np.testing.assert_allclose(reals, 1 / (1 + np.exp(-inputs["x"])), rtol=0, atol=0.01)


def test_arguments_beyond_the_table_saturate_and_go_on() -> None:
    nodes = [node("Gelu", ["x"], ["y"]), node("Tanh", ["x"], ["z"])]
    proto = model(nodes, {"x": (1, 6)}, ["y", "z"])
    near = {"x": np.array([[-1.0, -0.5, 0.0, 0.5, 1.0, 2.0]], np.float32)}
    compiled = compile(proto, calibration=[near], ranges={"x": 300.0}, smooth="piecewise")
    options: dict[str, Any] = {"inputs": {"x": np.array([[-300, -9, -1, 1, 9, 300]], np.float32)}}
    exact = execute(compiled.program, compiled.weights, options["inputs"]).outputs
    for suite in SUITES[:2]:
        outputs = privet.run(compiled, suite=suite, **options).outputs
        assert all(np.array_equal(outputs[name], exact[name]) for name in ("y", "z"))


def test_against_cheats_the_layer_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedModel, match="authenticate"):
        privet.run(network(), suite=privet.Fss(security="malicious"))
