"""What is measured: single operators as one-node ONNX models, and networks of the zoo.

Weights and inputs are seeded, so that every run measures the same numbers; protocols' own
randomness is not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from privet import zoo

Floats = npt.NDArray[np.float32]

OPSET = 17
IR_VERSION = 8


@dataclass(frozen=True)
class Target:
    """What Privet wants to reach on two virtual cores: seconds, and megabytes both ways if set."""

    total_seconds: float
    online_seconds: float | None = None
    megabytes: float | None = None


@dataclass(frozen=True)
class DealtTarget:
    """Seconds online that Privet wants to reach where a dealer makes the material."""

    fss: float
    gmw: float | None = None


@dataclass(frozen=True)
class Task:
    """A model to run once, privately.

    `quick` says that the task belongs to the quick set; `peers` that peers run it as well, and
    `quick_peers` that they do so in the quick set.
    """

    name: str
    title: str
    make: Callable[[Path], Path]
    input_shape: tuple[int, ...]
    target: Target | None
    dealt: DealtTarget | None = None
    quick: bool = True
    quick_peers: bool = True
    peers: bool = True

    def sample(self) -> Floats:
        """The input, float32: standard normal for operators, uniform on [0, 1] for networks."""
        generator = _generator(f"{self.name}/input")
        if self.name in zoo.names():
            return generator.random(self.input_shape, dtype=np.float32)
        return generator.standard_normal(self.input_shape, dtype=np.float32)


def tasks() -> tuple[Task, ...]:
    """All tasks, operators first."""
    return (
        _relu(16),
        _relu(18),
        _relu(20, Target(4.0, 0.4), DealtTarget(0.3, 0.4), quick=False),
        _operator(
            "maxpool",
            "maxpool 3x3/2, 55x55x96",
            _max_pool,
            (1, 96, 55, 55),
            Target(1.5),
            DealtTarget(0.4, 0.5),
        ),
        _operator("conv", "conv 56x56x64 -> 64, 3x3", _conv, (1, 64, 56, 56), Target(0.4)),
        _operator("matmul", "matmul 1x1024x1024", _matmul, (1, 1024), Target(0.1)),
        forest_task(100, 6, Target(0.5, 0.05)),
        forest_task(500, 8, Target(5.0, 0.4)),
        _network("m1", "M1", Target(0.4, 0.05), DealtTarget(0.025, 0.05)),
        _network("m2", "M2", Target(1.5, 0.2), DealtTarget(0.15, 0.2)),
        _network("hinet", "HiNet", None, DealtTarget(0.08, 0.1), peers=False),
        _network("resnet20", "ResNet-20", Target(2.0, 0.3), DealtTarget(0.25, 0.3)),
        _network(
            "squeezenet",
            "SqueezeNet 227x227",
            Target(10.0, 2.0, 314.6),
            DealtTarget(1.5, 2.0),
            quick_peers=False,
        ),
        _network(
            "bert-tiny",
            "BERT-Tiny, 128 tokens",
            Target(1.5, 0.1, 100.0),
            DealtTarget(0.08),
            quick_peers=False,
        ),
        _network("alexnet", "AlexNet", None, DealtTarget(2.0), quick=False, peers=False),
        _network(
            "resnet50",
            "ResNet-50",
            Target(45.0, 6.0, 1288.5),
            DealtTarget(6.0, 6.0),
            quick=False,
            peers=False,
        ),
    )


def _relu(
    log_elements: int, target: Target | None = None, dealt: DealtTarget | None = None, **sets: bool
) -> Task:
    name, title = f"relu-{log_elements}", f"ReLU, 2^{log_elements} elements"
    return _operator(name, title, _relu_node, (1, 1 << log_elements), target, dealt, **sets)


def _operator(
    name: str,
    title: str,
    node: _NodeMaker,
    shape: tuple[int, ...],
    target: Target | None,
    dealt: DealtTarget | None = None,
    **sets: bool,
) -> Task:
    return Task(name, title, partial(_write, name, node, shape), shape, target, dealt, **sets)


def _network(
    name: str, title: str, target: Target | None, dealt: DealtTarget, **sets: bool
) -> Task:
    shape = zoo.describe(name).input_shape
    return Task(name, title, partial(zoo.build, name), shape, target, dealt, **sets)


def forest_task(count: int, depth: int, target: Target | None = None) -> Task:
    """Trees on 30 features; of the peers only Concrete ML has them (`benches.concrete`)."""
    name = f"trees-{count}-{depth}"

    def node(name: str) -> tuple[onnx.NodeProto, list[TensorProto]]:
        return forest(_generator(f"{name}/weight"), count, depth), []

    return _operator(name, f"{count} trees of depth {depth}", node, (1, 30), target, peers=False)


_NodeMaker = Callable[[str], tuple[onnx.NodeProto, list[TensorProto]]]


def _relu_node(name: str) -> tuple[onnx.NodeProto, list[TensorProto]]:
    return helper.make_node("Relu", ["input"], ["output"], name=name), []


def _max_pool(name: str) -> tuple[onnx.NodeProto, list[TensorProto]]:
    node = helper.make_node(
        "MaxPool", ["input"], ["output"], name=name, kernel_shape=[3, 3], strides=[2, 2]
    )
    return node, []


def _conv(name: str) -> tuple[onnx.NodeProto, list[TensorProto]]:
    node = helper.make_node(
        "Conv", ["input", "weight"], ["output"], name=name, kernel_shape=[3, 3], pads=[1] * 4
    )
    return node, [_weight(name, (64, 64, 3, 3), fan_in=576)]


def _matmul(name: str) -> tuple[onnx.NodeProto, list[TensorProto]]:
    node = helper.make_node("MatMul", ["input", "weight"], ["output"], name=name)
    return node, [_weight(name, (1024, 1024), fan_in=1024)]


def _weight(name: str, shape: tuple[int, ...], fan_in: int) -> TensorProto:
    generator = _generator(f"{name}/weight")
    values = generator.standard_normal(shape, dtype=np.float32) / np.float32(np.sqrt(fan_in))
    return numpy_helper.from_array(values, "weight")


def _write(name: str, node: _NodeMaker, shape: tuple[int, ...], folder: Path) -> Path:
    proto, weights = node(name)
    graph = helper.make_graph(
        [proto],
        name,
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, None)],
        weights,
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", 3)],
        ir_version=IR_VERSION,
    )
    path = folder / f"{name}.onnx"
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    return path


def _generator(name: str) -> np.random.Generator:
    digest = hashlib.sha256(f"privet-bench/{name}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "little")))


def forest(generator: np.random.Generator, count: int, depth: int) -> onnx.NodeProto:
    """A sum of `count` trees with `depth` levels on the features of its input."""
    features, inner = 30, (1 << depth) - 1
    size, leaves = 2 * inner + 1, inner + 1
    # Level by level: the children of node i are 2 i + 1 and 2 i + 2.
    nodes = np.arange(size)
    below = np.where(nodes < inner, 2 * nodes + 1, 0)
    modes = ["BRANCH_LEQ"] * inner + ["LEAF"] * leaves
    choices = generator.integers(features, size=(count, size))
    values = generator.standard_normal((count, size)).astype(np.float32)
    weights = generator.standard_normal((count, leaves)) / count
    attributes: dict[str, Any] = {
        "n_targets": 1,
        "nodes_treeids": np.repeat(np.arange(count), size).tolist(),
        "nodes_nodeids": np.tile(nodes, count).tolist(),
        "nodes_featureids": choices.ravel().tolist(),
        "nodes_modes": modes * count,
        "nodes_values": values.ravel().tolist(),
        "nodes_truenodeids": np.tile(below, count).tolist(),
        "nodes_falsenodeids": np.tile(np.where(nodes < inner, below + 1, 0), count).tolist(),
        "target_treeids": np.repeat(np.arange(count), leaves).tolist(),
        "target_nodeids": np.tile(nodes[inner:], count).tolist(),
        "target_ids": [0] * (count * leaves),
        "target_weights": weights.ravel().tolist(),
    }
    return helper.make_node(
        "TreeEnsembleRegressor", ["input"], ["output"], domain="ai.onnx.ml", **attributes
    )
