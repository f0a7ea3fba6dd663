"""Small models for tests of the stream."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from privet.compiler.compile import Compiled, compile

node = helper.make_node


def build(
    nodes: list[onnx.NodeProto],
    shape: list[int],
    out: list[int],
    weights: dict[str, npt.NDArray[np.float32]],
) -> Compiled:
    """A compiled model from `x` to `y`, for inputs between -1 and 1."""
    graph = helper.make_graph(
        nodes,
        "toy",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, out)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    imports = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=9)
    return compile(model, input_range=(-1, 1), smooth="function")


def draw(rng: np.random.Generator, *shape: int) -> npt.NDArray[np.float32]:
    """Weights between -0.5 and 0.5."""
    return rng.uniform(-0.5, 0.5, shape).astype(np.float32)


def perceptron() -> Compiled:
    """Three dense layers of 6, 9, 5 and 3 numbers."""
    rng = np.random.default_rng(3)
    sizes = (6, 9, 5, 3)
    weights: dict[str, npt.NDArray[np.float32]] = {}
    nodes, last = [], "x"
    for index, (before, after) in enumerate(itertools.pairwise(sizes)):
        weights |= {f"w{index}": draw(rng, before, after), f"b{index}": draw(rng, after)}
        out = "y" if index == 2 else f"h{index}"
        nodes.append(node("Gemm", [last, f"w{index}", f"b{index}"], [out], f"dense{index}"))
        last = out
        if index < 2:
            last = f"r{index}"
            nodes.append(node("Relu", [out], [last], f"relu{index}"))
    return build(nodes, [1, 6], [1, 3], weights)


def windows() -> Compiled:
    """A convolution with a bias, a pooling of whole windows, another convolution, and a mean."""
    rng = np.random.default_rng(4)
    weights = {"k": draw(rng, 3, 2, 3, 3), "b": draw(rng, 3), "l": draw(rng, 2, 3, 3, 3)}
    nodes = [
        node("Conv", ["x", "k", "b"], ["c"], "conv", pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"], "relu"),
        node("MaxPool", ["r"], ["m"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["m", "l"], ["d"], "conv2", pads=[1, 1, 1, 1]),
        node("Relu", ["d"], ["s"], "relu2"),
        node("AveragePool", ["s"], ["y"], "mean", kernel_shape=[3, 3]),
    ]
    return build(nodes, [1, 2, 6, 6], [1, 2, 1, 1], weights)


def overhanging() -> Compiled:
    """A convolution, and a pooling whose windows hang over the edges."""
    rng = np.random.default_rng(8)
    weights = {"k": draw(rng, 2, 1, 3, 3), "w": draw(rng, 18, 2)}
    nodes = [
        node("Conv", ["x", "k"], ["c"], "conv", pads=[1, 1, 1, 1]),
        node(
            "MaxPool", ["c"], ["m"], "pool", kernel_shape=[2, 2], strides=[2, 2], pads=[1, 1, 0, 0]
        ),
        node("Relu", ["m"], ["r"], "relu"),
        node("Flatten", ["r"], ["f"], "flatten"),
        node("MatMul", ["f", "w"], ["y"], "dense"),
    ]
    return build(nodes, [1, 1, 5, 5], [1, 2], weights)


def residual() -> Compiled:
    """Grouped convolutions around which a shortcut goes, a concatenation and a dense layer."""
    rng = np.random.default_rng(5)
    weights = {
        "k": draw(rng, 4, 1, 3, 3),
        "l": draw(rng, 4, 2, 1, 1),
        "w": draw(rng, 128, 2),
    }
    nodes = [
        node("Conv", ["x", "k"], ["c"], "conv", pads=[1, 1, 1, 1], group=2),
        node("Relu", ["c"], ["r"], "relu"),
        node("Conv", ["r", "l"], ["d"], "conv2", group=2),
        node("Add", ["d", "r"], ["a"], "sum"),
        node("Relu", ["a"], ["s"], "relu2"),
        node("Concat", ["s", "r"], ["j"], "join", axis=1),
        node("Flatten", ["j"], ["f"], "flatten"),
        node("MatMul", ["f", "w"], ["y"], "dense"),
    ]
    return build(nodes, [1, 2, 4, 4], [1, 2], weights)


def movement() -> Compiled:
    """Scalings, paddings, slices, transpositions, differences and a strided convolution."""
    rng = np.random.default_rng(6)
    weights = {
        "s": draw(rng, 2, 1, 1),
        "k": draw(rng, 2, 4, 2, 2),
        "c": draw(rng, 4, 1, 1),
    }
    numbers = {
        "pads": [0, 0, 1, 0, 0, 0, 0, 1],
        "starts": [1],
        "ends": [5],
        "axes": [2],
    }
    constants = [
        node("Constant", [], [name], name, value_ints=values) for name, values in numbers.items()
    ]
    nodes = [
        *constants,
        node("Mul", ["x", "s"], ["scaled"], "scale"),
        node("Pad", ["scaled", "pads"], ["padded"], "pad"),
        node("Transpose", ["padded"], ["turned"], "turn", perm=[0, 1, 3, 2]),
        node("Slice", ["turned", "starts", "ends", "axes"], ["cut"], "slice"),
        node("Relu", ["cut"], ["r"], "relu"),
        node("Neg", ["r"], ["n"], "negate"),
        node("Concat", ["r", "n"], ["j"], "join", axis=1),
        node("Sub", ["j", "c"], ["d"], "difference"),
        node("Conv", ["d", "k"], ["e"], "conv", strides=[2, 2], pads=[1, 0, 0, 1]),
        node("Relu", ["e"], ["y"], "relu2"),
    ]
    return build(nodes, [1, 2, 4, 4], [1, 2, 2, 3], weights)


def flattened() -> Compiled:
    """A convolution whose result is flattened before its ReLU, and a dense layer."""
    rng = np.random.default_rng(7)
    weights = {"k": draw(rng, 3, 1, 3, 3), "w": draw(rng, 108, 2)}
    nodes = [
        node("Conv", ["x", "k"], ["c"], "conv", pads=[1, 1, 1, 1]),
        node("Flatten", ["c"], ["f"], "flatten"),
        node("Relu", ["f"], ["r"], "relu"),
        node("MatMul", ["r", "w"], ["y"], "dense"),
    ]
    return build(nodes, [1, 1, 6, 6], [1, 2], weights)


def gated() -> Compiled:
    """A dense layer, SiLU, another one, and Sigmoid at the end."""
    rng = np.random.default_rng(8)
    weights = {"v": draw(rng, 6, 9), "w": draw(rng, 9, 2)}
    nodes = [
        node("MatMul", ["x", "v"], ["h"], "hidden"),
        node("Sigmoid", ["h"], ["g"], "gate"),
        node("Mul", ["h", "g"], ["s"], "silu"),
        node("MatMul", ["s", "w"], ["o"], "dense"),
        node("Sigmoid", ["o"], ["y"], "sigmoid"),
    ]
    return build(nodes, [1, 6], [1, 2], weights)
