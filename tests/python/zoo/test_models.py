"""Every model is valid ONNX, runs, has the layers it claims, and keeps its activations near one."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import ModelProto, numpy_helper, shape_inference

from privet import zoo

from .conftest import Trace

LARGE = {"alexnet", "vgg16", "bert-base"}
TINY = ("bert-tiny", "bert-tiny-64", "bert-tiny-256")
STANDARDISED = {"breast", "heart", "cardio", *TINY, "bert-base"}
# `test_transformers.py` has these; the last is `gpt2` with other inputs and tables.
ELSEWHERE = {"vit-tiny", "gpt2", "llama-block", "gpt2-cached"}
EVERY = [
    pytest.param(name, marks=[pytest.mark.slow] if name in LARGE else [])
    for name in zoo.names()
    if name not in ELSEWHERE
]
FAMILIES = {"Conv", "Gemm", "MatMul", "BatchNormalization", "LayerNormalization"}
IMAGE_LAYERS = {"Conv", "MaxPool", "AveragePool"}
# Of one batch norm: its running statistics, which are no parameters.
STATISTICS = slice(3, 5)

LAYERS = {
    "m1": "Conv MaxPool Relu Conv MaxPool Relu Flatten Gemm Relu Gemm",
    "m2": "Conv Relu Conv Relu AveragePool Conv Relu Conv Relu AveragePool Conv Relu Conv Relu "
    "Conv Relu Flatten Gemm",
    "hinet": "Conv MaxPool Relu Conv MaxPool Relu Conv MaxPool Relu Flatten Gemm",
    "mnist-1": "Gemm Relu Gemm Relu Gemm",
    "mnist-2": "Conv BatchNormalization Relu Flatten Gemm BatchNormalization Relu Gemm",
}
# Image shapes, channels first, after each convolution and pooling.
IMAGES = {
    "m1": "16x24 16x12 16x8 16x4",
    "m2": "64x32 64x32 64x16 64x16 64x16 64x8 64x8 64x8 16x8",
    "hinet": "64x30 64x14 64x12 64x5 64x3 64x1",
    "mnist-2": "5x13",
    "nn5": "5x12",
    "nn20": "1x26",
    "alexnet": "96x55 96x27 256x27 256x13 384x13 384x13 256x13 256x6",
}
COUNTS = {
    "squeezenet": {"Conv": 26, "Relu": 26, "MaxPool": 3, "AveragePool": 1, "Concat": 8},
    "resnet20": {"Conv": 21, "BatchNormalization": 21, "Add": 9, "GlobalAveragePool": 1},
    "resnet50": {"Conv": 53, "BatchNormalization": 53, "Add": 16, "MaxPool": 1, "Gemm": 1},
    "vgg13-cifar": {"Conv": 10, "BatchNormalization": 10, "MaxPool": 5, "Gemm": 1},
    "vgg16-cifar": {"Conv": 13, "BatchNormalization": 13, "MaxPool": 5, "Gemm": 1},
    "vgg19-cifar": {"Conv": 16, "BatchNormalization": 16, "MaxPool": 5, "Gemm": 1},
    "vgg16": {"Conv": 13, "MaxPool": 5, "Gemm": 3, "Relu": 15},
    "nn20": {"Conv": 1, "Gemm": 20},
    "nn50": {"Conv": 1, "Gemm": 50},
    **{name: {"MatMul": 2 * 8, "Softmax": 2, "LayerNormalization": 4, "Erf": 2} for name in TINY},
    "bert-base": {"MatMul": 12 * 8, "Softmax": 12, "LayerNormalization": 24, "Erf": 12},
}
CLASSES = {"alexnet": 1000, "vgg16": 1000, "squeezenet": 1000, "resnet50": 1000} | dict.fromkeys(
    ("breast", "heart", "cardio"), 2
)


def sample(name: str) -> npt.NDArray[np.float32]:
    """Pixels in [0, 1], or standard normal features and hidden states."""
    generator = np.random.default_rng(7)
    shape = zoo.describe(name).input_shape
    if name in STANDARDISED:
        return generator.standard_normal(shape, dtype=np.float32)
    return generator.random(shape, dtype=np.float32)


def recount(model: ModelProto) -> tuple[int, int, int]:
    """Parameters, multiply-accumulates and ReLUs, from the file and ONNX's own shape inference."""
    graph = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
    shapes = {
        value.name: [side.dim_value for side in value.type.tensor_type.shape.dim]
        for value in [*graph.input, *graph.value_info, *graph.output]
    }
    weights = {weight.name: list(weight.dims) for weight in graph.initializer}
    parameters: dict[str, int] = {}
    products = relus = 0
    for node in graph.node:
        elements = math.prod(shapes[node.output[0]])
        inputs = [name for name in node.input if name in weights]
        if node.op_type == "BatchNormalization":
            inputs = [name for name in inputs if name not in node.input[STATISTICS]]
        if node.op_type in FAMILIES or (node.op_type == "Add" and inputs and weights[inputs[0]]):
            parameters |= {name: math.prod(weights[name]) for name in inputs}
        if node.op_type == "Conv":
            products += elements * math.prod(weights[node.input[1]][1:])
        elif node.op_type == "Gemm":
            products += math.prod(weights[node.input[1]])
        elif node.op_type == "MatMul":
            products += elements * shapes[node.input[0]][-1]
        elif node.op_type == "Relu":
            relus += elements
    return sum(parameters.values()), products, relus


