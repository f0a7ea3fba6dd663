"""The passes that keep the real function as it is, and what each leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.python.compiler.graph.single import Array, constant, model, node, samples

from privet.compiler.executor.real import run
from privet.compiler.graph import Graph, import_model
from privet.compiler.passes import (
    fold_affine,
    fold_batchnorm,
    fold_forward,
    join_relus,
    merge_moves,
    pool_before_relu,
    select_by_steps,
    simplify,
)


def graph_of(proto: onnx.ModelProto) -> Graph:
    return import_model(proto, name="m")


def outputs(graph: Graph, inputs: dict[str, Array]) -> list[Array]:
    arrays = [inputs[entry.name].astype(np.float64) for entry in graph.inputs]
    return run(graph, arrays, lambda _id, _array: None)


def kinds(graph: Graph) -> list[str]:
    return [type(entry.operation).__name__ for entry in graph.nodes]


def same(proto: onnx.ModelProto, rewrite: Callable[[Graph], Graph]) -> Graph:
    """The rewritten graph, after checking that it computes the same."""
    before = graph_of(proto)
    after = rewrite(before)
    inputs = samples(proto)
    for old, new in zip(outputs(before, inputs), outputs(after, inputs), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-5)
    assert kinds(graph_of(proto)) == kinds(before), "a pass changes no graph in place"
    return after


NORM = ["s", "b", "m", "v"]
STATISTICS = {
    "s": constant(3, seed=1) + np.float32(1),
    "b": constant(3, seed=2),
    "m": constant(3, seed=3),
    "v": np.full(3, 0.5, np.float32),
}
WEIGHTS = {"w": constant(3, 3, 3, 3), "fc": constant(3, 4)}


def chain(*nodes: onnx.NodeProto, shape: Sequence[int] = (1, 3, 6, 6)) -> onnx.ModelProto:
    constants: dict[str, Any] = {**STATISTICS, **WEIGHTS, "flat": np.array([0, -1])}
    return model(nodes, {"x": shape}, [nodes[-1].output[0]], constants)


def test_batch_norm_folds_into_the_layer_before() -> None:
    proto = chain(node("Conv", ["x", "w"], ["c"]), node("BatchNormalization", ["c", *NORM], ["y"]))
    assert kinds(same(proto, fold_batchnorm)) == ["Conv2d"]


@pytest.mark.parametrize("variance", [1e-4, 1.0, 1e4])
def test_batch_norm_in_front_of_a_layer_is_a_layer_of_its_own(variance: float) -> None:
    """Whatever its factors: whether it folds is public."""
    norm = node("BatchNormalization", ["x", *NORM], ["n"], epsilon=variance)
    proto = chain(norm, node("Conv", ["n", "w"], ["y"]))
    assert kinds(same(proto, fold_batchnorm)) == ["Conv2d", "Conv2d"]


def test_a_value_with_two_readers_does_not_fold() -> None:
    proto = chain(
        node("Conv", ["x", "w"], ["c"]),
        node("BatchNormalization", ["c", *NORM], ["n"]),
        node("Add", ["c", "n"], ["y"]),
    )
    assert kinds(same(proto, fold_batchnorm)) == ["Conv2d", "Conv2d", "Add"]


def test_batch_norm_alone_is_a_depthwise_layer() -> None:
    proto = chain(node("BatchNormalization", ["x", *NORM], ["y"]))
    (layer,) = same(proto, fold_batchnorm).nodes
    assert layer.operation.groups == 3  # type: ignore[attr-defined]


def test_constants_fold_into_the_bias() -> None:
    proto = chain(
        node("MatMul", ["x", "fc"], ["p"]),
        node("Add", ["p", "c"], ["q"]),
        node("Sub", ["q", "c"], ["y"]),
        shape=(2, 5, 3),
    )
    proto.graph.initializer.append(onnx.numpy_helper.from_array(constant(4), "c"))
    assert kinds(same(proto, fold_affine)) == ["Reshape", "Dense", "Reshape"]


def test_a_constant_that_varies_within_a_channel_stays() -> None:
    proto = chain(node("Conv", ["x", "w"], ["p"]), node("Add", ["p", "c"], ["y"]))
    proto.graph.initializer.append(onnx.numpy_helper.from_array(constant(4, 4), "c"))
    assert kinds(same(proto, fold_affine)) == ["Conv2d", "AddConstant"]


def test_relu_moves_behind_max_pool() -> None:
    proto = chain(node("Relu", ["x"], ["r"]), node("MaxPool", ["r"], ["y"], kernel_shape=[2, 2]))
    after = same(proto, pool_before_relu)
    assert kinds(after) == ["MaxPool2d", "Relu"]
    assert [entry.name for entry in after.nodes] == ["the_maxpool", "the_relu"]


def test_relu_moves_behind_one_dimensional_max_pool() -> None:
    proto = chain(
        node("Relu", ["x"], ["r"]),
        node("MaxPool", ["r"], ["y"], kernel_shape=[2]),
        shape=(1, 3, 6),
    )
    assert kinds(same(proto, pool_before_relu)) == ["Reshape", "MaxPool2d", "Reshape", "Relu"]


def test_relu_that_others_read_stays() -> None:
    proto = chain(
        node("Relu", ["x"], ["r"]),
        node("MaxPool", ["r"], ["p"], kernel_shape=[6, 6]),
        node("Add", ["r", "p"], ["y"]),
    )
    assert kinds(same(proto, pool_before_relu))[:2] == ["Relu", "MaxPool2d"]


def test_joined_relus_become_one() -> None:
    proto = chain(
        node("Conv", ["x", "w"], ["a"]),
        node("Relu", ["a"], ["ra"]),
        node("MaxPool", ["x"], ["b"], kernel_shape=[3, 3]),
        node("Relu", ["b"], ["rb"]),
        node("Concat", ["ra", "rb"], ["y"], axis=1),
    )
    assert kinds(same(proto, join_relus)) == ["Conv2d", "MaxPool2d", "Concat", "Relu"]


def test_a_relu_joined_with_itself_stays() -> None:
    proto = chain(node("Relu", ["x"], ["r"]), node("Concat", ["r", "r"], ["y"], axis=1))
    assert kinds(same(proto, join_relus)) == ["Relu", "Concat"]


def test_reshapes_merge_and_vanish() -> None:
    proto = chain(
        node("Flatten", ["x"], ["f"]),
        node("Reshape", ["f", "back"], ["b"]),
        node("Relu", ["b"], ["r"]),
        node("Flatten", ["r"], ["g"], axis=0),
        node("Reshape", ["g", "flat"], ["y"]),
    )
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, 3, 6, 6]), "back"))
    assert kinds(same(proto, merge_moves)) == ["Relu", "Reshape"]


def test_transposes_merge_and_vanish() -> None:
    proto = chain(
        node("Transpose", ["x"], ["a"], perm=[0, 2, 1, 3]),
        node("Transpose", ["a"], ["b"], perm=[0, 3, 2, 1]),
        node("Relu", ["b"], ["r"]),
        node("Transpose", ["r"], ["c"], perm=[0, 3, 1, 2]),
        node("Transpose", ["c"], ["y"], perm=[0, 2, 3, 1]),
        shape=(1, 3, 4, 5),
    )
    assert kinds(same(proto, merge_moves)) == ["Transpose", "Relu"]


def test_a_transpose_of_axes_of_length_one_is_a_reshape() -> None:
    proto = chain(
        node("Transpose", ["x"], ["a"], perm=[1, 2, 0, 3]),
        node("Relu", ["a"], ["r"]),
        node("Transpose", ["r"], ["b"], perm=[0, 1, 3, 2]),
        node("Transpose", ["b"], ["y"], perm=[2, 1, 0, 3]),
        shape=(1, 3, 4, 5),
    )
    assert kinds(same(proto, merge_moves)) == ["Reshape", "Relu", "Transpose"]


def test_readers_share_a_transpose() -> None:
    proto = chain(
        node("Transpose", ["x"], ["a"], perm=[0, 3, 2, 1]),
        node("Transpose", ["x"], ["b"], perm=[0, 2, 3, 1]),
        node("Transpose", ["b"], ["c"], perm=[0, 2, 1, 3]),
        node("Add", ["a", "c"], ["y"]),
        shape=(1, 3, 4, 5),
    )
    graph = same(proto, partial(merge_moves, shared=True))
    assert kinds(graph) == ["Transpose", "Add"]


STEPS = {
    "conv": lambda a, b: node("Conv", [a, "w"], [b], pads=[1, 1, 1, 1]),
    "norm": lambda a, b: node("BatchNormalization", [a, *NORM], [b]),
    "relu": lambda a, b: node("Relu", [a], [b]),
    "pool": lambda a, b: node("MaxPool", [a], [b], kernel_shape=[2, 2], pads=[0, 0, 1, 1]),
    "average": lambda a, b: node("AveragePool", [a], [b], kernel_shape=[3, 3], pads=[1] * 4),
    "double": lambda a, b: node("Add", [a, a], [b]),
    "residual": lambda a, b: node("Add", [a, "x"], [b]),
    "join": lambda a, b: node("Sum", [a, "x", "b4"], [b]),
    "neg": lambda a, b: node("Neg", [a], [b]),
    "clip": lambda a, b: node("Clip", [a, "lo", "hi"], [b]),
}


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=8))
def test_any_chain_computes_the_same(steps: list[str]) -> None:
    names = ["x", *(f"t{index}" for index in range(len(steps)))]
    nodes = [STEPS[s](a, b) for s, a, b in zip(steps, names, names[1:], strict=False)]
    proto = chain(*nodes, shape=(1, 3, 5, 5))
    for name, array in {"lo": np.float32(-1), "hi": np.float32(1), "b4": constant(3, 1, 1)}.items():
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(array), name))
    same(proto, simplify)


@pytest.mark.parametrize("kind", ["ChannelAffine"])
def test_simplify_leaves_none(kind: str) -> None:
    proto = chain(node("BatchNormalization", ["x", *NORM], ["n"]), node("Relu", ["n"], ["y"]))
    assert kind not in kinds(simplify(graph_of(proto)))


@pytest.mark.parametrize("of_a_function", [True, False])
def test_what_a_function_is_multiplied_by_folds_into_the_layer_behind(of_a_function: bool) -> None:
    """Of other values it stays: their sizes decide which weights are as large as a step."""
    nodes = [
        node("Exp" if of_a_function else "Relu", ["x"], ["k"]),
        node("Mul", ["k", "large"], ["l"]),
        node("Add", ["l", "row"], ["m"]),
        node("MatMul", ["m", "fc"], ["y"]),
    ]
    constants = {"large": constant(3), "row": constant(3, seed=1), "fc": constant(3, 4)}
    proto = model(nodes, {"x": (1, 3)}, ["y"], constants)
    after = same(proto, lambda graph: fold_forward(fold_batchnorm(graph)))
    assert (len(kinds(after)) == 2) == of_a_function


@pytest.mark.parametrize("read_elsewhere", [False, True])
def test_a_normalisations_weights_fold_into_the_layers_that_read_it(read_elsewhere: bool) -> None:
    """Unless something else reads it: then the weights stay, once."""
    nodes = [
        node("LayerNormalization", ["x", "weight", "shift"], ["n"]),
        node("MatMul", ["n", "left"], ["l"]),
        node("MatMul", ["n", "right"], ["r"]),
        node("Add", ["l", "r"], ["s"]),
        node("Add", ["s", "n" if read_elsewhere else "x"], ["y"]),
    ]
    constants = {"weight": constant(4), "shift": constant(4, seed=1)}
    layers = {"left": constant(4, 4, seed=2), "right": constant(4, 4, seed=3)}
    proto = model(nodes, {"x": (1, 3, 4)}, ["y"], {**constants, **layers})
    after = kinds(same(proto, lambda graph: fold_forward(fold_batchnorm(graph))))
    assert after.count("Scale") == (1 if read_elsewhere else 0)
    assert after.count("Dense") == 2


def test_what_others_read_stays_in_front_of_a_layer() -> None:
    nodes = [
        node("Exp", ["x"], ["k"]),
        node("Mul", ["k", "large"], ["l"]),
        node("MatMul", ["l", "fc"], ["y"]),
    ]
    proto = model(nodes, {"x": (1, 3)}, ["y", "l"], {"large": constant(3), "fc": constant(3, 4)})
    assert len(kinds(same(proto, lambda graph: fold_forward(fold_batchnorm(graph))))) == 3


COMPARED = {"x": (2, 4), "y": (2, 4)}


@pytest.mark.parametrize(
    ("operator", "left"),
    [
        ("GreaterOrEqual", ["Sub", "Select"]),
        ("Less", ["Sub", "Select", "Sub"]),
    ],
)
def test_a_product_with_a_step_is_a_selection(operator: str, left: list[str]) -> None:
    nodes = [node(operator, ["x", "y"], ["c"]), node("Where", ["c", "x", "zero"], ["z"])]
    proto = model(nodes, COMPARED, ["z"], {"zero": np.zeros((2, 4), np.float32)})
    names = [kind for kind in kinds(same(proto, select_by_steps)) if kind != "AddConstant"]
    assert names == left


def test_a_step_with_two_readers_stays() -> None:
    nodes = [
        node("GreaterOrEqual", ["x", "y"], ["c"]),
        node("Cast", ["c"], ["n"], to=1),
        node("Mul", ["n", "x"], ["p"]),
        node("Add", ["n", "p"], ["z"]),
    ]
    after = same(model(nodes, COMPARED, ["z"]), select_by_steps)
    assert kinds(after) == ["Sub", "Step", "Mul", "Add"]
