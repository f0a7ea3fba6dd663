"""Selections by private comparisons between two processes, in each suite that computes them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import expected, model, node, samples

import privet
from privet.errors import UnsupportedModel

SUITES = {
    "log": privet.Gmw(rounds="log"),
    "linear": privet.Gmw(rounds="linear"),
    "prime": privet.Gmw(field="prime", rounds="log"),
    "online": privet.Gmw(linear="online", rounds="log"),
    "dealt": privet.Gmw(correlations="dealer", rounds="blocks"),
    "fss": privet.Fss(),
}


def network() -> onnx.ModelProto:
    """Choices between layers, and between a layer and a constant, by a comparison each."""
    rng = np.random.default_rng(11)
    weights = {name: rng.uniform(-1, 1, (6, 4)).astype(np.float32) for name in "uv"}
    nodes = [
        node("MatMul", ["x", "u"], ["a"]),
        node("MatMul", ["x", "v"], ["b"]),
        node("Greater", ["a", "b"], ["above"]),
        node("Where", ["above", "a", "b"], ["larger"]),
        node("LessOrEqual", ["larger", "half"], ["small"]),
        node("Where", ["small", "larger", "half"], ["y"]),
    ]
    for index, operator in enumerate(nodes):
        operator.name = f"{operator.op_type}{index}"
    return model(nodes, {"x": (5, 6)}, ["y"], {**weights, "half": np.float32(0.5)})


@pytest.mark.parametrize("name", SUITES)
def test_selections_are_the_executors_at_the_cost_of_the_forecast(name: str) -> None:
    proto = network()
    compiled = privet.compile(proto, suite=SUITES[name])
    inputs = samples(proto)
    result = privet.run(compiled, inputs, suite=SUITES[name])
    assert result.max_fixed_point_error == 0
    reals = np.asarray(result.outputs["y"], dtype=np.float64)
    np.testing.assert_allclose(reals, expected(proto, inputs)[0], atol=8 * 2.0**-12)
    forecast = result.config.plan(compiled.program).figures["forecast"]
    assert result.online.rounds == forecast["online_rounds"]
    bytes_sent = result.online.bytes_client, result.online.bytes_server
    assert bytes_sent == (forecast["online_bytes_client"], forecast["online_bytes_server"])


def test_no_number_is_made_of_a_comparison_that_one_choice_reads() -> None:
    operations = [operation.op for operation in privet.compile(network()).program.operations]
    assert operations.count("select") == 2
    assert not {"step", "mul"} & set(operations)


def test_other_suites_refuse_selections_by_name() -> None:
    for suite in ("ckks", "stream"):
        with pytest.raises(UnsupportedModel, match="Where"):
            privet.run(network(), suite=suite)
    with pytest.raises(UnsupportedModel, match="by comparisons, which --security malicious"):
        privet.run(network(), suite=privet.Fss(security="malicious"))
