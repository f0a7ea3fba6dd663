"""Support vector classifiers as a layer of decision values, and what becomes of these.

A classifier has two outputs, of which one may be revealed and the other must not: so it is taken
apart before a model is cut (`privet.compiler.graph.heads`). What stays of the node makes the
decision values alone: one for each pair of classes, or one for each class if it has no support
vectors. The rest is votes and probabilities, as ONNX Runtime gives them.
"""

from __future__ import annotations

from copy import deepcopy
from itertools import combinations

import numpy as np
import onnx

from privet.compiler.graph.onnx_model import ML
from privet.compiler.graph.rewriting import NodeExpansion, attributes, expand_nodes, labels

COUPLING = (
    "its probabilities of more than two classes are fitted to decision values step by step",
    "Export it without probabilities, or ask for labels alone",
)


def expand_svm(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with each support vector classifier taken apart; itself if it has none.

    One with a post_transform stays, for its importer to refuse.
    """
    return expand_nodes(model, _is_classifier, lambda node, graph: _Classifier(node, graph).nodes())


def _is_classifier(node: onnx.NodeProto) -> bool:
    if node.domain != ML or node.op_type != "SVMClassifier":
        return False
    return bool(attributes(node).get("post_transform", b"NONE") == b"NONE")


class _Classifier(NodeExpansion):
    """A support vector classifier."""

    def nodes(self) -> list[onnx.NodeProto]:
        """The nodes that have its place."""
        label, scores = (*self.node.output, "")[:2]
        classes, pairs = labels(self.attrs), bool(self.attrs.get("vectors_per_class"))
        decisions = f"{self.name}_decisions"
        decision_node = deepcopy(self.node)
        decision_node.output[:] = [decisions]
        self.new_nodes.append(decision_node)
        is_binary = pairs and len(classes) == 2
        # Of two classes the first has the positive decision value, and ONNX Runtime shows it last.
        negated = self.add("Neg", [decisions]) if is_binary else decisions
        if scores and self.attrs.get("prob_a"):
            platt = {name: list(self.attrs.get(name, [])) for name in ("prob_a", "prob_b")}
            self.add("PairwiseCoupling", [decisions], scores, domain=ML, **platt)
        elif scores and is_binary:
            self.add("Concat", [negated, decisions], scores, axis=1)
        elif scores:
            self.add("Identity", [decisions], scores)
        if label:
            votes = decisions
            if is_binary:
                votes = self.add("Concat", [decisions, negated], axis=1)
            elif pairs:
                votes = self._votes(decisions, len(classes))
            self.label(votes, classes, label)
        return self.new_nodes

    def _votes(self, decisions: str, classes: int) -> str:
        """How many of its pairs each class wins; the second of a pair wins at 0, too."""
        pairs = list(combinations(range(classes), 2))
        zero = self.constant("zero", np.zeros((), np.float32))
        first = self.add("Greater", [decisions, zero])
        comparisons = [first, self.add("Not", [first])]
        wins = [self.add("Cast", [truth], to=onnx.TensorProto.FLOAT) for truth in comparisons]
        all_wins = self.add("Concat", wins, axis=1)
        win_columns = [
            index + len(pairs) * pair.index(k)
            for k in range(classes)
            for index, pair in enumerate(pairs)
            if k in pair
        ]
        column_indices = self.constant("places", np.array(win_columns, np.int64))
        shape = self.constant("shape", np.array([-1, classes, classes - 1], np.int64))
        wins_by_class = self.add(
            "Reshape", [self.add("Gather", [all_wins, column_indices], axis=1), shape]
        )
        axes = self.constant("axes", np.array([2], np.int64))
        return self.add("ReduceSum", [wins_by_class, axes], keepdims=0)
