"""ONNX models rewritten before they are read: nodes in place of others, and constants for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import onnx
from onnx import helper

from privet.compiler.graph.operations import Array


def without_nodes(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of a model, for other nodes."""
    copy = deepcopy(model)
    del copy.graph.node[:]
    return copy


def expand_nodes(
    model: onnx.ModelProto,
    is_chosen: Callable[[onnx.NodeProto], bool],
    expand_node: Callable[[onnx.NodeProto, onnx.GraphProto], Iterable[onnx.NodeProto]],
) -> onnx.ModelProto:
    """The model with what `expand_node` makes of each chosen node in its place, given the graph
    that gets the constants; itself if none is chosen."""
    flags = [is_chosen(node) for node in model.graph.node]
    if not any(flags):
        return model
    copy = without_nodes(model)
    for node, is_expanded in zip(model.graph.node, flags, strict=True):
        copy.graph.node.extend(expand_node(node, copy.graph) if is_expanded else [node])
    return copy


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """A node's attributes by name; texts are bytes."""
    return {attr.name: helper.get_attribute_value(attr) for attr in node.attribute}


def labels(attrs: Mapping[str, Any]) -> Array:
    """The labels that a classifier's attributes list: texts, or whole numbers."""
    if texts := attrs.get("classlabels_strings"):
        return np.array([text.decode() for text in texts], dtype=object)
    numbers = attrs.get("classlabels_ints") or attrs.get("classlabels_int64s") or []
    return np.array(numbers, dtype=np.int64)


class NodeExpansion:
    """Nodes that stand in place of one of `graph`, and constants that they read."""

    def __init__(self, node: onnx.NodeProto, graph: onnx.GraphProto) -> None:
        self.node, self.graph = node, graph
        self.name = node.name or node.output[0]
        self.attrs = attributes(node)
        self.new_nodes: list[onnx.NodeProto] = []
        self.used_names: set[str] = set()
        """Names of tensors that no part may have."""

    def add(self, op: str, inputs: Iterable[str], output: str = "", **attrs: Any) -> str:
        """Adds a node; the name of its result, which is `output` if that is given."""
        output = output or self._unique_name(f"{self.name}_{len(self.new_nodes)}_{op}")
        self.new_nodes.append(helper.make_node(op, list(inputs), [output], name=self.name, **attrs))
        return output

    def constant(self, suffix: str, array: Array) -> str:
        """Adds a constant; its name."""
        name = self._unique_name(f"{self.name}_{suffix}")
        self.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        return name

    def _unique_name(self, name: str) -> str:
        while name in self.used_names:
            name += "_"
        self.used_names.add(name)
        return name

    def label(self, scores: str, classes: Array, output: str, index: str = "") -> None:
        """Adds the label of the largest of scores, at `place` among the classes."""
        index = self.add("ArgMax", [scores], index, axis=1, keepdims=0)
        self.add("Gather", [self.constant("classes", classes), index], output, axis=0)
