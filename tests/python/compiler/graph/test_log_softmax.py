"""Naive Bayes and mixtures: `x - logsumexp(x)` is what the client computes of scores."""

from __future__ import annotations

import numpy as np
import pytest
from tests.python.compiler.graph.single import constant, expected, model, node, samples

from privet.compiler.compile import compile
from privet.compiler.executor import execute


@pytest.mark.parametrize("keeps", [True, False])
def test_a_matrix_less_its_logarithms_of_sums(keeps: bool) -> None:
    reshape = [] if keeps else [node("Reshape", ["sums", "column"], ["total"])]
    nodes = [
        node("MatMul", ["x", "w"], ["scores"]),
        node("ReduceLogSumExp", ["scores", "axis"], ["total" if keeps else "sums"], keepdims=keeps),
        *reshape,
        node("Sub", ["scores", "total"], ["logs"]),
        node("Exp", ["logs"], ["chances"]),
        node("ArgMax", ["scores"], ["label"], axis=1),
    ]
    constants = {"w": 40 * constant(3, 4), "axis": np.array([1]), "column": np.array([-1, 1])}
    proto = model(nodes, {"x": (2, 3)}, ["chances", "label"], constants)
    inputs = samples(proto)
    compiled = compile(proto, smooth="piecewise", calibration=[inputs])
    head = compiled.program.head
    assert head is not None
    assert {entry.op for entry in head.nodes} == {"Softmax", "ArgMax"}
    outputs = execute(compiled.program, compiled.weights, inputs).outputs
    chances, label = expected(proto, inputs)
    np.testing.assert_allclose(outputs["chances"], chances, rtol=0, atol=1e-2)
    assert np.array_equal(outputs["label"], label)


@pytest.mark.parametrize("axis", [0, 1])
def test_chances_in_the_middle_are_a_softmax(axis: int) -> None:
    """As votes of naive Bayes and others are added up."""
    nodes = [
        node("LogSoftmax", ["x"], ["logs"], axis=axis),
        node("Exp", ["logs"], ["chances"]),
        node("MatMul", ["chances", "w"], ["y"]),
    ]
    proto = model(nodes, {"x": (2, 3)}, ["y"], {"w": constant(3, 2)})
    inputs = samples(proto)
    compiled = compile(proto, smooth="piecewise", calibration=[inputs])
    (output,) = execute(compiled.program, compiled.weights, inputs).outputs.values()
    np.testing.assert_allclose(output, expected(proto, inputs)[0], rtol=0, atol=2e-3)


def test_other_axes_stay_as_they_are() -> None:
    nodes = [
        node("ReduceLogSumExp", ["x", "axis"], ["total"], keepdims=1),
        node("Sub", ["x", "total"], ["y"]),
    ]
    proto = model(nodes, {"x": (2, 3)}, ["y"], {"axis": np.array([0])})
    inputs = samples(proto)
    compiled = compile(proto, smooth="piecewise", calibration=[inputs])
    assert compiled.program.head is None
    (output,) = execute(compiled.program, compiled.weights, inputs).outputs.values()
    np.testing.assert_allclose(output, expected(proto, inputs)[0], rtol=0, atol=1e-2)


def test_sums_without_an_axis_of_their_own_are_taken_along_rows() -> None:
    """Of a square matrix, `x - sums` takes the sum of another row from each number."""
    nodes = [
        node("ReduceLogSumExp", ["x", "axis"], ["sums"], keepdims=0),
        node("Sub", ["x", "sums"], ["y"]),
    ]
    proto = model(nodes, {"x": (3, 3)}, ["y"], {"axis": np.array([1])})
    inputs = samples(proto)
    compiled = compile(proto, smooth="piecewise", calibration=[inputs])
    (output,) = execute(compiled.program, compiled.weights, inputs).outputs.values()
    np.testing.assert_allclose(output, expected(proto, inputs)[0], rtol=0, atol=1e-2)
