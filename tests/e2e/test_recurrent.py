"""Recurrent nets in suites `gmw` and `fss`: the executor's integers, near ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import expected, model, node, samples

import privet
from privet.errors import UnsupportedModel

SUITES = [privet.Fss(), privet.Gmw(correlations="dealer", rounds="log")]


def network(steps: int, width: int, *, op: str = "LSTM", directions: int = 2) -> onnx.ModelProto:
    """A net, and a dense layer on its last state."""
    rng = np.random.default_rng(7)
    rows = {"GRU": 3, "LSTM": 4}[op] * width
    shapes = {
        "W": (directions, rows, width),
        "R": (directions, rows, width),
        "B": (directions, 2 * rows),
        "V": (directions * width, 10),
    }
    weights = {
        name: rng.uniform(-1, 1, shape).astype(np.float32) / np.float32(np.sqrt(width))
        for name, shape in shapes.items()
    } | {"flat": np.array([1, directions * width])}
    way = "bidirectional" if directions == 2 else "forward"
    nodes = [
        node(op, ["x", "W", "R", "B"], ["", "h"], hidden_size=width, direction=way),
        node("Transpose", ["h"], ["turned"], perm=[1, 0, 2]),
        node("Reshape", ["turned", "flat"], ["state"]),
        node("MatMul", ["state", "V"], ["y"]),
    ]
    return model(nodes, {"x": (steps, 1, width)}, ["y"], weights)


@pytest.mark.parametrize(
    ("suite", "op"), [(SUITES[0], "GRU"), (SUITES[0], "LSTM"), (SUITES[1], "LSTM")]
)
def test_a_net_of_two_directions_is_the_executors(suite: privet.Suite, op: str) -> None:
    proto = network(3, 6, op=op)
    inputs = samples(proto)
    result = privet.run(proto, inputs, suite=suite)
    assert result.max_fixed_point_error == 0
    (outputs,) = result.outputs.values()
    reals = np.asarray(outputs, dtype=np.float64)
    np.testing.assert_allclose(reals, expected(proto, inputs)[0], rtol=0, atol=32 * 2.0**-12)


def test_against_cheats_the_net_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedModel, match="the_lstm"):
        privet.run(network(2, 4), suite=privet.Fss(security="malicious"))


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_fifty_steps_of_128_units(
    suite: privet.Suite, record_property: Callable[[str, object], None]
) -> None:
    proto = network(50, 128, directions=1)
    result = privet.run(proto, samples(proto), suite=suite)
    record_property("offline", str(result.offline))
    record_property("online", str(result.online))
    assert result.max_fixed_point_error == 0
