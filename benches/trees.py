"""Ensembles of complete decision trees from random numbers, as ONNX models."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper


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
    given: dict[str, Any] = {
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
        "TreeEnsembleRegressor", ["input"], ["output"], domain="ai.onnx.ml", **given
    )
