"""Support vector classifiers as a layer of decision values, and what becomes of these.

A classifier has two outputs, of which one may be revealed and the other must not: so it is taken
apart before a model is cut (`privet.compiler.graph.heads`). What stays of the node makes the
decision values alone: one for each pair of classes, or one for each class if it has no support
vectors. The rest is votes and probabilities, as ONNX Runtime gives them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import onnx
from onnx import helper

from privet.compiler.graph.onnx_model import ML
from privet.compiler.graph.operations import Array

COUPLING = (
    "its probabilities of more than two classes are fitted to decision values step by step",
    "Export it without probabilities, or ask for labels alone",
)


def expand_svm(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with each support vector classifier taken apart; itself if it has none.

    One with a post_transform stays, for its importer to refuse.
    """
    if not any(_is_classifier(node) for node in model.graph.node):
        return model
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    del changed.graph.node[:]
    for node in model.graph.node:
        parts = _Classifier(node, changed.graph).nodes() if _is_classifier(node) else [node]
        changed.graph.node.extend(parts)
    return changed


def _is_classifier(node: onnx.NodeProto) -> bool:
    if node.domain != ML or node.op_type != "SVMClassifier":
        return False
    found = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    return bool(found.get("post_transform", b"NONE") == b"NONE")


class _Classifier:
    def __init__(self, node: onnx.NodeProto, graph: onnx.GraphProto) -> None:
        self._node, self._graph = node, graph
        self._name = node.name or node.output[0]
        self._made: list[onnx.NodeProto] = []
        given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        texts = given.get("classlabels_strings")
        labels = [text.decode() for text in texts] if texts else given.get("classlabels_ints", [])
        self._labels = np.array(labels, dtype=object if texts else np.int64)
        self._pairs = bool(given.get("vectors_per_class"))
        self._platt = [list(given.get(name, [])) for name in ("prob_a", "prob_b")]

    def nodes(self) -> list[onnx.NodeProto]:
        """The nodes that have its place."""
        label, scores = (*self._node.output, "")[:2]
        raw = f"{self._name}_decisions"
        values = onnx.NodeProto()
        values.CopyFrom(self._node)
        values.output[:] = [raw]
        self._made.append(values)
        two = self._pairs and len(self._labels) == 2
        # Of two classes the first has the positive decision value, and ONNX Runtime shows it last.
        below = self._add("Neg", [raw]) if two else raw
        if scores and self._platt[0]:
            a, b = self._platt
            self._add("PairwiseCoupling", [raw], scores, domain=ML, prob_a=a, prob_b=b)
        elif scores and two:
            self._add("Concat", [below, raw], scores, axis=1)
        elif scores:
            self._add("Identity", [raw], scores)
        if label:
            each = raw
            if two:
                each = self._add("Concat", [raw, below], axis=1)
            elif self._pairs:
                each = self._votes(raw)
            place = self._add("ArgMax", [each], axis=1, keepdims=0)
            self._add("Gather", [self._constant("classes", self._labels), place], label, axis=0)
        return self._made

    def _votes(self, raw: str) -> str:
        """How many of its pairs each class wins; the second of a pair wins at 0, too."""
        classes = len(self._labels)
        pairs = list(combinations(range(classes), 2))
        zero = self._constant("zero", np.zeros((), np.float32))
        first = self._add("Greater", [raw, zero])
        both = [first, self._add("Not", [first])]
        wins = [self._add("Cast", [truth], to=onnx.TensorProto.FLOAT) for truth in both]
        joined = self._add("Concat", wins, axis=1)
        won = [
            index + len(pairs) * pair.index(k)
            for k in range(classes)
            for index, pair in enumerate(pairs)
            if k in pair
        ]
        places = self._constant("places", np.array(won, np.int64))
        shape = self._constant("shape", np.array([-1, classes, classes - 1], np.int64))
        grouped = self._add("Reshape", [self._add("Gather", [joined, places], axis=1), shape])
        axes = self._constant("axes", np.array([2], np.int64))
        return self._add("ReduceSum", [grouped, axes], keepdims=0)

    def _constant(self, what: str, array: Array) -> str:
        name = f"{self._name}_{what}"
        self._graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        return name

    def _add(self, op: str, inputs: Sequence[str], output: str = "", **more: Any) -> str:
        output = output or f"{self._name}_{len(self._made)}_{op}"
        self._made.append(helper.make_node(op, inputs, [output], name=self._name, **more))
        return output
