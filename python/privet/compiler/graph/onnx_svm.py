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
from privet.compiler.graph.rewriting import Parts, attributes, expanded, labels

COUPLING = (
    "its probabilities of more than two classes are fitted to decision values step by step",
    "Export it without probabilities, or ask for labels alone",
)


def expand_svm(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with each support vector classifier taken apart; itself if it has none.

    One with a post_transform stays, for its importer to refuse.
    """
    return expanded(model, _is_classifier, lambda node, graph: _Classifier(node, graph).nodes())


def _is_classifier(node: onnx.NodeProto) -> bool:
    if node.domain != ML or node.op_type != "SVMClassifier":
        return False
    return bool(attributes(node).get("post_transform", b"NONE") == b"NONE")


class _Classifier(Parts):
    """A support vector classifier."""

    def nodes(self) -> list[onnx.NodeProto]:
        """The nodes that have its place."""
        label, scores = (*self.node.output, "")[:2]
        classes, pairs = labels(self.given), bool(self.given.get("vectors_per_class"))
        raw = f"{self.name}_decisions"
        values = deepcopy(self.node)
        values.output[:] = [raw]
        self.emitted.append(values)
        two = pairs and len(classes) == 2
        # Of two classes the first has the positive decision value, and ONNX Runtime shows it last.
        below = self.add("Neg", [raw]) if two else raw
        if scores and self.given.get("prob_a"):
            platt = {name: list(self.given.get(name, [])) for name in ("prob_a", "prob_b")}
            self.add("PairwiseCoupling", [raw], scores, domain=ML, **platt)
        elif scores and two:
            self.add("Concat", [below, raw], scores, axis=1)
        elif scores:
            self.add("Identity", [raw], scores)
        if label:
            votes = raw
            if two:
                votes = self.add("Concat", [raw, below], axis=1)
            elif pairs:
                votes = self._votes(raw, len(classes))
            self.label(votes, classes, label)
        return self.emitted

    def _votes(self, raw: str, classes: int) -> str:
        """How many of its pairs each class wins; the second of a pair wins at 0, too."""
        pairs = list(combinations(range(classes), 2))
        zero = self.constant("zero", np.zeros((), np.float32))
        first = self.add("Greater", [raw, zero])
        truths = [first, self.add("Not", [first])]
        wins = [self.add("Cast", [truth], to=onnx.TensorProto.FLOAT) for truth in truths]
        joined = self.add("Concat", wins, axis=1)
        win_places = [
            index + len(pairs) * pair.index(k)
            for k in range(classes)
            for index, pair in enumerate(pairs)
            if k in pair
        ]
        places = self.constant("places", np.array(win_places, np.int64))
        shape = self.constant("shape", np.array([-1, classes, classes - 1], np.int64))
        grouped = self.add("Reshape", [self.add("Gather", [joined, places], axis=1), shape])
        axes = self.constant("axes", np.array([2], np.int64))
        return self.add("ReduceSum", [grouped, axes], keepdims=0)
