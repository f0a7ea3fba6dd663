"""Attention and normalisation inside a network against ONNX Runtime, in the forms of exporters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import (
    Array,
    constant,
    expected,
    model,
    node,
    samples,
    single,
)

from privet.compiler.compile import Compiled, compile
from privet.compiler.executor import execute
from privet.errors import UnsupportedModel

UNIT = 2.0**-12


def check(
    proto: onnx.ModelProto,
    *,
    units: float = 24,
    spread: float = 1.0,
    inputs: Mapping[str, Array] | None = None,
) -> Compiled:
    """Asserts that the program with lines agrees with another runtime to `units` of `2^-12`."""
    feeds = dict(inputs or samples(proto, spread=spread))
    compiled = compile(proto, bits=48, calibration=[feeds], smooth="piecewise")
    outputs = execute(compiled.program, compiled.weights, feeds).outputs
    for output, array in zip(proto.graph.output, expected(proto, feeds), strict=True):
        allowed = units * UNIT * max(1.0, float(np.abs(array).max()))
        np.testing.assert_allclose(outputs[output.name], array, rtol=0, atol=allowed)
    return compiled


def times_two(nodes: list[Any]) -> list[Any]:
    """With a product of two private tensors behind, so that no client computes the last node."""
    return [*nodes, node("Mul", ["s", "x"], ["y"])]


@pytest.mark.parametrize(("shape", "axis"), [((3, 9), -1), ((2, 4, 5), 1), ((1, 2, 6, 6), -1)])
@pytest.mark.parametrize("spread", [0.3, 1.0, 6.0])
def test_softmax(shape: tuple[int, ...], axis: int, spread: float) -> None:
    proto = model(times_two([node("Softmax", ["x"], ["s"], axis=axis)]), {"x": shape}, ["y"])
    check(proto, spread=spread)


def test_softmax_before_opset_13_takes_all_axes_from_one_on() -> None:
    nodes = times_two([node("Softmax", ["x"], ["s"], axis=1)])
    check(model(nodes, {"x": (2, 3, 4)}, ["y"], opset=11))


CAUSAL = np.triu(np.ones((6, 6), bool), 1)


@pytest.mark.parametrize("low", [-np.inf, np.finfo(np.float32).min, -1e4])
@pytest.mark.parametrize("form", ["Add", "Where", "guarded"])
def test_masked_elements_are_nothing(low: float, form: str) -> None:
    if form == "Add":
        mask = np.where(CAUSAL, np.float32(low), np.float32(0))
        nodes = [node("Add", ["x", "mask"], ["m"])]
        constants: dict[str, Any] = {"mask": mask}
    else:
        nodes = [node("Where", ["keep", "x", "low"], ["m"])]
        constants = {"keep": ~CAUSAL, "low": np.float32(low)}
    nodes.append(node("Softmax", ["m"], ["s" if form != "guarded" else "t"], axis=-1))
    if form == "guarded":
        constants["zero"] = np.float32(0)
        nodes += [node("IsNaN", ["t"], ["nan"]), node("Where", ["nan", "zero", "t"], ["s"])]
    net = model([*nodes, node("MatMul", ["s", "x"], ["y"])], {"x": (1, 2, 6, 6)}, ["y"], constants)
    compiled = check(net)
    other = samples(net)["x"]
    other[..., 1:, :] += 3.0
    reference = [
        execute(compiled.program, compiled.weights, {"x": x}).outputs["y"][0, :, 0]
        for x in (samples(net)["x"], other)
    ]
    # The first row sees itself alone.
    np.testing.assert_allclose(reference[0], reference[1], atol=2 * UNIT)


def test_masks_that_are_too_weak_are_refused() -> None:
    mask = np.where(CAUSAL, np.float32(-np.inf), np.float32(0))
    nodes = times_two([node("Add", ["x", "mask"], ["m"]), node("Softmax", ["m"], ["s"])])
    proto = model(nodes, {"x": (6, 6)}, ["y"], {"mask": mask})
    with pytest.raises(UnsupportedModel, match="what it masks reaches"):
        check(proto, spread=200.0)
    others = [node("Add", ["x", "mask"], ["m"]), node("Relu", ["m"], ["y"])]
    with pytest.raises(UnsupportedModel, match="masked tensor"):
        check(model(others, {"x": (6, 6)}, ["y"], {"mask": mask}))


@pytest.mark.parametrize(("spread", "width"), [(0.05, 16), (0.3, 24), (1.0, 16), (8.0, 24)])
def test_layer_normalization(spread: float, width: int) -> None:
    x, scale, bias = (2, 3, width), constant(width) + 1, constant(width)
    check(single("LayerNormalization", [x, scale, bias]), spread=spread, units=48)


def test_rms_normalization() -> None:
    check(single("RMSNormalization", [(2, 3, 16), constant(16) + 1], opset=23), units=48)


@pytest.mark.parametrize("square", ["Pow", "Mul"])
@pytest.mark.parametrize("division", ["Div", "Reciprocal", "power"])
def test_layer_normalization_in_parts(square: str, division: str) -> None:
    """As exporters before opset 17 write it, with the difference once or twice."""
    constants: dict[str, Any] = {"two": np.float32(2), "eps": np.float32(1e-5)}
    constants |= {"scale": constant(16) + 1, "bias": constant(16), "half": np.float32(-0.5)}
    nodes = [
        node("ReduceMean", ["x"], ["mean"], axes=[-1]),
        node("Sub", ["x", "mean"], ["d"]),
        node("Sub", ["x", "mean"], ["again"]),
        node("Pow", ["d", "two"], ["sq"]) if square == "Pow" else node("Mul", ["d", "d"], ["sq"]),
        node("ReduceMean", ["sq"], ["var"], axes=[-1]),
        node("Add", ["var", "eps"], ["more"]),
    ]
    if division == "power":
        nodes += [node("Pow", ["more", "half"], ["r"]), node("Mul", ["again", "r"], ["n"])]
    else:
        nodes.append(node("Sqrt", ["more"], ["root"]))
        if division == "Div":
            nodes.append(node("Div", ["again", "root"], ["n"]))
        else:
            nodes += [node("Reciprocal", ["root"], ["r"]), node("Mul", ["again", "r"], ["n"])]
    nodes += [node("Mul", ["n", "scale"], ["scaled"]), node("Add", ["scaled", "bias"], ["y"])]
    inputs = {name for entry in nodes for name in entry.input}
    tensors = {name: array for name, array in constants.items() if name in inputs}
    check(model(nodes, {"x": (2, 3, 16)}, ["y"], tensors, opset=13), units=48)


def test_division_by_a_private_tensor_that_keeps_its_sign() -> None:
    proto = single("Div", [(2, 5), (2, 1)])
    inputs = samples(proto)
    inputs["x1"] = np.array([[0.6], [40.0]], np.float32)
    check(proto, inputs=inputs)


@pytest.mark.parametrize("heads", [(4, 4), (4, 2), (4, 1)])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("flat", [False, True])
def test_attention(heads: tuple[int, int], causal: int, flat: bool) -> None:
    q, kv = heads
    shapes = (
        [(1, h, 5, 8) for h in (q, kv, kv)] if not flat else [(1, 5, 8 * h) for h in (q, kv, kv)]
    )
    counts: dict[str, Any] = {"q_num_heads": q, "kv_num_heads": kv} if flat else {}
    proto = single("Attention", list(shapes), opset=23, is_causal=causal, **counts)
    compiled = check(proto)
    kinds = [operation.op for operation in compiled.program.operations]
    assert kinds.count("matmul") == 2


def test_a_private_mask_of_attention_is_refused_with_what_to_export() -> None:
    proto = single("Attention", [*[(1, 2, 5, 8)] * 3, (5, 5)], opset=23)
    with pytest.raises(UnsupportedModel, match=r"mask depends on .* opset below 23"):
        check(proto)


def test_attention_is_normalised_after_the_product_where_that_is_cheaper() -> None:
    for columns, last in ((4, ["mul", "reshape"]), (12, ["matmul", "reshape"])):
        shapes = [(1, 1, 8, 4), (1, 1, 8, 4), (1, 1, 8, columns)]
        compiled = check(single("Attention", list(shapes), opset=23))
        assert [operation.op for operation in compiled.program.operations][-2:] == last


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("width", [0, 4])
def test_rotary_embedding(interleaved: int, width: int) -> None:
    angle = np.random.default_rng(0).uniform(-3, 3, (1, 5, (width or 8) // 2)).astype(np.float32)
    operands = [(1, 2, 5, 8), np.cos(angle), np.sin(angle)]
    check(
        single(
            "RotaryEmbedding",
            operands,
            opset=23,
            interleaved=interleaved,
            rotary_embedding_dim=width,
        )
    )


@pytest.mark.parametrize(
    ("equation", "a", "b"),
    [
        ("bhid,bhjd->bhij", (1, 2, 5, 4), (1, 2, 6, 4)),
        ("bhij,bhjd->bihd", (1, 2, 5, 6), (1, 2, 6, 4)),
        ("bij,jk->bik", (2, 5, 6), (6, 3)),
        ("i,j->ji", (5,), (6,)),
        ("...ij,jk->...ik", (1, 2, 3, 4), (4, 5)),
        ("...j,...jk->k...", (2, 4), (3, 2, 4, 5)),
        ("bij,ij", (2, 3, 4), (3, 4)),
        ("bca,jk->kc", (2, 3, 4), (5, 6)),
        ("bij,k->", (2, 3, 4), (5,)),
    ],
)
@pytest.mark.parametrize("private", ["both", "first", "second"])
def test_einsum(equation: str, a: tuple[int, ...], b: tuple[int, ...], private: str) -> None:
    operands: list[Any] = [a, b]
    if private != "both":
        place = 1 if private == "first" else 0
        operands[place] = constant(*operands[place])
    check(single("Einsum", operands, equation=equation))


@pytest.mark.parametrize("private", [(0, 1, 2), (0, 2), (1,)])
@pytest.mark.parametrize("equation", ["bi,kij,bj->bk", "bi,kij,bj", "bi,...ij,bj->b..."])
def test_einsum_of_three(equation: str, private: tuple[int, ...]) -> None:
    operands: list[Any] = [(2, 3), (4, 3, 5), (2, 5)]
    for place in {0, 1, 2}.difference(private):
        operands[place] = constant(*operands[place])
    check(single("Einsum", operands, equation=equation), units=64)


@pytest.mark.parametrize("equation", ["abc->cab", "a...->...", "bca", "abc->"])
def test_einsum_of_one(equation: str) -> None:
    check(single("Einsum", [(2, 3, 4)], equation=equation))


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [("ii,i->i", [(3, 3), (3,)]), ("ii", [(3, 3)]), ("ij,j->i", [(2, 3), (3,), (3,)])],
)
def test_other_equations_are_refused(equation: str, shapes: list[Any]) -> None:
    with pytest.raises(UnsupportedModel, match="equation"):
        check(single("Einsum", shapes, equation=equation))


def test_a_gate_of_one_branch_times_the_other() -> None:
    nodes = [
        node("Sigmoid", ["a"], ["gate"]),
        node("Mul", ["a", "gate"], ["silu"]),
        node("Mul", ["silu", "b"], ["y"]),
    ]
    compiled = check(model(nodes, {"a": (2, 4), "b": (2, 4)}, ["y"]))
    kinds = [operation.op for operation in compiled.program.operations]
    assert kinds.count("piecewise") == 1
    assert kinds.count("mul") == 1


@pytest.mark.parametrize("both_private", [False, True])
def test_a_constant_condition_chooses_elements(both_private: bool) -> None:
    keep = np.random.default_rng(0).random((3, 4)) < 0.5
    other: Any = (2, 3, 4) if both_private else constant(4)
    check(single("Where", [keep, (2, 3, 4), other]))
