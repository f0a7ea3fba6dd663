"""Ensembles of decision trees as ONNX models, from random numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper


def random_trees(
    count: int,
    depth: int,
    features: int,
    *,
    seed: int = 0,
    targets: int = 1,
    complete: bool = True,
    stop: float = 0.3,
    least: int = 0,
    modes: Sequence[str] = ("LEQ",),
    rows: int = 1,
    **attributes: Any,
) -> onnx.ModelProto:
    """A `TreeEnsembleRegressor` of `count` trees with up to `depth` levels.

    Unless they are `complete`, a node below level `least` is a leaf with probability `stop`; the
    first tree has a leaf at level `depth` all the same.
    """
    rng = np.random.default_rng(seed)
    lists: dict[str, list[Any]] = defaultdict(list)

    def grow(tree: int, level: int, way: bool) -> int:
        number = sum(1 for t in lists["nodes_treeids"] if t == tree)
        may_stop = not complete and level >= least and not way
        leaf = level == depth or (may_stop and rng.random() < stop)
        place = len(lists["nodes_treeids"])
        for name, value in {
            "treeids": tree,
            "nodeids": number,
            "featureids": 0 if leaf else int(rng.integers(features)),
            "modes": "LEAF" if leaf else f"BRANCH_{rng.choice(modes)}",
            "values": 0.0 if leaf else float(np.float32(rng.normal())),
            "truenodeids": 0,
            "falsenodeids": 0,
        }.items():
            lists[f"nodes_{name}"].append(value)
        if leaf:
            for target in range(targets):
                weight = float(np.float32(rng.normal() / count))
                for name, value in zip(
                    ("treeids", "nodeids", "ids", "weights"),
                    (tree, number, target, weight),
                    strict=True,
                ):
                    lists[f"target_{name}"].append(value)
        else:
            lists["nodes_truenodeids"][place] = grow(tree, level + 1, way)
            lists["nodes_falsenodeids"][place] = grow(tree, level + 1, False)
        return number

    for tree in range(count):
        grow(tree, 0, tree == 0)
    fields: dict[str, Any] = {"n_targets": targets, **lists, **attributes}
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", **fields)
    return _model(node, [rows, features], [rows, targets], 3)


def split_trees(aggregate: int, rows: int) -> onnx.ModelProto:
    """A `TreeEnsemble` of a tree that asks for a set, and of a tree with two leaves."""

    def numbers(*values: float) -> onnx.TensorProto:
        return onnx.numpy_helper.from_array(np.array(values, dtype=np.float32))

    nan = float("nan")
    node = helper.make_node(
        "TreeEnsemble",
        ["x"],
        ["y"],
        name="trees",
        domain="ai.onnx.ml",
        n_targets=2,
        aggregate_function=aggregate,
        tree_roots=[0, 2],
        nodes_featureids=[0, 1, 0],
        nodes_modes=onnx.numpy_helper.from_array(np.array([6, 0, 1], dtype=np.uint8)),
        nodes_splits=numbers(0, 3.5, 5),
        nodes_truenodeids=[1, 0, 2],
        nodes_trueleafs=[0, 1, 1],
        nodes_falsenodeids=[1, 2, 3],
        nodes_falseleafs=[1, 1, 1],
        membership_values=numbers(1, 4, 6, nan),
        leaf_targetids=[0, 1, 0, 1],
        leaf_weights=numbers(0.5, -1.25, 3, 0.75),
    )
    return _model(node, [rows, 2], [rows, 2], 5)


def _model(
    node: onnx.NodeProto, x: Sequence[int], y: Sequence[int], version: int
) -> onnx.ModelProto:
    graph = helper.make_graph(
        [node],
        "trees",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, y)],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)
