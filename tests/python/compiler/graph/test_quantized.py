"""Quantised models beside ONNX Runtime, which computes with their integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator
from onnxruntime import quantization
from onnxruntime.quantization import QuantFormat, QuantType
from tests.python.compiler.graph.single import Array, constant, expected, model, node

from privet.compiler.compile import Compiled, compile
from privet.compiler.executor import execute
from privet.errors import UnsupportedModel

ZOO = Path(__file__).resolve().parents[4] / "zoo" / "models"
FORMS: dict[str, dict[str, Any] | None] = {
    "uint8": {"quant_format": QuantFormat.QDQ, "activation_type": QuantType.QUInt8},
    "channels": {"quant_format": QuantFormat.QDQ, "per_channel": True},
    "operators": {"quant_format": QuantFormat.QOperator, "activation_type": QuantType.QUInt8},
    "dynamic": None,
}


class Samples(quantization.CalibrationDataReader):  # type: ignore[misc]
    """The samples that the zoo has for calibration."""

    def __init__(self, name: str) -> None:
        self._left = iter([{name: x} for x in digits()])

    def get_next(self) -> dict[str, Array] | None:
        return next(self._left, None)


def digits() -> list[Array]:
    return list(np.load(ZOO / "digits-cnn-samples.npy").reshape(-1, 1, 1, 8, 8).astype(np.float32))


def outputs(compiled: Compiled, samples: list[Array]) -> Array:
    outputs = [execute(compiled.program, compiled.weights, [x]).outputs for x in samples]
    return np.concatenate([next(iter(output.values())) for output in outputs])


def by_runtime(path: Path, samples: list[Array]) -> Array:
    options = onnxruntime.SessionOptions()
    # Else sums of products saturate at 16 bits on processors without VNNI.
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(path, options)
    name = session.get_inputs()[0].name
    return np.concatenate([np.asarray(session.run(None, {name: x})[0]) for x in samples])


KEPT: dict[str, Any] = {"uint8": (4, 14), "channels": (4, 14), "operators": (1, 11)}
"""By form, how many of the model's quantisations stay, and of how many."""


@pytest.mark.parametrize("form", FORMS)
def test_digits_quantised_by_onnx_runtime(form: str, tmp_path: Path, record_property: Any) -> None:
    source, path = ZOO / "digits-cnn.onnx", tmp_path / "quantised.onnx"
    options = FORMS[form]
    if options is None:
        quantization.quantize_dynamic(source, path)
    else:
        name = onnx.load(source).graph.input[0].name
        quantization.quantize_static(source, path, Samples(name), **options)
    data = np.load(ZOO / "digits-cnn.npz")
    samples = list(data["inputs"].astype(np.float32).reshape(-1, 1, 1, 8, 8))[::3]
    compiled = compile(path, calibration=digits(), bits=37, scale=12)
    fixed, integers = outputs(compiled, samples), by_runtime(path, samples)
    floats = by_runtime(source, samples)
    for title, other in (("quantised", integers), ("float", floats)):
        record_property(f"distance to {title}", float(np.abs(fixed - other).max()))
    assert np.array_equal(fixed.argmax(1), integers.argmax(1))
    assert np.abs(fixed - floats).max() <= np.abs(integers - floats).max()
    # Ranges that begin at zero are in the place of the model's ReLUs, and no other is left.
    assert compiled.quantized == KEPT.get(form)
    plain = compile(source, calibration=digits(), bits=37, scale=12).program
    assert [operation.op for operation in compiled.program.operations] == [
        operation.op for operation in plain.operations
    ]


def check(
    proto: onnx.ModelProto, x: Array, *, error: float, wanted: Array | None = None
) -> Compiled:
    name = proto.graph.input[0].name
    compiled = compile(proto, bits=50, scale=14, calibration=[{name: x}])
    (output,) = execute(compiled.program, compiled.weights, {name: x}).outputs.values()
    wanted = expected(proto, {name: x})[0] if wanted is None else wanted
    np.testing.assert_allclose(output, wanted, rtol=0, atol=error)
    return compiled


def pair(zero: Any, step: float = 0.05) -> onnx.ModelProto:
    constants = {"s": np.float32(step), "z": zero}
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("Reshape", ["q", "flat"], ["r"]),
        node("DequantizeLinear", ["r", "s", "z"], ["y"]),
    ]
    return model(nodes, {"x": (2, 6)}, ["y"], {**constants, "flat": np.array([12])})


@pytest.mark.parametrize("zero", [np.uint8(0), np.uint8(120), np.int8(-128), np.int8(3)])
@pytest.mark.parametrize("spread", [2.0, 40.0])
def test_a_pair_saturates_where_calibration_does(zero: Any, spread: float) -> None:
    x = np.asarray(spread * np.random.default_rng(0).standard_normal((2, 6)), np.float32)
    # Half a step, and what may be beyond an end that is not kept.
    ends = 0.05 * np.array([255 if zero.dtype == np.uint8 else 127]) / 32
    compiled = check(pair(zero), x, error=0.026 + float(ends[0]))
    low = zero in (0, -128)
    assert compiled.quantized == ((1, 1) if low or spread > 9.0 else (0, 1))


