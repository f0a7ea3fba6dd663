"""What the public half tells of the weights: nothing but the fields listed in SECURITY.md.

Two models of one architecture, whatever their weights, must have the same public half apart from
those fields. The check is shown to catch two rules that looked at weights.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from tests.python.compiler.graph.networks import SHAPE, SMOOTH, STEPS, network, sizes_of_all
from tests.python.compiler.graph.single import model, node

import privet.compiler.passes
from privet import suites, zoo
from privet.compiler.compile import Compiled, compile
from privet.compiler.graph import Graph, Node
from privet.compiler.graph.operations import ChannelAffine, Conv2d
from privet.compiler.passes.fold_batchnorm import fold_batchnorm
from privet.compiler.passes.rewriter import Rewriter
from privet.errors import OverflowRisk, UnsupportedModel

ROOM: dict[str, Any] = {"bits": 50, "scale": 6}


def outline(compiled: Compiled) -> dict[str, Any]:
    """The public half without the fields that may depend on weights or on calibration."""
    document: dict[str, Any] = json.loads(compiled.program.to_public_bytes())
    del document["weights_commitment"], document["weight_bits"]
    for entry in document["inputs"]:
        del entry["magnitude"]
    for operation in document["operations"]:
        if operation["op"] == "polynomial":
            del operation["degree"]
    return document


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5),
    sizes_of_all(),
    sizes_of_all(),
    st.sampled_from([20, 28, 36]),
)
def test_no_weight_moves_the_public_half(
    steps: list[str], one: dict[str, str], other: dict[str, str], headroom: int
) -> None:
    """In rings wide enough for both; others are refused, which clients never see."""
    outlines = []
    for seed, sizes in enumerate((one, other)):
        sample = [np.full(SHAPE, 1e-3, np.float32)]
        try:
            compiled = compile(
                network(steps, STEPS, sizes, seed), headroom=headroom, calibration=sample, **ROOM
            )
        except OverflowRisk:
            reject()
        outlines.append(outline(compiled))
    assert outlines[0] == outlines[1]


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(SMOOTH)), min_size=1, max_size=4),
    sizes_of_all(),
    sizes_of_all(),
    st.sampled_from(["polynomial", "function"]),
)
def test_no_weight_moves_smooth_functions(
    steps: list[str], one: dict[str, str], other: dict[str, str], smooth: str
) -> None:
    """Nor the constants of functions that stay as they are."""
    outlines = []
    for seed, sizes in enumerate((one, other)):
        sample = [np.full(SHAPE, 1e-3, np.float32)]
        options = {"headroom": 36, "calibration": sample, "smooth": smooth, **ROOM}
        try:
            compiled = compile(network(steps, SMOOTH, sizes, seed), **options)
        except (OverflowRisk, UnsupportedModel):
            reject()
        outlines.append(outline(compiled))
    assert outlines[0] == outlines[1]


def reweighted(source: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """The model with other weights: other sizes, other signs, and zeros."""
    proto, rng = onnx.ModelProto(), np.random.default_rng(seed)
    proto.CopyFrom(source)
    for tensor in proto.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        if array.dtype == np.float32 and array.size > 1:
            factor = rng.choice(np.asarray([0, 0.01, -0.3, 0.9], np.float32), array.shape)
            values = np.abs(array) if "var" in tensor.name else array * factor
            tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
    return proto


@pytest.mark.parametrize(
    ("name", "suite"),
    [
        *((name, "gmw") for name in ("m1", "hinet", "mnist-1", "mnist-3")),
        *((name, "stream") for name in ("m1-silu", "nn5", "heart")),
        *((name, "ckks") for name in ("mnist-2", "nn5", "mlp-square")),
    ],
)
def test_no_weight_moves_the_public_half_of_a_zoo_model(
    name: str, suite: str, tmp_path: Path
) -> None:
    source = onnx.load(zoo.build(name, tmp_path))
    options = vars(suites.suite_type(suite).precision) | {"headroom": 9}
    outlines = [
        outline(compile(m, **options)) for m in (source, *(reweighted(source, s) for s in (1, 2)))
    ]
    assert outlines[0] == outlines[1] == outlines[2]


def factors(last: float) -> onnx.ModelProto:
    """The outside review's two models: they differ in one factor of a batch normalisation."""
    rng = np.random.default_rng(1)
    constants: dict[str, Any] = {
        "w1": rng.standard_normal((4, 3, 3, 3)).astype(np.float32) * np.float32(0.2),
        "w2": rng.standard_normal((2, 4, 1, 1)).astype(np.float32) * np.float32(0.2),
        "s": np.asarray([0.9, 0.9, 0.9, last], np.float32),
        "zero": np.zeros(4, np.float32),
        "one": np.ones(4, np.float32),
    }
    nodes = [
        node("Conv", ["x", "w1"], ["a"]),
        node("Relu", ["a"], ["b"]),
        node("BatchNormalization", ["b", "s", "zero", "zero", "one"], ["d"], epsilon=0.0),
        node("Conv", ["d", "w2"], ["y"]),
    ]
    return model(nodes, {"x": (1, 3, 8, 8)}, ["y"], constants)


