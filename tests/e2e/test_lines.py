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
    for index, it in enumerate(nodes):
        it.name = f"{it.op_type}{index}"
    return model(nodes, {"x": (1, 2, 6, 6)}, ["y"], weights)


@pytest.mark.parametrize("suite", SUITES)
def test_a_network_of_smooth_activations_is_the_executors(suite: privet.Suite) -> None:
    made = network()
    inputs = samples(made)
    found = privet.run(made, inputs, suite=suite)
    assert found.max_fixed_point_error == 0
    (outputs,) = found.outputs.values()
    found_reals = np.asarray(outputs, dtype=np.float64)
    np.testing.assert_allclose(found_reals, expected(made, inputs)[0], rtol=0, atol=16 * 2.0**-12)


def test_arguments_beyond_the_table_saturate_and_go_on() -> None:
    nodes = [node("Gelu", ["x"], ["y"]), node("Tanh", ["x"], ["z"])]
    made = model(nodes, {"x": (1, 6)}, ["y", "z"])
    near = {"x": np.array([[-1.0, -0.5, 0.0, 0.5, 1.0, 2.0]], np.float32)}
    compiled = compile(made, calibration=[near], ranges={"x": 300.0}, smooth="piecewise")
    options: dict[str, Any] = {"inputs": {"x": np.array([[-300, -9, -1, 1, 9, 300]], np.float32)}}
    exact = execute(compiled.program, compiled.weights, options["inputs"]).outputs
    for suite in SUITES[:2]:
        found = privet.run(compiled, suite=suite, **options).outputs
        assert all(np.array_equal(found[name], exact[name]) for name in ("y", "z"))


def test_against_cheats_the_layer_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedModel, match="authenticate"):
        privet.run(network(), suite=privet.Fss(security="malicious"))
