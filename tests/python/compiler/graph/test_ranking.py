"""TopK and look-ups at private places against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import model, node

import privet
from privet.compiler.compile import compile
from privet.compiler.executor import execute
from privet.compiler.executor.reference import run_plaintext
from privet.errors import UnsupportedModel

RNG = np.random.default_rng(3)


def agrees(proto: Any, x: Any, outputs: list[str]) -> None:
    compiled = compile(proto, smooth="piecewise", calibration=[x])
    results = execute(compiled.program, compiled.weights, [x]).outputs
    references = run_plaintext(compiled.source, [{"x": x}], outputs)
    for name in outputs:
        assert results[name].shape == references[name].shape
        within = 0 if references[name].dtype.kind == "i" else 2e-3
        assert np.abs(results[name] - np.asarray(references[name], np.float64)).max() <= within


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize(("size", "count"), [(7, 7), (9, 1), (40, 5), (300, 3)])
def test_the_first_elements_and_their_places(size: int, count: int, largest: int) -> None:
    proto = model(
        [node("TopK", ["x", "k"], ["values", "places"], axis=-1, largest=largest)],
        {"x": (2, size)},
        ["values", "places"],
        {"k": np.array([count])},
    )
    # Whole numbers in a small range: many are equal, and come in their order.
    agrees(proto, RNG.integers(-9, 9, (2, size)).astype(np.float32), ["values", "places"])


def test_rows_of_a_constant_at_the_places_found() -> None:
    nodes = [
        node("TopK", ["x", "k"], ["values", "places"], axis=-1),
        node("Reshape", ["places", "flat"], ["row"]),
        node("Gather", ["table", "row"], ["found"]),
        node("ReduceSum", ["found"], ["y"], keepdims=1),
    ]
    table = RNG.standard_normal(12).astype(np.float32)
    constants = {"k": np.array([3]), "table": table, "flat": np.array([-1])}
    proto = model(nodes, {"x": (1, 12)}, ["y"], constants)
    agrees(proto, RNG.standard_normal((1, 12)).astype(np.float32), ["y"])


@pytest.mark.parametrize("axis", [0, 1])
def test_a_table_at_the_place_of_the_largest(axis: int) -> None:
    nodes = [
        node("ArgMax", ["x"], ["place"], axis=1, keepdims=0),
        node("Gather", ["table", "place"], ["row"], axis=axis),
        node("Mul", ["row", "row"], ["y"]),
    ]
    table = RNG.standard_normal((5, 5)).astype(np.float32)
    proto = model(nodes, {"x": (3, 5)}, ["y"], {"table": table})
    agrees(proto, RNG.standard_normal((3, 5)).astype(np.float32), ["y"])


def test_no_shape_tells_what_a_table_of_places_holds() -> None:
    nodes = [
        node("ArgMax", ["x"], ["place"], axis=1, keepdims=0),
        node("Gather", ["places", "place"], ["next"]),
        onnx.helper.make_node("Gather", ["table", "next"], ["row"], "second"),
        node("Mul", ["row", "row"], ["y"]),
    ]
    table, x = RNG.standard_normal((9, 2)).astype(np.float32), np.eye(5, dtype=np.float32)
    shapes = []
    for places in ([0, 1, 2, 1, 0], [8, 1, 2, 4, 0]):
        constants = {"table": table, "places": np.array(places)}
        proto = model(nodes, {"x": (5, 5)}, ["y"], constants)
        agrees(proto, x, ["y"])
        program = compile(proto, smooth="piecewise", calibration=[x]).program
        shapes.append([value.shape for value in program.values])
    assert shapes[0] == shapes[1]


def test_elements_at_private_places() -> None:
    nodes = [
        node("TopK", ["x", "k"], ["values", "places"], axis=-1),
        node("ArgMax", ["x"], ["first"], axis=1),
        node("GatherElements", ["places", "first"], ["where"], axis=1),
        onnx.helper.make_node("GatherElements", ["x", "where"], ["y"], axis=1),
    ]
    proto = model(nodes, {"x": (2, 6)}, ["y", "where"], {"k": np.array([6])})
    agrees(proto, RNG.standard_normal((2, 6)).astype(np.float32), ["y", "where"])


def test_places_cast_to_floats_are_numbers_to_calculate_with() -> None:
    nodes = [
        node("TopK", ["x", "k"], ["values", "places"], axis=-1),
        node("Cast", ["places"], ["numbers"], to=onnx.TensorProto.FLOAT),
        node("Div", ["numbers", "two"], ["half"]),
        node("Mul", ["half", "numbers"], ["y"]),
    ]
    constants = {"k": np.array([3]), "two": np.array([2.0], np.float32)}
    proto = model(nodes, {"x": (1, 6)}, ["y"], constants)
    agrees(proto, RNG.standard_normal((1, 6)).astype(np.float32), ["y"])


def test_places_that_may_lie_outside_are_refused() -> None:
    nodes = [
        node("ArgMax", ["x"], ["place"], axis=1, keepdims=0),
        node("Gather", ["table", "place"], ["row"]),
        node("Mul", ["row", "row"], ["y"]),
    ]
    proto = model(nodes, {"x": (1, 6)}, ["y"], {"table": np.ones((5, 2), np.float32)})
    with pytest.raises(UnsupportedModel, match="not known to be in it"):
        compile(proto, smooth="piecewise")


@pytest.mark.parametrize("suite", ["gmw", "fss"])
def test_parties_find_the_same(suite: str) -> None:
    nodes = [node("TopK", ["x", "k"], ["values", "places"], axis=-1)]
    proto = model(nodes, {"x": (1, 20)}, ["values", "places"], {"k": np.array([4])})
    x = RNG.integers(-5, 5, (1, 20)).astype(np.float32)
    run = privet.run(proto, [x], suite=suite, calibration=[x])
    assert run.max_fixed_point_error == 0
    assert run.outputs["places"].tolist() == run.reference["places"].tolist()
