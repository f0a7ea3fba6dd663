"""One network, written as exporters wrote it in every opset from 6 to the newest."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import check, constant, expected, model, node, samples

NEWEST = onnx.defs.onnx_opset_version()


def network(opset: int) -> onnx.ModelProto:
    """Convolution, batch norm, clip, pool, pad, slice, squeeze, mean and a product."""
    constants: dict[str, Any] = {
        "w": constant(4, 2, 3, 3),
        "s": np.ones(4, np.float32),
        "b": constant(4, seed=5),
        "v": np.full(4, 2, np.float32),
        "fc": constant(4, 3),
        "shape": np.array([0, -1]),
    }
    is_test = {"is_test": 1} if opset < 7 else {}
    nodes = [
        node("Conv", ["x", "w"], ["c"], auto_pad="SAME_UPPER"),
        node("BatchNormalization", ["c", "s", "b", "b", "v"], ["n"], **is_test),
    ]
    if opset < 11:
        nodes += [
            node("Clip", ["n"], ["r"], min=0.0, max=2.0),
            node("Pad", ["r"], ["p"], pads=[0, 0, 0, 0, 0, 0, 1, 1]),
        ]
    else:
        constants |= {"lo": np.float32(0), "hi": np.float32(2)}
        constants["pads"] = np.array([0, 0, 0, 0, 0, 0, 1, 1])
        nodes += [node("Clip", ["n", "lo", "hi"], ["r"]), node("Pad", ["r", "pads"], ["p"])]
    nodes.append(node("MaxPool", ["p"], ["q"], kernel_shape=[2, 2], strides=[2, 2]))
    if opset < 10:
        nodes.append(node("Slice", ["q"], ["l"], starts=[0], ends=[1], axes=[2]))
    else:
        constants |= {"from": np.array([0]), "to": np.array([1]), "on": np.array([2])}
        nodes.append(node("Slice", ["q", "from", "to", "on"], ["l"]))
    if opset < 13:
        nodes.append(node("Squeeze", ["l"], ["z"], axes=[2]))
    else:
        nodes.append(node("Squeeze", ["l", "on"], ["z"]))
        constants["on"] = np.array([2])
    if opset < 18:
        nodes.append(node("ReduceMean", ["z"], ["m"], axes=[-1], keepdims=0))
    else:
        constants["last"] = np.array([-1])
        nodes.append(node("ReduceMean", ["z", "last"], ["m"], keepdims=0))
    dropout = {"is_test": 1} if opset < 7 else {}
    nodes += [
        node("Dropout", ["m"], ["d"], **dropout),
        node("Reshape", ["d", "shape"], ["f"]),
        node("MatMul", ["f", "fc"], ["o"]),
        node("Softmax", ["o"], ["y"], axis=1),
    ]
    proto = model(nodes, {"x": (1, 2, 5, 5)}, ["y"], constants, opset=opset, listed=opset < 9)
    onnx.checker.check_model(proto)
    return proto


@pytest.mark.parametrize("opset", range(6, NEWEST + 1))
def test_network_in_every_opset(opset: int) -> None:
    proto = network(opset)
    inputs = samples(proto)
    check(proto, inputs, wanted=expected(network(21), inputs))


def test_constants_that_an_optimiser_added_to_an_old_format() -> None:
    """Version 3 lists them among the inputs. ONNX Runtime adds constants and keeps the version."""
    proto = network(8)
    proto.ir_version = 3
    assert proto.graph.input[-1].name in {tensor.name for tensor in proto.graph.initializer}
    del proto.graph.input[-1]
    inputs = samples(proto)
    check(proto, inputs, wanted=expected(network(21), inputs))