@pytest.mark.parametrize("name", EVERY)
def test_model(name: str, tmp_path: Path, trace: Trace) -> None:
    path = zoo.build(name, tmp_path)
    assert path == tmp_path / f"{name}.onnx"
    onnx.checker.check_model(path, full_check=True)
    model = onnx.load(path)
    nodes = list(model.graph.node)
    kinds = [node.op_type for node in nodes]
    entry = zoo.describe(name)
    assert recount(model) == (entry.parameters, entry.multiply_accumulates, entry.relus)
    del model

    if name in LAYERS:
        assert kinds == LAYERS[name].split()
    assert COUNTS.get(name, {}).items() <= Counter(kinds).items()

    values = trace(path, sample(name))
    if name in IMAGES:
        images = [values[node.output[0]] for node in nodes if node.op_type in IMAGE_LAYERS]
        assert [f"{image.shape[1]}x{image.shape[2]}" for image in images] == IMAGES[name].split()
    if name.startswith("bert"):
        assert values["hidden"].shape == entry.input_shape
    else:
        assert values["logits"].shape == (1, CLASSES.get(name, 10))

    for node in nodes:
        output = values[node.output[0]]
        assert np.max(np.abs(output)) < 64, node.name
        if node.op_type in FAMILIES and not node.output[0].startswith("logits"):
            assert 0.1 < np.sqrt(np.mean(output**2)) < 16, node.name


@pytest.mark.parametrize("name", ["m1", "mnist-2", "nn5", "resnet20", "bert-tiny"])
def test_a_build_gives_the_same_bytes_each_time(name: str, tmp_path: Path) -> None:
    first = zoo.build(name, tmp_path / "a").read_bytes()
    assert zoo.build(name, tmp_path / "b").read_bytes() == first
    assert zoo.build(name, tmp_path / "a").read_bytes() == first


def test_models_of_one_shape_have_weights_of_their_own(tmp_path: Path) -> None:
    first, other = (onnx.load(zoo.build(name, tmp_path)) for name in ("m1", "mnist-3"))
    assert [node.op_type for node in first.graph.node] == [
        node.op_type for node in other.graph.node
    ]
    for tensor, twin in zip(first.graph.initializer, other.graph.initializer, strict=True):
        assert tensor.name == twin.name
        assert not np.any(numpy_helper.to_array(tensor) == numpy_helper.to_array(twin))
