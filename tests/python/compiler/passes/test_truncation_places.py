"""Where truncations stand in networks of functions by lines, and which rings they leave."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from tests.python.compiler.graph.single import model, node, samples

from privet.compiler.compile import Compiled, compile
from privet.compiler.executor import execute
from privet.compiler.passes.move_truncation import Kind
from privet.errors import OverflowRisk

SCALE, RING = 12, 37


def compiled(headroom: int | None = None) -> Compiled:
    """A normalisation that two layers and a sum read, and a function behind."""
    rng = np.random.default_rng(3)
    weights = {name: rng.uniform(-0.5, 0.5, (8, 8)).astype(np.float32) for name in ("v", "w")} | {
        "gamma": np.ones(8, np.float32),
        "shape": np.array([2, 4, 8]),
    }
    nodes = [
        node("LayerNormalization", ["x", "gamma"], ["n"], axis=-1),
        node("Reshape", ["n", "shape"], ["r"]),
        node("MatMul", ["n", "v"], ["left"]),
        node("MatMul", ["n", "w"], ["right"]),
        node("Gelu", ["left"], ["active"]),
        node("Add", ["active", "right"], ["sum"]),
        node("Mul", ["sum", "r"], ["y"]),
    ]
    for index, operator in enumerate(nodes):
        operator.name = f"{operator.op_type}{index}"
    proto = model(nodes, {"x": (2, 4, 8)}, ["y"], weights)
    return compile(
        proto,
        calibration=[samples(proto)],
        bits=RING,
        scale=SCALE,
        smooth="piecewise",
        headroom=headroom,
    )


def test_values_are_truncated_before_they_are_broadcast() -> None:
    program = compiled().program
    kinds = {operation.output: operation.op for operation in program.operations}
    truncated = [
        operation.inputs[0] for operation in program.operations if operation.op == "truncate"
    ]
    assert "broadcast" in kinds.values()
    assert all(kinds.get(value) != "broadcast" for value in truncated)


def test_a_mean_is_truncated_and_not_every_element_less_the_mean() -> None:
    program = compiled().program
    differences = {operation.output for operation in program.operations if operation.op == "sub"}
    truncated = {
        operation.inputs[0] for operation in program.operations if operation.op == "truncate"
    }
    assert differences
    assert not differences & truncated


def test_a_value_is_truncated_once_for_all_its_readers() -> None:
    program = compiled().program
    movements = {
        operation.output: operation.inputs[0]
        for operation in program.operations
        if operation.op == "reshape"
    }
    sources = []
    for operation in program.operations:
        if operation.op == "truncate":
            (value,) = operation.inputs
            while value in movements:
                value = movements[value]
            sources.append((value, operation.attributes["bits"]))
    assert len(set(sources)) == len(sources)
    # So both layers read one value, which is opened once.
    assert (
        len({operation.inputs[0] for operation in program.operations if operation.op == "dense"})
        == 1
    )


def test_rings_behind_truncations_have_the_headroom_and_no_more() -> None:
    program = compiled().program
    widths = [
        operation.attributes.get("width")
        for operation in program.operations
        if operation.op == "truncate"
    ]
    rooms = {
        operation.attributes["width"] - program.values[operation.output].scale
        for operation in program.operations
        if "width" in operation.attributes
    }
    assert None not in widths or len(set(widths)) > 1
    assert len(rooms) == 1
    # The owner's headroom is for places alone.
    operations = compiled(headroom=8).program.operations
    assert not any("width" in operation.attributes for operation in operations)


def attention() -> Compiled:
    """An attention whose weighted sums, before they are normalised, are far larger than all else:
    64 keys with equal scores."""
    rng = np.random.default_rng(4)
    weights = {
        "w": rng.uniform(-0.01, 0.01, (8, 8)).astype(np.float32),
        "v": np.eye(8, dtype=np.float32),
    }
    nodes = [
        node("MatMul", ["x", "w"], ["q"]),
        node("MatMul", ["x", "v"], ["values"]),
        node("Transpose", ["x"], ["k"], perm=[1, 0]),
        node("MatMul", ["q", "k"], ["scores"]),
        node("Softmax", ["scores"], ["p"]),
        node("MatMul", ["p", "values"], ["context"]),
        node("MatMul", ["context", "v"], ["y"]),
    ]
    proto = model(nodes, {"x": (64, 8)}, ["y"], weights)
    near = {"x": np.full((64, 8), 0.9, np.float32)}
    return compile(proto, calibration=[near], bits=40, scale=SCALE, smooth="piecewise")


def test_sums_of_a_softmax_widen_no_ring_but_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privet.compiler.executor.widths.MOST_SPARE", 0)

    def rooms() -> set[int]:
        program = attention().program
        return {
            operation.attributes["width"] - program.values[operation.output].scale
            for operation in program.operations
            if "width" in operation.attributes
        }

    sizes = rooms()
    passes = import_module("privet.compiler.passes.move_truncation")
    monkeypatch.setattr(passes, "kinds_of", lambda graph: dict.fromkeys(graph.values, Kind.VALUE))
    (alike,) = rooms()
    assert max(sizes) == alike
    assert min(sizes) <= alike - 3


def test_sums_of_what_keeps_the_ring_of_products_are_of_their_kind() -> None:
    """Rectified products added up stand in the ring of products: with other values' headroom that
    sum would need more bits than there are."""
    rng = np.random.default_rng(5)
    weights = {"w": rng.uniform(-0.5, 0.5, (64, 64)).astype(np.float32)}
    nodes = [
        node("MatMul", ["x", "w"], ["q"]),
        node("Transpose", ["q"], ["k"], perm=[1, 0]),
        node("MatMul", ["q", "k"], ["one"]),
        node("MatMul", ["k", "q"], ["other"]),
        *(node("Relu", [name], [f"{name}+"]) for name in ("one", "other")),
        node("Add", ["one+", "other+"], ["sum"]),
        node("Gelu", ["q"], ["g"]),
        node("Add", ["sum", "g"], ["y"]),
    ]
    proto = model(nodes, {"x": (64, 64)}, ["y"], weights)
    kinds = compile(proto, bits=40, scale=SCALE, smooth="piecewise", calibration=[samples(proto)])
    assert kinds.program.ring_bits == 40


def test_a_value_beyond_its_ring_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privet.compiler.executor.widths.MOST_SPARE", 0)
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("Gelu", ["h"], ["y"])]
    proto = model(nodes, {"x": (1, 4)}, ["y"], {"w": np.ones((4, 4), np.float32)})
    near, far = ({"x": np.full((1, 4), value, np.float32)} for value in (50.0, 100.0))
    compilation = compile(
        proto,
        calibration=[near],
        ranges={"x": 100.0},
        margin=1.0,
        bits=RING,
        scale=SCALE,
        smooth="piecewise",
    )
    execute(compilation.program, compilation.weights, near)
    with pytest.raises(OverflowRisk, match="22 bits"):
        execute(compilation.program, compilation.weights, far)
