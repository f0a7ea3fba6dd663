"""Chains of layers with weights of many kinds, for laws that hold for every model."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from tests.python.compiler.graph.single import Array, model, node

SHAPE = (1, 3, 5, 5)
SIZES = ("small", "moderate", "large", "zeros", "ones", "equal", "mixed")


def drawn(size: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Weights of a kind that some rule might look for."""
    normal = rng.standard_normal(shape).astype(np.float32)
    match size:
        case "small":
            return normal * np.float32(1e-3)
        case "moderate":
            return normal * np.float32(0.2)
        case "large":
            return normal * np.float32(4)
        case "zeros":
            return np.zeros_like(normal)
        case "ones":
            return np.ones_like(normal)
        case "equal":
            return np.full_like(normal, normal.reshape(-1)[0])
        case _:
            array: Array = normal * rng.choice(np.asarray([0, 1e-4, 0.5, -3], np.float32), shape)
            return array


WEIGHTS: dict[str, tuple[int, ...]] = {
    "w": (3, 3, 3, 3),
    "b": (3,),
    "grouped": (3, 1, 1, 1),
    "fc": (5, 5),
    "channel": (3, 1, 1),
    "full": SHAPE,
    "row": (5,),
}
NORM = ["channel1", "b", "b", "positive"]
STEPS = {
    "conv": lambda a, b: node("Conv", [a, "w"], [b], pads=[1] * 4),
    "biased": lambda a, b: node("Conv", [a, "w", "b"], [b], pads=[1] * 4),
    "grouped": lambda a, b: node("Conv", [a, "grouped"], [b], group=3),
    "dense": lambda a, b: node("MatMul", [a, "fc"], [b]),
    "norm": lambda a, b: node("BatchNormalization", [a, *NORM], [b]),
    "times channel": lambda a, b: node("Mul", [a, "channel"], [b]),
    "times full": lambda a, b: node("Mul", [a, "full"], [b]),
    "times row": lambda a, b: node("Mul", [a, "row"], [b]),
    "plus channel": lambda a, b: node("Add", [a, "channel"], [b]),
    "plus full": lambda a, b: node("Sub", [a, "full"], [b]),
    "times number": lambda a, b: node("Mul", [a, "half"], [b]),
    "relu": lambda a, b: node("Relu", [a], [b]),
    "clip": lambda a, b: node("Clip", [a, "low", "high"], [b]),
    "pool": lambda a, b: node("MaxPool", [a], [b], kernel_shape=[3, 3], pads=[1] * 4),
    "average": lambda a, b: node("AveragePool", [a], [b], kernel_shape=[3, 3], pads=[1] * 4),
    "residual": lambda a, b: node("Add", [a, "x"], [b]),
}
SMOOTH = {
    **{
        name: STEPS[name] for name in ("conv", "norm", "times channel", "plus full", "times number")
    },
    "sigmoid": lambda a, b: node("Sigmoid", [a], [b]),
    "gram": lambda a, b: node("MatMul", [a, a], [b]),
    "square": lambda a, b: node("Mul", [a, a], [b]),
}


def network(
    steps: list[str], kinds: dict[str, Any], sizes: dict[str, str], seed: int
) -> onnx.ModelProto:
    rng = np.random.default_rng(seed)
    constants: dict[str, Any] = {
        name: drawn(sizes[name], shape, rng) for name, shape in WEIGHTS.items()
    }
    constants |= {
        "channel1": constants["channel"].reshape(3),
        "positive": np.abs(drawn("large", (3,), rng)) + np.float32(0.1),
        "low": np.float32(-1),
        "high": np.float32(1),
        "half": np.float32(0.5),
    }
    names = ["x", *(f"t{index}" for index in range(len(steps)))]
    nodes = [kinds[s](a, b) for s, a, b in zip(steps, names, names[1:], strict=False)]
    inputs = {name for entry in nodes for name in entry.input}
    return model(
        nodes, {"x": SHAPE}, [names[-1]], {k: v for k, v in constants.items() if k in inputs}
    )


def sizes_of_all() -> st.SearchStrategy[dict[str, str]]:
    return st.fixed_dictionaries({name: st.sampled_from(SIZES) for name in WEIGHTS})


def victim() -> onnx.ModelProto:
    """The outside review's model: one hidden unit whose weights have a mean."""
    rng = np.random.default_rng(7)
    first = (rng.standard_normal((784, 8)) * 0.03).astype(np.float32)
    first[:, 0] = 1.0
    last = (rng.uniform(-1, 1, (8, 10)) * 0.49).astype(np.float32)
    nodes = [
        node("Gemm", ["x", "w1"], ["h"]),
        node("Relu", ["h"], ["r"]),
        node("Gemm", ["r", "w2"], ["y"]),
    ]
    nodes[-1].name = "last"
    return model(nodes, {"x": (1, 784)}, ["y"], {"w1": first, "w2": last})


def in_reals(proto: onnx.ModelProto, x: Array) -> Array:
    """What `victim` gives without rounding."""
    first, last = (onnx.numpy_helper.to_array(t).astype(float) for t in proto.graph.initializer)
    return np.asarray(np.maximum(x @ first, 0) @ last)