def test_one_factor_of_a_batch_normalisation_is_not_told() -> None:
    one, other = (compile(factors(last)).program for last in (0.51, 0.49))
    alike = replace(other, weights_commitment=one.weights_commitment)
    assert alike.to_public_bytes() == one.to_public_bytes()


def test_whether_a_comparison_is_taken_from_one_is_not_told() -> None:
    """Which saves a product where an operator's definition has the one, as that of `Not`."""

    def chosen(total: float) -> dict[str, Any]:
        nodes = [
            node("GreaterOrEqual", ["x", "bound"], ["c"]),
            node("Cast", ["c"], ["n"], to=onnx.TensorProto.FLOAT),
            node("Sub", ["total", "n"], ["s"]),
            node("Mul", ["s", "x"], ["y"]),
        ]
        constants: dict[str, Any] = {"bound": np.full((1, 5), 0.1, np.float32)}
        constants["total"] = np.float32(total)
        proto = model(nodes, {"x": (1, 5)}, ["y"], constants)
        return outline(compile(proto, calibration=[np.ones((1, 5), np.float32)]))

    assert chosen(1.0) == chosen(0.875)


def folds_where_no_factor_is_small(graph: Graph) -> Graph:
    """The rule as it was: a layer takes the factors in front of it in unless one is small."""
    rewriter = Rewriter(graph)

    def rewrite(entry: Node) -> int:
        source = rewriter.source(rewriter.new[entry.inputs[0]])
        change = None if source is None else source.operation
        if (
            source is not None
            and isinstance(entry.operation, Conv2d)
            and isinstance(change, ChannelAffine)
            and np.abs(change.factor).min() >= 0.5
        ):
            weight = entry.operation.weight * change.factor[:, None, None]
            return rewriter.add(entry, replace(entry.operation, weight=weight), *source.inputs)
        return rewriter.copy(entry)

    return fold_batchnorm(rewriter.walk(rewrite))


def test_the_check_catches_a_rule_on_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privet.compiler.passes, "fold_batchnorm", folds_where_no_factor_is_small)
    assert outline(compile(factors(0.51))) != outline(compile(factors(0.49)))


def test_the_check_catches_a_rule_on_ranges() -> None:
    """Headroom that was measured is told, as SECURITY.md says; headroom that was given is not."""
    nodes = [node("Gemm", ["x", "fc"], ["a"]), node("Gemm", ["a", "fc"], ["y"])]

    def chain(size: float, **options: Any) -> dict[str, Any]:
        weights = {"fc": np.full((5, 5), size, np.float32)}
        return outline(compile(model(nodes, {"x": (1, 5)}, ["y"], weights), bits=50, **options))

    assert chain(0.1) != chain(40.0)
    assert chain(0.1, headroom=20) == chain(40.0, headroom=20)


def sizes(spread: float, **options: Any) -> dict[str, Any]:
    """A product whose weights are of that size, and a comparison."""
    weights = {"fc": np.full((5, 5), spread, np.float32)}
    nodes = [node("Gemm", ["x", "fc"], ["a"]), node("Relu", ["a"], ["y"])]
    rng = np.random.default_rng(3)
    sample = [rng.uniform(0.5, 1.0, (1, 5)).astype(np.float32) for _ in range(4)]
    proto = model(nodes, {"x": (1, 5)}, ["y"], weights)
    return outline(compile(proto, calibration=sample, **options))


def test_widths_tell_nothing_of_models_that_the_usual_ones_fit() -> None:
    """Others are the exception that SECURITY.md states: the control tells sizes of weights."""
    assert sizes(0.3) == sizes(0.5)
    assert sizes(0.3)["ring_bits"] == 37
    assert sizes(1e-3) != sizes(0.5)


def test_with_headroom_no_widths_are_chosen() -> None:
    assert sizes(0.3, headroom=12) == sizes(1e-2, headroom=12) == sizes(40.0, headroom=12)
    with pytest.raises(OverflowRisk):
        sizes(1e-6, headroom=12)
    with pytest.raises(OverflowRisk):
        sizes(1e5, headroom=12)
