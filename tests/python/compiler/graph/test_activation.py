"""Relu, LeakyRelu, Clip and the steps left to the client."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import check, model, node, single

from privet.compiler.graph import import_model
from privet.errors import UnsupportedModel


@pytest.mark.parametrize("shape", [(), (7,), (2, 3), (1, 2, 3, 4), (2, 1, 2, 1, 3)])
def test_relu_of_any_rank(shape: tuple[int, ...]) -> None:
    check(single("Relu", [shape]))


@pytest.mark.parametrize("alpha", [None, 0.0, 0.2, 1.0, -0.5, 1.5])
@pytest.mark.parametrize("opset", [6, 16, 21])
@pytest.mark.parametrize("shape", [(), (7,), (1, 3, 4, 5)])
def test_leaky_relu(alpha: float | None, opset: int, shape: tuple[int, ...]) -> None:
    attributes: dict[str, Any] = {} if alpha is None else {"alpha": alpha}
    check(single("LeakyRelu", [shape], opset=opset, **attributes), units=2)


@pytest.mark.parametrize("low", [None, 0.0, -0.5, 0.25])
@pytest.mark.parametrize("high", [None, 6.0, 0.75])
@pytest.mark.parametrize("opset", [6, 10, 11, 13, 21])
def test_clip(low: float | None, high: float | None, opset: int) -> None:
    bounds: dict[str, Any] = {n: v for n, v in (("min", low), ("max", high)) if v is not None}
    operands: list[Any] = [(4, 9)]
    if opset < 11:
        proto = single("Clip", operands, opset=opset, **bounds)
    else:
        operands += ["" if v is None else np.float32(v) for v in (low, high)]
        proto = single("Clip", operands, opset=opset)
    x = np.linspace(-8, 8, 36, dtype=np.float32).reshape(4, 9)
    reference = np.clip(x, -np.inf if low is None else low, np.inf if high is None else high)
    check(proto, {"x0": x}, wanted=[reference], units=2)


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int64])
def test_clip_with_widest_numbers_is_no_clip(kind: Any) -> None:
    widest = np.finfo(kind) if kind is np.float32 else np.iinfo(kind)
    proto = single("Clip", [(3,), kind(widest.min), kind(widest.max)])
    entry = proto.graph.input[0].type.tensor_type
    entry.elem_type = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    assert import_model(proto, name="m").nodes == ()


def test_clip_with_crossed_bounds_is_refused() -> None:
    with pytest.raises(UnsupportedModel, match="above its upper bound"):
        import_model(single("Clip", [(3,), np.float32(2), np.float32(1)]), name="m")


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("opset", [7, 11, 13, 21])
@pytest.mark.parametrize(("shape", "axis"), [((2, 5), None), ((2, 3, 4), 1), ((2, 3, 4), -1)])
def test_softmax(operator: str, opset: int, shape: tuple[int, ...], axis: int | None) -> None:
    if axis is not None and axis < 0 and opset < 11:
        axis += len(shape)
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    check(single(operator, [shape], opset=opset, **attributes))


def test_softmax_may_pass_through_identity() -> None:
    nodes = [node("Softmax", ["x"], ["s"], axis=1), node("Identity", ["s"], ["y"])]
    check(model(nodes, {"x": (2, 5)}, ["y", "s"]))


def test_a_logarithm_of_softmax_in_the_middle_is_refused() -> None:
    nodes = [node("LogSoftmax", ["x"], ["s"], axis=1), node("Relu", ["s"], ["y"])]
    with pytest.raises(UnsupportedModel, match="the client computes in the clear"):
        import_model(model(nodes, {"x": (2, 5)}, ["y"]), name="m")


def test_arg_max_reads_what_softmax_read() -> None:
    nodes = [node("Softmax", ["x"], ["s"], axis=1), node("ArgMax", ["s"], ["y"], axis=1)]
    check(model(nodes, {"x": (2, 5)}, ["y"]))
    across = [node("Softmax", ["x"], ["s"], axis=1), node("ArgMax", ["s"], ["y"], axis=0)]
    with pytest.raises(UnsupportedModel, match="another axis"):
        import_model(model(across, {"x": (2, 5)}, ["y"]), name="m")
