"""Classifiers made of decision trees as a regressor, what becomes of its scores, and labels.

A classifier has two outputs, of which one may be revealed and the other must not: so it is taken
apart before the model is read. What it gives is what ONNX Runtime makes of it, where that is of one
mind: two labels are distinguished by the score of one. With more labels the largest score wins of
those that a row has: base values give each class one, and without them a leaf that the row ends in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from privet.compiler.graph.onnx_model import ML
from privet.compiler.graph.rewriting import NodeExpansion, attributes, expand_nodes, labels

TRANSFORMS = {
    "NONE": "Identity",
    "LOGISTIC": "Sigmoid",
    "SOFTMAX": "Softmax",
    "SOFTMAX_ZERO": "SoftmaxZero",
}
"""What may become of the scores, and the operator that does it."""
BASE_SCORES = "base_scores"
"""Base values of what was a classifier: each row has them, whatever leaves it ends in."""


def expand_trees(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with each such classifier taken apart; itself if it has none.

    One that cannot be taken apart stays, for its importer to refuse.
    """
    return expand_nodes(
        model, lambda node: _is_classifier(node) and why_not(node) is None, _expand_classifier
    )


def why_not(node: onnx.NodeProto) -> str | None:
    """Why a classifier cannot be taken apart, if it cannot."""
    attrs = attributes(node)
    transform = attrs.get("post_transform", b"NONE").decode()
    if transform not in TRANSFORMS:
        return f"its post_transform is {transform}"
    if (problem := _list_problem(attrs)) is not None:
        return problem
    if len(labels(attrs)) > 2:
        if _scored_classes(attrs) is None:
            return "which classes have a score depends on the leaves that a row ends in"
        return None
    if _places_or_texts(attrs) and _is_mirrored(attrs):
        return None
    if len(labels(attrs)) < 2 or set(attrs.get("class_ids", [])) - {0}:
        return "ONNX Runtime gives no labels of two classes unless one score tells them apart"
    if len(_numbers(attrs, "base_values")) > 1:
        return "it has two base values for one score"
    if transform != "NONE" and _all_positive(attrs):
        return f"its labels are those of scores above a half, and its post_transform is {transform}"
    if transform.startswith("SOFTMAX"):
        return f"it has a {transform} of one score"
    return None


def _is_classifier(node: onnx.NodeProto) -> bool:
    return node.domain == ML and node.op_type == "TreeEnsembleClassifier"


def _numbers(attrs: dict[str, Any], name: str) -> list[float]:
    tensor = attrs.get(f"{name}_as_tensor")
    if tensor is not None:
        return [float(x) for x in onnx.numpy_helper.to_array(tensor).ravel()]
    return list(attrs.get(name, []))


def _all_positive(attrs: dict[str, Any]) -> bool:
    return all(weight >= 0 for weight in _numbers(attrs, "class_weights"))


def _list_problem(attrs: dict[str, Any]) -> str | None:
    """What is wrong with the lists of leaves, or of nodes."""
    columns = [attrs.get(f"class_{key}", []) for key in ("treeids", "nodeids", "ids")]
    nodes = [attrs.get(f"nodes_{key}", []) for key in ("treeids", "nodeids", "modes")]
    for part, lists in {
        "leaves": [*columns, _numbers(attrs, "class_weights")],
        "nodes": nodes,
    }.items():
        if len({len(entries) for entries in lists}) > 1 or not lists[0]:
            return f"its lists of {part} differ in length, or are empty"
    if not set(columns[2]) <= set(range(len(labels(attrs)))):
        return "a leaf is of a class without a label"
    return None


def _places_or_texts(attrs: dict[str, Any]) -> bool:
    """Whether two labels are what ONNX Runtime gives of two scores: their places, or texts."""
    names = labels(attrs).tolist()
    return len(names) == 2 and ("classlabels_strings" in attrs or names == [0, 1])


