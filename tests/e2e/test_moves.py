"""Elements moved, blended, summed and normalised in the suites: the executor's integers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import constant, expected, model, node, samples

import privet


def moving() -> onnx.ModelProto:
    """What takes no product of two private tensors."""
    nodes = [
        node("Resize", ["x", "", "", "sizes"], ["a"], mode="linear"),
        node("Pad", ["a", "pads"], ["b"], mode="wrap"),
        node("GatherElements", ["b", "places"], ["c"], axis=2),
        node("ScatterND", ["c", "where", "new"], ["d"], reduction="add"),
        node("CumSum", ["d", "last"], ["e"], exclusive=1),
        node("Trilu", ["e"], ["f"]),
        node("ReduceMin", ["f", "first"], ["g"], keepdims=1),
        node("Hardmax", ["b"], ["h"], axis=2),
        node("ReduceSum", ["h", "all"], ["i"], keepdims=0),
        node("Add", ["g", "i"], ["y"]),
    ]
    constants = {
        "sizes": np.array([1, 2, 5, 3]),
        "pads": np.array([0, 0, 1, 0, 0, 0, 0, 2]),
        "places": np.random.default_rng(0).integers(0, 6, (1, 2, 4, 5)),
        "where": np.array([[0, 1], [0, 1]]),
        "new": constant(2, 4, 5),
        "last": np.array(3),
        "first": np.array([1]),
        "all": np.array([0, 1, 2, 3]),
    }
    return model(nodes, {"x": (1, 2, 4, 4)}, ["y"], constants)


def normalising() -> onnx.ModelProto:
    """What divides by what is in the tensor."""
    nodes = [
        node("InstanceNormalization", ["x", "s", "t"], ["a"], epsilon=0.01),
        node("LRN", ["a"], ["b"], size=3, alpha=0.1),
        node("GroupNormalization", ["b", "s", "t"], ["c"], num_groups=2),
        node("LpNormalization", ["c"], ["d"], axis=1),
        node("ReduceL2", ["d", "last"], ["e"]),
        node("GlobalLpPool", ["e"], ["y"]),
    ]
    constants = {"s": constant(4, seed=1), "t": constant(4, seed=2), "last": np.array([3])}
    return model(nodes, {"x": (1, 4, 3, 3)}, ["y"], constants)


@pytest.mark.parametrize("suite", [privet.Gmw(), privet.Fss()])
def test_moved_elements_are_the_executors(suite: privet.Suite) -> None:
    _check(moving(), suite)


@pytest.mark.parametrize("suite", [privet.Gmw(correlations="dealer"), privet.Fss()])
def test_normalised_tensors_are_the_executors(suite: privet.Suite) -> None:
    _check(normalising(), suite)


def _check(proto: onnx.ModelProto, suite: privet.Suite) -> None:
    inputs = samples(proto)
    result = privet.run(proto, inputs, suite=suite)
    assert result.max_fixed_point_error == 0
    (outputs,) = result.outputs.values()
    (reference,) = expected(proto, inputs)
    np.testing.assert_allclose(outputs.astype(float), reference, rtol=0, atol=0.02)
