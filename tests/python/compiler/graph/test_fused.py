"""Fused operators of ONNX Runtime beside what it computes with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from tests.python.compiler.graph.single import Array, check, constant, model, node, single

from privet.compiler.compile import compile
from privet.compiler.executor import execute
from privet.compiler.graph.onnx_fused import FUSED_DOMAIN, PARTS
from privet.errors import UnsupportedModel

ROOT = Path(__file__).parents[4]
EXPORTED = Path(__file__).parent / "exported_transformers"
ACTIVATED: dict[str, list[float]] = {
    "Relu": [],
    "Tanh": [],
    "Sigmoid": [],
    "LeakyRelu": [0.2],
    "HardSigmoid": [0.3, 0.4],
    "Clip": [-0.4, 0.7],
}
BYTE = np.array(128, np.uint8)
SIGNED = np.array(0, np.int8)


def fused(op: str, operands: Sequence[Any], **attributes: Any) -> onnx.ModelProto:
    """A model of one fused node, as `single` makes it."""
    return single(op, operands, domain=FUSED_DOMAIN, **attributes)


def step(size: float) -> Array:
    return np.array(size, np.float32)


def quantise(x: str, scale: str, output: str) -> onnx.NodeProto:
    return onnx.helper.make_node("QuantizeLinear", [x, scale, "p"], [output], f"of_{output}")


def levels(*shape: int, seed: int = 3, kind: type[np.generic] = np.int8) -> Array:
    low, high = (0, 256) if kind is np.uint8 else (-60, 60)
    return np.random.default_rng(seed).integers(low, high, shape).astype(kind)


@pytest.mark.parametrize("kind", ACTIVATED)
@pytest.mark.parametrize("is_added", [False, True])
def test_convolutions_with_an_activation(kind: str, is_added: bool) -> None:
    attributes = {"activation_params": ACTIVATED[kind]} if ACTIVATED[kind] else {}
    operands = [(1, 3, 6, 6), constant(4, 3, 3, 3), constant(4)]
    if is_added:
        operands.append(constant(1, 4, 6, 6, seed=2))
    proto = fused("FusedConv", operands, activation=kind, pads=[1] * 4, **attributes)
    check(proto, smooth="piecewise", units=32)


@pytest.mark.parametrize("kind", ["Relu", "LeakyRelu"])
def test_products_with_an_activation(kind: str) -> None:
    attributes = {"activation_alpha": 0.3} if ACTIVATED[kind] else {}
    operands = [(2, 8), constant(5, 8), constant(5)]
    check(fused("FusedGemm", operands, activation=kind, transB=1, alpha=0.5, **attributes))


@pytest.mark.parametrize(
    "transposes", [{"transA": 1}, {"transB": 1}, {"transA": 1, "transB": 1}, {}]
)
@pytest.mark.parametrize("op", ["FusedMatMul", "TransposeMatMul"])
def test_products_of_turned_tensors(op: str, transposes: dict[str, int]) -> None:
    shapes = [(2, 3, 4, 5), (2, 3, 5, 6)]
    sides = [
        (*shape[:-2], shape[-1], shape[-2]) if f"trans{side}" in transposes else shape
        for side, shape in zip("AB", shapes, strict=True)
    ]
    check(fused(op, sides, alpha=0.25, **transposes))
    check(fused(op, [sides[0], constant(*sides[1])], **transposes))


@pytest.mark.parametrize("op", ["Gelu", "FastGelu", "BiasGelu", "QuickGelu"])
def test_activations_of_transformers(op: str) -> None:
    bias = [constant(8)] if op in ("FastGelu", "BiasGelu") else []
    proto = fused(op, [(3, 8), *bias])
    proto.graph.node.append(node("MatMul", ["y0", "w"], ["z"]))
    proto.graph.initializer.append(onnx.numpy_helper.from_array(constant(8, 4), "w"))
    del proto.graph.output[:]
    proto.graph.output.append(onnx.helper.make_tensor_value_info("z", 1, (3, 4)))
    check(proto, smooth="piecewise", units=48)


@pytest.mark.parametrize("op", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
@pytest.mark.parametrize("has_bias", [False, True])
def test_norms_of_sums(op: str, has_bias: bool) -> None:
    shift = [constant(8, seed=4)] if op == "SkipLayerNormalization" else []
    bias = [constant(8, seed=5)] if has_bias else []
    operands = [(1, 4, 8), (1, 4, 8), 1 + constant(8, seed=3, spread=0.1), *shift, *bias]
    proto = fused(op, operands, epsilon=1e-5, outputs=4)
    proto.graph.node[0].output[1:3] = ["", ""]
    proto.graph.node.append(node("Add", ["y0", "y3"], ["z"]))
    del proto.graph.output[:]
    proto.graph.output.append(onnx.helper.make_tensor_value_info("z", 1, (1, 4, 8)))
    check(proto, smooth="piecewise", units=96)


@pytest.mark.parametrize("op", ["LayerNormalization", "SimplifiedLayerNormalization"])
def test_norms_in_versions_of_the_standard_that_have_none(op: str) -> None:
    shift = [constant(8, seed=4)] if op == "LayerNormalization" else []
    nodes = [
        node("Relu", ["x"], ["r"]),
        node(op, ["r", "g", *[f"b{i}" for i, _ in enumerate(shift)]], ["n"], domain=FUSED_DOMAIN),
        node("Mul", ["n", "x"], ["y"]),
    ]
    constants = {"g": 1 + constant(8, seed=3, spread=0.1)}
    constants |= {f"b{i}": value for i, value in enumerate(shift)}
    proto = model(nodes, {"x": (1, 4, 8)}, ["y"], constants, opset=16)
    proto.graph.node[1].domain = ""
    check(proto, smooth="piecewise", units=96)


@pytest.mark.parametrize("transposes", [{"transBatchA": 1}, {"transBatchA": 1, "transA": 1}])
def test_products_whose_first_axis_comes_later(transposes: dict[str, int]) -> None:
    shape = (4, 2, 3, 5) if len(transposes) == 1 else (5, 2, 3, 4)
    check(fused("FusedMatMul", [shape, (2, 3, 5, 6)], alpha=0.25, **transposes))
    heads = fused("FusedMatMul", [(2, 3, 4, 5), (6, 2, 3, 5)], transBatchB=1, transB=1)
    check(heads)


def attention(op: str, operands: Sequence[Any], **attributes: Any) -> onnx.ModelProto:
    return fused(op, operands, num_heads=2, **attributes)


@pytest.mark.parametrize("attributes", [{}, {"unidirectional": 1}, {"scale": 0.2}])
def test_attention_of_one_tensor(attributes: dict[str, Any]) -> None:
    operands = [(1, 5, 8), constant(8, 24), constant(24)]
    check(attention("Attention", operands, **attributes), smooth="piecewise", units=96)


def test_attention_with_a_constant_mask_and_bias() -> None:
    mask = np.array([[1, 2, 1, 0, -1]], np.int32)
    operands = [(1, 5, 8), constant(8, 24), constant(24), mask, "", constant(1, 2, 5, 5, seed=9)]
    check(attention("Attention", operands), smooth="piecewise", units=96)


def test_attention_with_a_private_mask() -> None:
    proto = attention("Attention", [(1, 5, 8), constant(8, 24), constant(24), (1, 5)])
    whole = onnx.TensorProto.INT64
    proto.graph.input[1].CopyFrom(onnx.helper.make_tensor_value_info("x3", whole, (1, 5)))
    cast = node("Cast", ["x3"], ["m"], to=onnx.TensorProto.INT32)
    attending = proto.graph.node.pop()
    attending.input[3] = "m"
    proto.graph.node.extend([cast, attending])
    inputs = {"x0": constant(1, 5, 8, seed=8), "x3": np.array([[1, 1, 1, 0, 0]])}
    check(proto, inputs, smooth="piecewise", units=128)


@pytest.mark.parametrize("form", ["bare", "bias", "scores"])
def test_attention_of_three_tensors(form: str) -> None:
    operands: list[Any] = [(1, 5, 8), (1, 6, 8), (1, 6, 8)]
    if form == "bias":
        operands.append(constant(24))
    if form == "scores":
        operands += ["", "", constant(1, 2, 5, 6, seed=9)]
    check(attention("MultiHeadAttention", operands), smooth="piecewise", units=96)


def test_rotations_by_position() -> None:
    angles = np.arange(8, dtype=np.float32)[:, None] / np.array([1.0, 10.0], np.float32)
    places = np.arange(5, dtype=np.int64)[None]
    caches = [np.cos(angles), np.sin(angles)]
    check(fused("RotaryEmbedding", [(1, 2, 5, 4), places, *caches]))


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_quantised_operators_of_two_tensors(op: str) -> None:
    proto = integers(op, [(2, 6), (2, 6)], [step(0.04), BYTE])
    check(proto, units=2.0**14 * 0.05)


@pytest.mark.parametrize("op", ["QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax"])
def test_quantised_activations(op: str) -> None:
    extra: dict[str, dict[str, Any]] = {
        "QLinearLeakyRelu": {"alpha": 0.1},
        "QLinearSoftmax": {"opset": 13, "axis": -1},
    }
    proto = integers(op, [(2, 6)], [step(0.02), BYTE], **extra.get(op, {}))
    check(proto, units=2.0**14 * 0.04, smooth="piecewise")


@pytest.mark.parametrize("op", ["QLinearAveragePool", "QLinearGlobalAveragePool"])
def test_quantised_averages(op: str) -> None:
    extra = {"kernel_shape": [2, 2]} if op == "QLinearAveragePool" else {}
    check(integers(op, [(1, 2, 6, 6)], [step(0.02), BYTE], **extra), units=2.0**14 * 0.05)


def integers(
    op: str, shapes: Sequence[tuple[int, ...]], steps: Sequence[Array], **attributes: Any
) -> onnx.ModelProto:
    """Private numbers, quantised, an operator on them, and what its result means."""
    nodes, inputs, constants = [], {}, {"s": step(0.03), "p": BYTE, "t": steps[0], "o": steps[1]}
    operand_names: list[str] = []
    for place, shape in enumerate(shapes):
        inputs[f"x{place}"] = shape
        nodes.append(quantise(f"x{place}", "s", f"q{place}"))
        operand_names += [f"q{place}", "s", "p"]
    nodes.append(node(op, [*operand_names, "t", "o"], ["r"], domain=FUSED_DOMAIN, **attributes))
    nodes.append(node("DequantizeLinear", ["r", "t", "o"], ["y"]))
    return model(nodes, inputs, ["y"], constants)


def test_quantised_parts_side_by_side() -> None:
    constants = {"s": step(0.03), "p": BYTE, "t": step(0.05)}
    operands = ["t", "p", "a", "s", "p", "b", "t", "p"]
    nodes = [
        quantise("x", "s", "a"),
        quantise("x", "t", "b"),
        node("QLinearConcat", operands, ["r"], axis=1, domain=FUSED_DOMAIN),
        node("DequantizeLinear", ["r", "t", "p"], ["y"]),
    ]
    proto = model(nodes, {"x": (2, 3)}, ["y"], constants)
    check(proto, units=2.0**14 * 0.06)


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("is_real", [False, True])
def test_quantised_products(has_bias: bool, is_real: bool) -> None:
    constants: dict[str, Any] = {"s": step(0.03), "p": BYTE, "w": levels(5, 8), "v": step(0.01)}
    constants |= {"z": SIGNED, "t": step(0.05)}
    if has_bias:
        constants["c"] = levels(5, seed=4).astype(np.int32) * 40
    behind = [] if is_real else ["t", "p"]
    operand_names = ["q", "s", "p", "w", "v", "z", "c" if has_bias else "", *behind]
    output = "y" if is_real else "r"
    product = node("QGemm", operand_names, [output], domain=FUSED_DOMAIN, transB=1, alpha=0.5)
    nodes = [node("QuantizeLinear", ["x", "s", "p"], ["q"]), product]
    if not is_real:
        nodes.append(node("DequantizeLinear", ["r", "t", "p"], ["y"]))
    whole = model(nodes, {"x": (2, 8)}, ["y"], constants)
    check(whole, units=2.0**14 * 0.08)


@pytest.mark.parametrize("columns", [8, 5])
@pytest.mark.parametrize("transpose", [0, 1])
def test_products_whose_columns_have_steps_of_their_own(columns: int, transpose: int) -> None:
    weights = levels(columns, 8) if transpose else levels(8, columns)
    constants: dict[str, Any] = {"s": step(0.03), "p": BYTE, "w": weights}
    constants |= {"v": np.geomspace(0.001, 0.03, columns).astype(np.float32)}
    constants |= {"z": np.zeros(columns, np.int8), "c": levels(columns, seed=4).astype(np.int32)}
    product = node("QGemm", ["q", "s", "p", "w", "v", "z", "c"], ["y"], domain=FUSED_DOMAIN)
    product.attribute.append(onnx.helper.make_attribute("transB", transpose))
    proto = model([quantise("x", "s", "q"), product], {"x": (2, 8)}, ["y"], constants)
    check(proto, units=2.0**14 * 0.05)


@pytest.mark.parametrize("has_point", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
def test_products_with_weights_of_few_bits(bits: int, has_point: bool) -> None:
    inner, columns, size = 48, 6, 32
    blocks = -(-inner // size)
    words = levels(columns, blocks, size * bits // 8, kind=np.uint8)
    scales = np.abs(constant(columns * blocks, spread=0.05))
    operands: list[Any] = [(3, inner), words, scales]
    if has_point:
        per_row = -(-blocks * bits // 8)
        operands.append(levels(columns * per_row, seed=6, kind=np.uint8))
    attributes = {"K": inner, "N": columns, "bits": bits, "block_size": size}
    check(fused("MatMulNBits", operands, **attributes), units=256)


def test_products_that_quantise_as_they_go() -> None:
    operands = [(2, 8), levels(8, 5), np.abs(constant(5, spread=0.02)), "", constant(5)]
    check(fused("DynamicQuantizeMatMul", operands), units=2.0**14 * 0.05)


def test_an_lstm_with_integer_weights() -> None:
    hidden, width = 4, 3
    operands = [
        (5, 1, width),
        levels(1, width, 4 * hidden),
        levels(1, hidden, 4 * hidden, seed=4),
        constant(1, 8 * hidden),
        *["", "", "", ""],
        *[np.array([0.01], np.float32), np.zeros(1, np.int8)],
        *[np.array([0.008], np.float32), np.zeros(1, np.int8)],
    ]
    proto = fused("DynamicQuantizeLSTM", operands, hidden_size=hidden)
    check(proto, smooth="piecewise", units=2.0**14 * 0.03)


@pytest.mark.parametrize(
    ("name", "operators"),
    [
        ("bert-eager-legacy", {"SkipLayerNormalization", "FusedMatMul", "Gelu"}),
        ("gpt2-eager-dynamo", {"SkipLayerNormalization", "FusedMatMul", "FastGelu"}),
        ("llama-eager-dynamo", {"FusedMatMul", "QuickGelu"}),
        ("masked-legacy", {"FusedMatMul"}),
        ("vit-legacy", {"SkipLayerNormalization", "FusedMatMul", "Gelu"}),
    ],
)
def test_transformers_that_onnx_runtime_optimised(
    name: str, operators: set[str], tmp_path: Path
) -> None:
    source, path = EXPORTED / f"{name}.onnx", tmp_path / "optimised.onnx"
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path)
    session = onnxruntime.InferenceSession(source, options)
    assert operators <= {onnx_node.op_type for onnx_node in onnx.load(path).graph.node}
    rng = np.random.default_rng(5)
    inputs = {}
    for entry in session.get_inputs():
        shape = [size if isinstance(size, int) else 1 for size in entry.shape]
        is_whole = entry.type == "tensor(int64)"
        values = rng.integers(0, 2, shape) if is_whole else rng.standard_normal(shape)
        inputs[entry.name] = values.astype(np.int64 if is_whole else np.float32)
    reference = session.run(None, inputs)[0]
    compiled = compile(path, calibration=[inputs], bits=44, smooth="piecewise")
    outputs = execute(compiled.program, compiled.weights, inputs).outputs
    np.testing.assert_allclose(next(iter(outputs.values())), reference, rtol=0, atol=0.02)


def test_the_page_of_operators_lists_what_is_taken_apart() -> None:
    page = (ROOT / "docs" / "reference" / "operators.md").read_text()
    assert [name for name in PARTS if f"`{name}`" not in page] == []


def test_parts_have_names_that_the_model_does_not_use() -> None:
    proto = fused("FusedMatMul", [(2, 4), constant(4, 3)], alpha=0.25)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(constant(3), "y0_alpha"))
    proto.graph.initializer.append(onnx.numpy_helper.from_array(constant(3), "y0_0_MatMul"))
    proto.graph.node.append(node("Add", ["y0", "y0_alpha"], ["a"]))
    proto.graph.node.append(node("Mul", ["a", "y0_0_MatMul"], ["z"]))
    del proto.graph.output[:]
    proto.graph.output.append(onnx.helper.make_tensor_value_info("z", 1, (2, 3)))
    check(proto)


ATTENDED = [(1, 5, 8), constant(8, 24), constant(24)]
LSTM = [(5, 1, 3), levels(3, 16), levels(4, 16), constant(1, 32), *4 * [""]]
LSTM += 2 * [np.array([0.01], np.float32), np.zeros(1, np.int8)]
PACKED = [(3, 32), levels(6, 1, 16, kind=np.uint8), constant(6)]
BITS = {"K": 32, "N": 6, "bits": 4, "block_size": 32}
OTHERS: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "past": ("Attention", [*ATTENDED, "", (2, 1, 2, 3, 4)], {"num_heads": 2}),
    "counts": ("Attention", [*ATTENDED, np.array([3], np.int32)], {"num_heads": 2}),
    "no heads": ("Attention", ATTENDED, {}),
    "heads in words": ("Attention", ATTENDED, {"num_heads": "two"}),
    "scale in words": ("Attention", ATTENDED, {"num_heads": 2, "scale": "small"}),
    "sizes": ("Attention", ATTENDED, {"num_heads": 2, "qkv_hidden_sizes": 8}),
    "causal": ("MultiHeadAttention", 3 * [(1, 5, 8)], {"num_heads": 2, "unidirectional": 1}),
    "softplus": ("FusedConv", [(1, 3, 6, 6), constant(4, 3, 3, 3)], {"activation": "Softplus"}),
    "numbered": ("FusedConv", [(1, 3, 6, 6), constant(4, 3, 3, 3)], {"activation": 1}),
    "no UTF-8": ("FusedConv", [(1, 3, 6, 6), constant(4, 3, 3, 3)], {"activation": b"\xff"}),
    "no block": ("MatMulNBits", PACKED, {**BITS, "block_size": 0}),
    "real size": ("MatMulNBits", PACKED, {**BITS, "K": 32.0}),
    "wide levels": ("MatMulNBits", [PACKED[0], levels(6, 1, 16, kind=np.int32), PACKED[2]], BITS),
    "flat weights": ("DynamicQuantizeLSTM", LSTM, {"hidden_size": 4}),
    "scaled": (
        "RotaryEmbedding",
        [(1, 2, 5, 4), levels(1, 5), *2 * [constant(9, 2)]],
        {"scale": 2.0},
    ),
}


@pytest.mark.parametrize("form", OTHERS)
def test_other_forms_are_refused_by_name(form: str) -> None:
    op, operands, attributes = OTHERS[form]
    with pytest.raises(UnsupportedModel, match="fused operator of ONNX Runtime"):
        compile(fused(op, operands, **attributes), bits=44)


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearLeakyRelu", "QGemm"])
def test_results_of_a_type_that_is_not_said_are_refused(op: str) -> None:
    proto = integers("QLinearAdd", 2 * [(2, 6)], [step(0.04), BYTE])
    (target,) = (entry for entry in proto.graph.node if entry.domain == FUSED_DOMAIN)
    target.op_type = op
    reads = {"QLinearAdd": 7, "QLinearLeakyRelu": 4, "QGemm": 8}[op]
    operands = [*target.input, "p", "s"][:reads]
    target.ClearField("input")
    target.input.extend(operands)
    with pytest.raises(UnsupportedModel, match="fused operator of ONNX Runtime"):
        compile(proto, bits=44)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_quantised_softmax_over_any_axis(axis: int) -> None:
    proto = integers("QLinearSoftmax", [(2, 3, 4)], [step(0.01), BYTE], opset=13, axis=axis)
    check(proto, units=2.0**14 * 0.04, smooth="piecewise")


def test_quantised_softmax_over_several_axes_is_refused() -> None:
    proto = integers("QLinearSoftmax", [(2, 3, 4)], [step(0.01), BYTE], opset=12, axis=1)
    with pytest.raises(UnsupportedModel, match="fused operator of ONNX Runtime"):
        compile(proto, bits=44)


def test_dead_nodes_without_inputs_are_not_looked_at() -> None:
    inputs = {"x": constant(2, 4)}
    proto = model([node("Relu", ["x"], ["y"])], {"x": (2, 4)}, ["y"])
    proto.opset_import.append(onnx.helper.make_opsetid(FUSED_DOMAIN, 1))
    for op in ("Identity", "Gelu"):
        proto.graph.node.append(onnx.helper.make_node(op, [], [op], domain=FUSED_DOMAIN))
    check(proto, inputs, wanted=[np.maximum(inputs["x"], 0)])
