"""Labels and scores of `TreeEnsembleClassifier` in its corner cases, as ONNX Runtime gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from privet.compiler.compile import compile
from privet.compiler.executor import execute
from privet.errors import UnsupportedModel

Leaves = Mapping[int, Mapping[int, float]]
"""Weights by class of the leaf of a number that is not above 0, which is 1, and of others', 2."""
BELOW, ABOVE = 1, 2
ROWS = (np.array([[-1.0]], np.float32), np.array([[1.0]], np.float32))


def classifier(labels: Sequence[int | str], leaves: Leaves, **attributes: Any) -> onnx.ModelProto:
    """One tree that asks whether its only feature is at most 0."""
    entries = [(leaf, label, w) for leaf, weights in leaves.items() for label, w in weights.items()]
    texts = isinstance(labels[0], str)
    fields = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, BELOW, ABOVE],
        "nodes_featureids": [0, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_values": [0.0, 0.0, 0.0],
        "nodes_truenodeids": [BELOW, 0, 0],
        "nodes_falsenodeids": [ABOVE, 0, 0],
        "class_treeids": [0] * len(entries),
        "class_nodeids": [leaf for leaf, _, _ in entries],
        "class_ids": [label for _, label, _ in entries],
        "class_weights": [weight for _, _, weight in entries],
        "classlabels_strings" if texts else "classlabels_int64s": labels,
        **attributes,
    }
    operator = "TreeEnsembleClassifier"
    node = helper.make_node(operator, ["x"], ["label", "scores"], domain="ai.onnx.ml", **fields)
    entry = helper.make_tensor_value_info
    outputs = [
        entry("label", TensorProto.STRING if texts else TensorProto.INT64, [1]),
        entry("scores", TensorProto.FLOAT, [1, len(labels)]),
    ]
    graph = helper.make_graph([node], "tree", [entry("x", TensorProto.FLOAT, [1, 1])], outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def assert_as_onnx_runtime(model: onnx.ModelProto) -> None:
    compiled = compile(model)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    for row in ROWS:
        label, scores = session.run(None, {"x": row})
        outputs = execute(compiled.program, compiled.weights, [row]).outputs
        assert outputs["label"].tolist() == label.tolist()
        np.testing.assert_allclose(outputs["scores"], scores, atol=2e-3)


MISSING: Leaves = {BELOW: {0: -0.7, 1: -0.3}, ABOVE: {0: -0.2, 1: -0.8}}
MANY: Mapping[str, tuple[Sequence[int | str], Leaves]] = {
    "the last class has no leaf": ((5, 6, 7), MISSING),
    "the first class has no leaf": (
        ("a", "b", "c"),
        {BELOW: {2: -0.7, 1: -0.3}, ABOVE: {2: -0.2, 1: -0.8}},
    ),
    "only one class has leaves": ((5, 6, 7), {BELOW: {1: -0.5}, ABOVE: {1: -0.2}}),
    "weights of zero count": ((5, 6, 7), {BELOW: {1: 0.0, 2: -0.5}, ABOVE: {1: -0.2, 2: 0.0}}),
    "ties": ((5, 6, 7), {BELOW: {0: 0.5, 1: 0.5, 2: 0.5}, ABOVE: {1: 0.2, 2: 0.2}}),
    "ties below zero": ((5, 6, 7), {BELOW: {1: -0.5, 2: -0.5}, ABOVE: {1: -0.2, 2: -0.2}}),
    "a class in some leaves": ((5, 6, 7), {BELOW: {0: 0.7}, ABOVE: {1: 0.3}}),
}
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", MANY)
def test_the_largest_score_that_a_row_has_gives_the_label(name: str, transform: str) -> None:
    labels, leaves = MANY[name]
    assert_as_onnx_runtime(classifier(labels, leaves, post_transform=transform))


@pytest.mark.parametrize("base", [[0.0, 0.0, 0.0], [0.1, -0.2, -0.5]])
@pytest.mark.parametrize("leaves", [MISSING, {BELOW: {0: -0.7}, ABOVE: {1: -0.3}}])
def test_base_values_give_each_class_a_score(leaves: Leaves, base: list[float]) -> None:
    assert_as_onnx_runtime(classifier((5, 6, 7), leaves, base_values=base))


MIXED: Leaves = {BELOW: {0: 0.7}, ABOVE: {0: -0.3}}
POSITIVE: Leaves = {BELOW: {0: 0.7}, ABOVE: {0: 0.3}}
MIRRORED: Leaves = {BELOW: {0: 0.7, 1: -0.7}, ABOVE: {0: -0.2, 1: 0.2}}
TWO: Mapping[str, tuple[Sequence[int | str], Leaves, Mapping[str, Any]]] = {
    "one score": ((3, 8), MIXED, {}),
    "one score, texts": (("a", "b"), MIXED, {}),
    "one score and a base value": ((3, 8), MIXED, {"base_values": [0.1]}),
    "one score as a chance": ((3, 8), MIXED, {"post_transform": "LOGISTIC"}),
    "one chance": ((3, 8), POSITIVE, {}),
    "one chance and a base value": ((3, 8), POSITIVE, {"base_values": [0.3]}),
    "each is the other's negative": ((0, 1), MIRRORED, {}),
    "each is the other's negative, texts": (("a", "b"), MIRRORED, {"post_transform": "SOFTMAX"}),
    "a tie": ((0, 1), {BELOW: {0: 0.0, 1: 0.0}, ABOVE: {0: -0.2, 1: 0.2}}, {}),
}


@pytest.mark.parametrize("name", TWO)
def test_two_labels(name: str) -> None:
    labels, leaves, attributes = TWO[name]
    assert_as_onnx_runtime(classifier(labels, leaves, **attributes))


def forest(labels: Sequence[int], votes: Sequence[Sequence[int]], **attributes: Any) -> Any:
    """Trees of which each votes for one class below 0 and for one above, with one part of 1."""
    numbers, part = range(len(votes)), float(np.float32(1 / len(votes)))
    cast = [(tree, leaf, votes[tree][leaf - 1]) for tree in numbers for leaf in (BELOW, ABOVE)]
    if len(labels) == 2:
        weights, cast = (
            [part * weight for *_, weight in cast],
            [(tree, leaf, 0) for tree, leaf, _ in cast],
        )
    else:
        weights = [part] * len(cast)
    fields = {
        "nodes_treeids": [tree for tree in numbers for _ in range(3)],
        "nodes_nodeids": [0, BELOW, ABOVE] * len(votes),
        "nodes_featureids": [0] * 3 * len(votes),
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"] * len(votes),
        "nodes_values": [0.0] * 3 * len(votes),
        "nodes_truenodeids": [BELOW, 0, 0] * len(votes),
        "nodes_falsenodeids": [ABOVE, 0, 0] * len(votes),
        "class_treeids": [tree for tree, _, _ in cast],
        "class_nodeids": [leaf for _, leaf, _ in cast],
        "class_ids": [label for _, _, label in cast],
        "class_weights": weights,
    }
    return classifier(labels, {}, **{**fields, **attributes})


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX_ZERO"])
def test_classes_with_as_many_votes_tie(transform: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    below, above = rng.permutation([0, 0, 0, 1, 1, 1]), rng.permutation([1, 1, 1, 2, 2, 2])
    votes = np.stack([below, above], axis=1).tolist()
    assert_as_onnx_runtime(forest((5, 6, 7), votes, post_transform=transform))


@pytest.mark.parametrize("trees", [2, 10, 14, 24, 30])
def test_half_of_the_votes_is_not_enough(trees: int) -> None:
    votes = [[tree % 2, tree % 2 ^ 1] for tree in range(trees)]
    compiled = compile(forest((3, 8), votes))
    for row in ROWS:
        outputs = execute(compiled.program, compiled.weights, [row]).outputs
        assert outputs["label"].tolist() == [3]


REFUSED: Sequence[tuple[str, Sequence[int], Leaves, Mapping[str, Any]]] = (
    ("depends on the leaves", (5, 6, 7), {BELOW: {0: -0.7}, ABOVE: {1: -0.3}}, {}),
    ("unless one score tells", (0, 1), {BELOW: {0: 0.7, 1: 0.3}, ABOVE: {0: 0.2, 1: 0.8}}, {}),
    ("unless one score tells", (7, 9), MIRRORED, {}),
    ("unless one score tells", (0, 1), MIRRORED, {"base_values": [0.0, 0.0]}),
    ("two base values", (0, 1), MIXED, {"base_values": [0.1, 0.1]}),
    ("scores above a half", (0, 1), POSITIVE, {"post_transform": "LOGISTIC"}),
    ("SOFTMAX of one score", (0, 1), MIXED, {"post_transform": "SOFTMAX"}),
    ("post_transform is PROBIT", (5, 6, 7), MISSING, {"post_transform": "PROBIT"}),
    ("a class without a label", (5, 6, 7), {BELOW: {0: 1.0}, ABOVE: {7: 1.0}}, {}),
    ("tree 0 has no node 9", (5, 6, 7), MISSING, {"nodes_truenodeids": [9, 0, 0]}),
    ("differ in length", (5, 6, 7), MISSING, {"class_nodeids": [1, 2]}),
)


@pytest.mark.parametrize(("reason", "labels", "leaves", "attributes"), REFUSED)
def test_what_is_refused(
    reason: str, labels: Sequence[int], leaves: Leaves, attributes: Mapping[str, Any]
) -> None:
    with pytest.raises(UnsupportedModel, match=reason):
        compile(classifier(labels, leaves, **attributes))