def _scored_classes(attrs: dict[str, Any]) -> list[int] | None:
    """The classes of which the largest score gives the label: those that every row has a score of.

    A class without one counts as 0 among the scores, and never wins. None if some rows have a score
    of a class and others have none, where scores may be negative.
    """
    class_count = len(labels(attrs))
    if _numbers(attrs, "base_values"):
        return list(range(class_count))
    leaves: dict[int, dict[int, dict[int, float]]] = defaultdict(dict)
    nodes = (attrs[f"nodes_{key}"] for key in ("treeids", "nodeids", "modes"))
    for tree, node, mode in zip(*nodes, strict=True):
        if mode == b"LEAF":
            leaves[tree][node] = {}
    columns = (attrs.get(f"class_{key}", []) for key in ("treeids", "nodeids", "ids"))
    for tree, node, label, weight in zip(*columns, _numbers(attrs, "class_weights"), strict=True):
        if node in leaves[tree]:
            leaf_scores = leaves[tree][node]
            leaf_scores[label] = leaf_scores.get(label, 0.0) + weight
    trees = [list(tree.values()) for tree in leaves.values()]
    if _all_positive(attrs) and any(all(any(leaf.values()) for leaf in tree) for tree in trees):
        return list(range(class_count))  # the largest score is above 0
    leaf_labels = {label for tree in trees for leaf in tree for label in leaf}
    common_labels = {
        label for tree in trees for label in leaf_labels if all(label in leaf for leaf in tree)
    }
    return sorted(common_labels) if leaf_labels == common_labels else None


def _is_mirrored(attrs: dict[str, Any]) -> bool:
    """Whether of two scores each is the other's negative."""
    sides: list[dict[tuple[int, int], float]] = [{}, {}]
    columns = (attrs.get(f"class_{key}", []) for key in ("ids", "treeids", "nodeids"))
    for side, tree, node, weight in zip(*columns, _numbers(attrs, "class_weights"), strict=True):
        sides[side][tree, node] = weight * (-1 if side else 1)
    # With two base values, even zeros, ONNX Runtime takes the first score for the second.
    return sides[0] == sides[1] and not _numbers(attrs, "base_values")


def _expand_classifier(node: onnx.NodeProto, graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    expansion = NodeExpansion(node, graph)
    attrs, classes = expansion.attrs, labels(expansion.attrs)
    label, scores = (*node.output, "")[:2]
    transform = TRANSFORMS[attrs.get("post_transform", b"NONE").decode()]
    one_score = len(classes) == 2 and not any(attrs["class_ids"])
    targets = _binary_targets(attrs) if one_score else _class_targets(attrs, len(classes))
    trees: dict[str, Any] = {
        key: value
        for key, value in attrs.items()
        if key.startswith("nodes_") and not key.startswith("nodes_hitrates")
    }
    trees |= {"n_targets": len(classes), **targets}
    raw_scores = f"{expansion.name}_scores"
    expansion.add("TreeEnsembleRegressor", node.input, raw_scores, domain=ML, **trees)
    if scores:
        axis: dict[str, Any] = {"axis": 1} if transform == "Softmax" else {}
        expansion.add(transform, [raw_scores], scores, **axis)
    if label:
        scored_classes = (
            list(range(len(classes))) if len(classes) == 2 else _scored_classes(attrs) or []
        )
        if len(scored_classes) < len(classes):
            operands = [raw_scores, expansion.constant("scored", np.array(scored_classes))]
            raw_scores = expansion.add("Gather", operands, f"{expansion.name}_own", axis=1)
        expansion.label(raw_scores, classes[scored_classes], label, f"{expansion.name}_place")
    return expansion.new_nodes


def _class_targets(attrs: dict[str, Any], class_count: int) -> dict[str, Any]:
    """A target for each class."""
    base = _numbers(attrs, "base_values")
    weights = _numbers(attrs, "class_weights")
    trees, nodes, ids = (list(attrs[f"class_{key}"]) for key in ("treeids", "nodeids", "ids"))
    return _targets(trees, nodes, ids, weights, base or [0.0] * class_count)


def _binary_targets(attrs: dict[str, Any]) -> dict[str, Any]:
    """Scores of both labels: `1 - p` and `p` of probabilities, else `-s` and `s`."""
    weights = _numbers(attrs, "class_weights")
    base = sum(_numbers(attrs, "base_values"))
    trees, nodes = (2 * list(attrs[f"class_{key}"]) for key in ("treeids", "nodeids"))
    ids: Sequence[int] = [0] * len(weights) + [1] * len(weights)
    total = 1.0 if _all_positive(attrs) else 0.0
    return _targets(trees, nodes, ids, [-w for w in weights] + weights, [total - base, base])


def _targets(
    trees: Sequence[int],
    nodes: Sequence[int],
    ids: Sequence[int],
    weights: Sequence[float],
    base: Sequence[float],
) -> dict[str, Any]:
    return {
        "target_treeids": trees,
        "target_nodeids": nodes,
        "target_ids": ids,
        "target_weights_as_tensor": _double_tensor(weights, "weights"),
        f"{BASE_SCORES}_as_tensor": _double_tensor(base, "base"),
    }


def _double_tensor(numbers: Sequence[float], name: str) -> onnx.TensorProto:
    return onnx.numpy_helper.from_array(np.array(numbers, dtype=np.float64), name)
