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
from privet.compiler.graph.rewriting import Parts, attributes, expanded, labels

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
    return expanded(model, lambda node: _is_classifier(node) and why_not(node) is None, _apart)


def why_not(node: onnx.NodeProto) -> str | None:
    """Why a classifier cannot be taken apart, if it cannot."""
    attrs = attributes(node)
    transform = attrs.get("post_transform", b"NONE").decode()
    if transform not in TRANSFORMS:
        return f"its post_transform is {transform}"
    if (problem := _misfit(attrs)) is not None:
        return problem
    if len(labels(attrs)) > 2:
        if _scored(attrs) is None:
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


def _misfit(attrs: dict[str, Any]) -> str | None:
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


def _scored(attrs: dict[str, Any]) -> list[int] | None:
    """The classes of which the largest score gives the label: those that every row has a score of.

    A class without one counts as 0 among the scores, and never wins. None if some rows have a score
    of a class and others have none, where scores may be negative.
    """
    classes = len(labels(attrs))
    if _numbers(attrs, "base_values"):
        return list(range(classes))
    leaves: dict[int, dict[int, dict[int, float]]] = defaultdict(dict)
    nodes = (attrs[f"nodes_{key}"] for key in ("treeids", "nodeids", "modes"))
    for tree, node, mode in zip(*nodes, strict=True):
        if mode == b"LEAF":
            leaves[tree][node] = {}
    columns = (attrs.get(f"class_{key}", []) for key in ("treeids", "nodeids", "ids"))
    for tree, node, label, weight in zip(*columns, _numbers(attrs, "class_weights"), strict=True):
        if node in leaves[tree]:
            at = leaves[tree][node]
            at[label] = at.get(label, 0.0) + weight
    trees = [list(tree.values()) for tree in leaves.values()]
    if _all_positive(attrs) and any(all(any(leaf.values()) for leaf in tree) for tree in trees):
        return list(range(classes))  # the largest score is above 0
    met = {label for tree in trees for leaf in tree for label in leaf}
    always = {label for tree in trees for label in met if all(label in leaf for leaf in tree)}
    return sorted(always) if met == always else None


def _is_mirrored(attrs: dict[str, Any]) -> bool:
    """Whether of two scores each is the other's negative."""
    sides: list[dict[tuple[int, int], float]] = [{}, {}]
    columns = (attrs.get(f"class_{key}", []) for key in ("ids", "treeids", "nodeids"))
    for side, tree, node, weight in zip(*columns, _numbers(attrs, "class_weights"), strict=True):
        sides[side][tree, node] = weight * (-1 if side else 1)
    # With two base values, even zeros, ONNX Runtime takes the first score for the second.
    return sides[0] == sides[1] and not _numbers(attrs, "base_values")


def _apart(node: onnx.NodeProto, graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    parts = Parts(node, graph)
    attrs, classes = parts.given, labels(parts.given)
    label, scores = (*node.output, "")[:2]
    transform = TRANSFORMS[attrs.get("post_transform", b"NONE").decode()]
    one_score = len(classes) == 2 and not any(attrs["class_ids"])
    targets = _two(attrs) if one_score else _many(attrs, len(classes))
    trees: dict[str, Any] = {
        key: value
        for key, value in attrs.items()
        if key.startswith("nodes_") and not key.startswith("nodes_hitrates")
    }
    trees |= {"n_targets": len(classes), **targets}
    raw = f"{parts.name}_scores"
    parts.add("TreeEnsembleRegressor", node.input, raw, domain=ML, **trees)
    if scores:
        axis: dict[str, Any] = {"axis": 1} if transform == "Softmax" else {}
        parts.add(transform, [raw], scores, **axis)
    if label:
        scored = list(range(len(classes))) if len(classes) == 2 else _scored(attrs) or []
        if len(scored) < len(classes):
            operands = [raw, parts.constant("scored", np.array(scored))]
            raw = parts.add("Gather", operands, f"{parts.name}_own", axis=1)
        parts.label(raw, classes[scored], label, f"{parts.name}_place")
    return parts.emitted


def _many(attrs: dict[str, Any], classes: int) -> dict[str, Any]:
    """A target for each class."""
    base = _numbers(attrs, "base_values")
    weights = _numbers(attrs, "class_weights")
    trees, nodes, ids = (list(attrs[f"class_{key}"]) for key in ("treeids", "nodeids", "ids"))
    return _targets(trees, nodes, ids, weights, base or [0.0] * classes)


def _two(attrs: dict[str, Any]) -> dict[str, Any]:
    """Scores of both labels: `1 - p` and `p` of probabilities, else `-s` and `s`."""
    weights = _numbers(attrs, "class_weights")
    base = sum(_numbers(attrs, "base_values"))
    trees, nodes = (2 * list(attrs[f"class_{key}"]) for key in ("treeids", "nodeids"))
    ids: Sequence[int] = [0] * len(weights) + [1] * len(weights)
    whole = 1.0 if _all_positive(attrs) else 0.0
    return _targets(trees, nodes, ids, [-w for w in weights] + weights, [whole - base, base])


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
        "target_weights_as_tensor": _doubles(weights, "weights"),
        f"{BASE_SCORES}_as_tensor": _doubles(base, "base"),
    }


def _doubles(numbers: Sequence[float], name: str) -> onnx.TensorProto:
    return onnx.numpy_helper.from_array(np.array(numbers, dtype=np.float64), name)
