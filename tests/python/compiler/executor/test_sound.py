"""The bound on what a program's values can reach: no input within the public bound exceeds it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from tests.python.compiler.graph.networks import (
    SHAPE,
    SMOOTH,
    STEPS,
    in_reals,
    network,
    sizes_of_all,
    victim,
)
from tests.python.compiler.graph.single import Array, expected, model, node
from tests.simulated_errors import PrivateArithmetic

from privet.compiler.compile import Compiled, compile
from privet.compiler.executor import execute
from privet.compiler.graph import Graph
from privet.compiler.graph.operations.operation import LINEAR_ERROR
from privet.compiler.passes.ring_widths import ring_widths
from privet.compiler.program.build import integer_graph
from privet.errors import OverflowRisk, UnsupportedModel
from privet.suites import Gmw

ROOM: dict[str, Any] = {"bits": 50, "scale": 6, "headroom": 36}


def extremes(compiled: Compiled, rng: np.random.Generator) -> list[Array]:
    """Inputs at the edge of the bound: by the signs of weights, all of one sign, and at random."""
    (entry,) = compiled.program.inputs
    shape = compiled.program.values[entry.value].shape
    size = int(np.prod(shape))
    signs = [np.ones(size), -np.ones(size), np.zeros(size)]
    for tensor in compiled.weights.tensors.values():
        signs.append(np.resize(np.where(tensor.reshape(-1) < 0, -1.0, 1.0), size))
    signs += [rng.choice([-1.0, 1.0], size) for _ in range(6)]
    signs += [rng.uniform(-1.0, 1.0, size) for _ in range(3)]
    return [(entry.magnitude * sign).reshape(shape) for sign in signs]


def exceeds(compiled: Compiled, limits: list[int | None], rng: np.random.Generator) -> list[str]:
    """Where some extreme input goes beyond these limits, in the clear or privately."""
    names = set()
    for x in extremes(compiled, rng):
        for arithmetic in (None, PrivateArithmetic("one-bit", rng)):
            try:
                run = execute(compiled.program, compiled.weights, [x], arithmetic)
            except OverflowRisk:
                continue
            for id, (magnitude, limit) in enumerate(zip(run.magnitudes, limits, strict=True)):
                if limit is not None and magnitude > limit:
                    names.add(f"value {id}")
    return sorted(names)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5),
    sizes_of_all(),
    st.integers(0, 1 << 30),
)
def test_no_input_within_its_bound_exceeds_the_sound_bound(
    steps: list[str], sizes: dict[str, str], seed: int
) -> None:
    sample = [np.full(SHAPE, 0.5, np.float32)]
    try:
        compiled = compile(network(steps, STEPS, sizes, seed), calibration=sample, **ROOM)
    except OverflowRisk:
        reject()
    limits = [layer.sound for layer in compiled.ranges().layers]
    assert not exceeds(compiled, limits, np.random.default_rng(seed))


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(SMOOTH)), min_size=1, max_size=4),
    sizes_of_all(),
    st.integers(0, 1 << 30),
    st.sampled_from(["polynomial", "function"]),
)
def test_no_input_exceeds_the_sound_bound_with_smooth_functions(
    steps: list[str], sizes: dict[str, str], seed: int, smooth: str
) -> None:
    sample = [np.full(SHAPE, 0.5, np.float32)]
    try:
        compiled = compile(
            network(steps, SMOOTH, sizes, seed), calibration=sample, smooth=smooth, **ROOM
        )
    except (OverflowRisk, UnsupportedModel):
        reject()
    limits = [layer.sound for layer in compiled.ranges().layers]
    assert not exceeds(compiled, limits, np.random.default_rng(seed))


def test_what_calibration_measured_is_exceeded() -> None:
    """The control: a bound by samples, with its margin, does not hold for every input."""
    compiled = compile(victim())
    limits: list[int | None] = [2 * layer.measured for layer in compiled.ranges().layers]
    assert exceeds(compiled, limits, np.random.default_rng(0))


@pytest.mark.parametrize("kind", ["dense", "conv"])
def test_the_bound_of_one_layer_is_reached(kind: str) -> None:
    """By the input that has the signs of its weights."""
    rng = np.random.default_rng(3)
    shape: tuple[int, ...]
    if kind == "dense":
        weight = rng.standard_normal((6, 4)).astype(np.float32)
        nodes, shape = [node("MatMul", ["x", "w"], ["y"])], (1, 6)
    else:
        weight = rng.standard_normal((4, 2, 3, 3)).astype(np.float32)
        nodes, shape = [node("Conv", ["x", "w"], ["y"])], (1, 2, 3, 3)
    compiled = compile(model(nodes, {"x": shape}, ["y"], {"w": weight}))
    integers = next(t for name, t in compiled.weights.tensors.items() if name.endswith("weight"))
    columns = integers.T if kind == "dense" else integers.reshape(4, -1)
    worst = np.abs(columns).sum(axis=1).argmax()
    x = compiled.program.inputs[0].magnitude * np.sign(columns[worst]).reshape(shape)
    magnitude = execute(compiled.program, compiled.weights, [x]).magnitudes[-1]
    assert compiled.ranges().layers[-1].sound == magnitude + LINEAR_ERROR


def test_a_wrong_answer_within_the_bound_is_foreseen() -> None:
    """An input that the client may give leaves the ring: the owner is told before anybody asks."""
    compiled, x = compile(victim()), np.full((1, 784), 6.0)
    assert np.abs(x).max() <= compiled.program.inputs[0].magnitude
    with pytest.raises(OverflowRisk):
        execute(compiled.program, compiled.weights, [x])
    ranges = compiled.ranges()
    assert not ranges.is_sound
    assert next(layer.name for layer in ranges.layers if not layer.is_sound) == "the_gemm"


def test_more_bits_make_the_wrong_answer_right() -> None:
    bits = compile(victim()).ranges().bits_needed
    assert bits is not None
    compiled = compile(victim(), bits=bits, sound=True)
    x = np.full((1, 784), compiled.program.inputs[0].magnitude)
    outputs = execute(compiled.program, compiled.weights, [x]).outputs["y"]
    np.testing.assert_allclose(outputs, in_reals(victim(), x), rtol=1e-3, atol=2.0)
    with pytest.raises(OverflowRisk, match="sound"):
        compile(victim(), bits=bits - 1, sound=True)


def test_smaller_inputs_are_safe() -> None:
    compiled = compile(victim())
    share = compiled.ranges().safe_share()
    assert 0 < share < 1
    x = np.full((1, 784), float(share) * compiled.program.inputs[0].magnitude)
    outputs = execute(compiled.program, compiled.weights, [x]).outputs["y"]
    np.testing.assert_allclose(outputs, in_reals(victim(), x), rtol=1e-3, atol=2.0)


def a_function(*nodes: str) -> onnx.ModelProto:
    """A layer and functions of its results."""
    steps = [node("MatMul", ["x", "w"], ["t0"])]
    for number, operator in enumerate(nodes):
        steps.append(node(operator, [f"t{number}"], [f"t{number + 1}"]))
    weight = np.ones((4, 1), np.float32)
    return model(steps, {"x": (1, 4)}, [f"t{len(nodes)}"], {"w": weight})


NEAR = [
    np.array([row], np.float32)
    for row in ([0.5, -0.5, 0.5, -0.25], [-0.5, 0.5, -0.5, 0.25], [0] * 4)
]


@pytest.mark.parametrize("nodes", [["Exp"], ["Softplus", "Reciprocal"], ["Abs", "Sqrt", "Exp"]])
def test_functions_beyond_their_tables_are_not_sound(nodes: list[str]) -> None:
    """Tables go as far as samples with their margin, and an input within the bound goes further."""
    compiled = compile(a_function(*nodes), calibration=NEAR, smooth="piecewise")
    far = np.full((1, 4), compiled.program.inputs[0].magnitude, np.float32)
    output = execute(compiled.program, compiled.weights, [far]).outputs[f"t{len(nodes)}"]
    assert np.abs(output - expected(a_function(*nodes), {"x": far})[0]).max() > 0.1
    ranges = compiled.ranges()
    assert not ranges.is_sound
    with pytest.raises(OverflowRisk, match="beyond the function's table"):
        compile(a_function(*nodes), calibration=NEAR, smooth="piecewise", sound=True)
    near = np.float32(ranges.safe_share()) * far
    output = execute(compiled.program, compiled.weights, [near]).outputs[f"t{len(nodes)}"]
    np.testing.assert_allclose(
        output, expected(a_function(*nodes), {"x": near})[0], rtol=5e-3, atol=5e-3
    )


@pytest.mark.parametrize("nodes", [["Sigmoid"], ["Softplus"], ["Gelu"], ["HardSwish", "Tanh"]])
def test_functions_that_go_on_as_a_line_are_sound(nodes: list[str]) -> None:
    compiled = compile(a_function(*nodes), calibration=NEAR, smooth="piecewise", sound=True)
    far = np.full((1, 4), compiled.program.inputs[0].magnitude, np.float32)
    for x in (far, -far):
        output = execute(compiled.program, compiled.weights, [x]).outputs[f"t{len(nodes)}"]
        np.testing.assert_allclose(
            output, expected(a_function(*nodes), {"x": x})[0], rtol=2e-3, atol=2e-3
        )


def test_a_sum_of_narrow_values_counts_its_narrow_ring() -> None:
    """Two results of ReLUs fit their rings and their sum need not, however wide the program's."""
    nodes = [
        node("MatMul", ["x", "w"], ["a"]),
        node("Relu", ["a"], ["b"]),
        node("Neg", ["a"], ["c"]),
        node("Relu", ["c"], ["d"]),
        node("Add", ["b", "d"], ["y"]),
    ]
    compiled = compile(model(nodes, {"x": (1, 4)}, ["y"], {"w": np.eye(4, dtype=np.float32) * 300}))
    layers = compiled.ranges().layers
    assert layers[-1].ring_bits == 25
    assert all(layer.is_sound for layer in layers[:-1])
    assert not layers[-1].is_sound
    assert compiled.ranges(narrow=False).is_sound


def graph_and_plan(steps: list[str], seed: int) -> tuple[Graph, int, list[int]]:
    sizes = dict.fromkeys(("w", "b", "grouped", "fc", "channel", "full", "row"), "moderate")
    compiled = compile(network(steps, STEPS, sizes, seed))
    public = compiled.program.to_public_bytes()
    widths = Gmw(rounds="log").native(public).widths()
    return integer_graph(compiled.program, compiled.weights), compiled.program.ring_bits, widths


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=6), st.integers(0, 99))
def test_rings_are_those_of_the_parties(steps: list[str], seed: int) -> None:
    try:
        graph, ring_bits, planned = graph_and_plan(steps, seed)
    except OverflowRisk:
        reject()
    widths = ring_widths(graph, ring_bits)
    guarded = [min(width, ring_bits) for width in planned]
    assert [widths[id] for id in graph.values] == guarded