def test_weights_with_a_scale_for_each_channel_and_of_four_bits() -> None:
    rng = np.random.default_rng(2)
    weight = onnx.helper.make_tensor(
        "w", onnx.TensorProto.INT4, [5, 3], rng.integers(-8, 8, 15).tolist()
    )
    nodes = [
        node("DequantizeLinear", ["w", "s"], ["f"], axis=1),
        node("MatMul", ["x", "f"], ["y"]),
    ]
    proto = model(nodes, {"x": (2, 5)}, ["y"], {"s": np.array([0.1, 0.2, 0.05], np.float32)})
    proto.graph.initializer.append(weight)
    x = constant(2, 5)
    (reference,) = ReferenceEvaluator(proto).run(None, {"x": x})
    check(proto, x, error=16 * 2.0**-14, wanted=np.asarray(reference))


def test_products_of_integers() -> None:
    rng = np.random.default_rng(3)
    constants: dict[str, Any] = {
        "s": np.float32(0.02),
        "z": np.uint8(117),
        "w": rng.integers(0, 255, (2, 3, 3, 3)).astype(np.uint8),
        "wz": np.uint8(128),
        "ws": np.float32(0.01),
        "b": rng.integers(-900, 900, 2).astype(np.int32),
        "ys": np.float32(0.1),
        "yz": np.uint8(128),
        "v": rng.integers(-128, 127, (8, 4)).astype(np.int8),
        "vz": np.int8(2),
        "flat": np.array([1, -1]),
    }
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("QLinearConv", ["q", "s", "z", "w", "ws", "wz", "ys", "yz", "b"], ["c"]),
        node("Reshape", ["c", "flat"], ["r"]),
        node("QLinearMatMul", ["r", "ys", "yz", "v", "ws", "vz", "ys", "yz"], ["m"]),
        node("DequantizeLinear", ["m", "ys", "yz"], ["y"]),
    ]
    proto = model(nodes, {"x": (1, 3, 4, 4)}, ["y"], constants)
    # Steps of 0.1 are rounded there and not here: half a step in the end, and of each operand.
    check(proto, constant(1, 3, 4, 4), error=0.05 + 8 * 0.05 * 1.3)
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("ConvInteger", ["q", "w", "z", "wz"], ["c"], pads=[1, 1, 1, 1]),
        node("Cast", ["c"], ["f"], to=1),
        node("Mul", ["f", "both"], ["y"]),
    ]
    proto = model(nodes, {"x": (1, 3, 4, 4)}, ["y"], {**constants, "both": np.float32(0.02 * 0.01)})
    check(proto, constant(1, 3, 4, 4), error=27 * 0.01 * 1.28)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([("QuantizeLinear", ["x", "s", "z"], "y")], "quantised integers"),
        (
            [("QuantizeLinear", ["x", "s", "z"], "q"), ("Cast", ["q"], "y")],
            "reads quantised integers",
        ),
        ([("QuantizeLinear", ["x", "many", "zeros"], "q"), ("Identity", ["q"], "y")], "whole"),
    ],
)
def test_what_is_refused(nodes: list[tuple[str, list[str], str]], words: str) -> None:
    constants: dict[str, Any] = {
        "s": np.float32(0.1),
        "z": np.uint8(3),
        "many": np.ones(4, np.float32),
        "zeros": np.zeros(4, np.uint8),
    }
    extra = {"Cast": {"to": 1}}
    protos = [node(op, inputs, [output], **extra.get(op, {})) for op, inputs, output in nodes]
    with pytest.raises(UnsupportedModel, match=words):
        compile(model(protos, {"x": (2, 4)}, ["y"], constants))


def test_fused_operators_are_refused_with_what_to_do() -> None:
    proto = model([node("Relu", ["x"], ["y"])], {"x": (2, 4)}, ["y"])
    proto.graph.node[0].op_type, proto.graph.node[0].domain = "QLinearWhere", "com.microsoft"
    proto.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(UnsupportedModel, match="QDQ"):
        compile(proto)


@pytest.mark.parametrize("last", ["Softmax", "Sigmoid"])
@pytest.mark.parametrize(("step", "is_left"), [(1 / 255, True), (0.6 / 255, False)])
def test_quantised_probabilities_are_left_to_the_client(
    last: str, step: float, is_left: bool
) -> None:
    """Where the range of integers is theirs; ONNX Runtime's quantiser ends a classifier so."""
    nodes = [
        node("MatMul", ["x", "w"], ["scores"]),
        node(last, ["scores"], ["p"]),
        node("QuantizeLinear", ["p", "step", "zero"], ["q"]),
        node("DequantizeLinear", ["q", "step", "zero"], ["y"]),
    ]
    constants: dict[str, Any] = {"w": constant(4, 3), "step": np.float32(step), "zero": np.uint8(0)}
    proto = model(nodes, {"x": (1, 4)}, ["y"], constants)
    rows = [3 * constant(1, 4, seed=seed) for seed in range(20)]
    compiled = compile(proto, calibration=rows, smooth="piecewise")
    operations = [operation.op for operation in compiled.program.operations]
    assert (operations == ["dense"]) == is_left
    for x in rows:
        (output,) = execute(compiled.program, compiled.weights, [x]).outputs.values()
        np.testing.assert_allclose(output, expected(proto, {"x": x})[0], rtol=0, atol=step)
