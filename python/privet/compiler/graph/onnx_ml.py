"""Nodes of ai.onnx.ml as simpler ones. Classifiers are scores, what becomes of them, and labels.

A classifier has two outputs, of which one may be revealed and the other must not: so it is taken
apart before a model is cut (`privet.compiler.graph.heads`).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import onnx
from onnx import helper

from privet.compiler.graph.input_shapes import WHOLE
from privet.compiler.graph.onnx_model import ML
from privet.compiler.graph.rewriting import NodeExpansion, attributes, labels, without_nodes

TRANSFORMS = {
    "NONE": None,
    "LOGISTIC": "Sigmoid",
    "SOFTMAX": "Softmax",
    "SOFTMAX_ZERO": "SoftmaxZero",
    "PROBIT": "Probit",
}
"""What may become of scores, and the operator that does it."""
NUMBERED = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""The names of `TreeEnsemble`'s numbers."""
REGRESSORS = ("TreeEnsembleRegressor", "TreeEnsemble")


ENCODERS = ("LabelEncoder", "OneHotEncoder")


def expand_ml(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with each linear classifier taken apart, and the post_transform of a regressor a
    node of its own; with encoders that read numbers before a cast to integers, since they tell
    whole numbers apart by themselves; and power transforms by numbers of 1 or more, and without the
    logarithms that they take times zeros. Itself if it has none of these.
    """
    if not any(node.domain == ML for node in model.graph.node):
        return model
    copy = without_nodes(model)
    casts = {node.output[0]: node.input[0] for node in model.graph.node if _to_integer(node)}
    zeros = {tensor.name: tensor.dims for tensor in model.graph.initializer if _is_zero(tensor)}
    logs, bases = _logarithms(model), _bases(model)
    masks = {tensor.name for tensor in model.graph.initializer if _is_mask_of_zeros(tensor)}
    for node in model.graph.node:
        if _is_classifier(node):
            copy.graph.node.extend(_Classifier(node, copy.graph).nodes())
        elif node.domain == ML and node.op_type in REGRESSORS:
            copy.graph.node.extend(_regressor_nodes(node))
        elif node.op_type == "Equal" and node.input[0] in casts and node.input[1] in zeros:
            number, shape = casts[node.input[0]], zeros[node.input[1]]
            copy.graph.node.extend(_zero_test_nodes(node, number, shape, copy.graph))
        elif node.op_type == "Mul" and node.input[0] in logs and node.input[1] in masks:
            operands = 2 * [logs[node.input[0]]]
            copy.graph.node.append(helper.make_node("Sub", operands, node.output, node.name))
        elif node.op_type == "Pow" and node.input[0] in bases:
            copy.graph.node.extend(_power_nodes(node, *bases[node.input[0]]))
        else:
            copy.graph.node.append(node)
        if node.op_type in ENCODERS and node.input[0] in casts:
            copy.graph.node[-1].input[0] = casts[node.input[0]]
    return copy


def _logarithms(model: onnx.ModelProto) -> dict[str, str]:
    """Logarithms, and those with their sign changed, by name; and what each is taken of."""
    logs: dict[str, str] = {}
    for node in model.graph.node:
        if node.op_type == "Log":
            logs[node.output[0]] = node.input[0]
        elif node.op_type == "Neg" and node.input[0] in logs:
            logs[node.output[0]] = logs[node.input[0]]
    return logs


def _bases(model: onnx.ModelProto) -> dict[str, tuple[str, bool, str]]:
    """`x + 1` and `1 - x`, by name: x, whether its sign is changed, and the ones. Of power
    transforms alone, which have both, write ones as `x / x` and ask for `x < x - x`."""

    def self_operations(operator: str) -> dict[str, str]:
        return {
            node.output[0]: node.input[0]
            for node in model.graph.node
            if node.op_type == operator and node.input[0] == node.input[1]
        }

    ones, zeros = self_operations("Div"), self_operations("Sub")
    pairs = [(node, *node.input) for node in model.graph.node if len(node.input) == 2]
    compared_names = {a for node, a, b in pairs if node.op_type == "Less" and zeros.get(b) == a}
    sums = {
        node.output[0]: (a, b) for node, a, b in pairs if node.op_type == "Add" and ones.get(b) == a
    }
    differences = {
        node.output[0]: (b, a) for node, a, b in pairs if node.op_type == "Sub" and ones.get(a) == b
    }
    transform_inputs = (
        compared_names & {x for x, _ in sums.values()} & {x for x, _ in differences.values()}
    )
    return {
        name: (x, is_negated, one)
        for is_negated, bases in ((False, sums), (True, differences))
        for name, (x, one) in bases.items()
        if x in transform_inputs
    }


def _power_nodes(node: onnx.NodeProto, x: str, is_negated: bool, ones: str) -> list[onnx.NodeProto]:
    """A power of `1 + max(x, 0)`, or of `1 + max(-x, 0)`: where x has the other sign, power
    transforms take the other one of their two branches."""
    nodes = []
    if is_negated:
        nodes.append(helper.make_node("Neg", [x], [f"{node.output[0]}_negated"], node.name))
        x = f"{node.output[0]}_negated"
    parts = [f"{node.output[0]}_{part}" for part in ("kept", "base")]
    nodes.append(helper.make_node("Relu", [x], parts[:1], node.name))
    nodes.append(helper.make_node("Add", [parts[0], ones], parts[1:], node.name))
    nodes.append(helper.make_node("Pow", [parts[1], node.input[1]], node.output, node.name))
    return nodes


def _is_mask_of_zeros(tensor: onnx.TensorProto) -> bool:
    is_row = tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.dims) == 1
    return is_row and not onnx.numpy_helper.to_array(tensor).any()


def _to_integer(node: onnx.NodeProto) -> bool:
    return node.op_type == "Cast" and node.attribute[0].i in WHOLE


def _is_zero(tensor: onnx.TensorProto) -> bool:
    """Whether it is one integer 0. A cast to a boolean does not round: 0.5 becomes true."""
    is_number = tensor.data_type != onnx.TensorProto.BOOL and max(tensor.dims, default=1) == 1
    return is_number and not onnx.numpy_helper.to_array(tensor).any()


def _zero_test_nodes(
    node: onnx.NodeProto, number: str, shape: Sequence[int], graph: onnx.GraphProto
) -> list[onnx.NodeProto]:
    """Whether a number, cast to an integer, is a 0 of `shape`, as boosting by AdaBoost asks:
    whether its magnitude is below 1."""
    magnitude, one = f"{node.output[0]}_size", f"{node.output[0]}_one"
    graph.initializer.append(onnx.numpy_helper.from_array(np.ones(shape, np.float32), one))
    return [
        helper.make_node("Abs", [number], [magnitude], name=node.name),
        helper.make_node("Less", [magnitude, one], node.output, name=node.name),
    ]


def _regressor_nodes(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """A regressor without its post_transform, and that behind it."""
    attribute = next((a for a in node.attribute if a.name == "post_transform"), None)
    if attribute is None:
        return [node]
    transform = (
        NUMBERED[attribute.i] if attribute.type == onnx.AttributeProto.INT else attribute.s.decode()
    )
    op_type = TRANSFORMS.get(transform)
    targets = next((a.i for a in node.attribute if a.name == "n_targets"), 1)
    if op_type is None or (targets == 1 and transform != "PROBIT"):
        return [node]  # ONNX Runtime leaves one number as it is
    regressor = deepcopy(node)
    regressor.attribute.remove(attribute)
    regressor.output[:] = [f"{node.output[0]}_raw"]
    axis: dict[str, Any] = {"axis": 1} if op_type == "Softmax" else {}
    transform_node = helper.make_node(
        op_type, regressor.output, node.output, name=node.name, **axis
    )
    return [regressor, transform_node]


def _is_classifier(node: onnx.NodeProto) -> bool:
    """Whether `expand` knows it: others are refused where they stand, by name."""
    if node.domain != ML or node.op_type != "LinearClassifier":
        return False
    attrs = attributes(node)
    transform = attrs.get("post_transform", b"NONE").decode()
    # Of one score ONNX Runtime makes a PROBIT that is no number.
    return transform in TRANSFORMS and (
        transform != "PROBIT" or len(attrs.get("intercepts", ())) != 1
    )


class _Classifier(NodeExpansion):
    """A linear classifier: `scores = x * coefficients + intercepts`, one column for each label, or
    one column that is positive for the second of two labels."""

    def nodes(self) -> list[onnx.NodeProto]:
        """The nodes that have its place."""
        label, scores = (*self.node.output, "")[:2]
        scores = scores or f"{self.name}_unread"
        classes, intercepts = labels(self.attrs), self.attrs.get("intercepts", [])
        targets = len(intercepts) or len(classes)
        raw_scores = self.add(
            "LinearRegressor",
            self.node.input[:1],
            domain=ML,
            coefficients=self.attrs.get("coefficients", []),
            targets=targets,
            **({"intercepts": intercepts} if intercepts else {}),
        )
        transform = TRANSFORMS[self.attrs.get("post_transform", b"NONE").decode()]
        if targets == 1 and len(classes) == 2:
            raw_scores = self._two_class_scores(raw_scores, transform, scores)
        elif transform is None:
            self.add("Identity", [raw_scores], scores)
        else:
            axis = {"axis": 1} if transform == "Softmax" else {}
            self.add(transform, [raw_scores], scores, **axis)
        if label:
            self.label(raw_scores, classes, label)
        return self.new_nodes

    def _two_class_scores(self, raw_score: str, transform: str | None, scores: str) -> str:
        """Scores of both labels where the model has those of the second, as ONNX Runtime gives
        them: `1 - s` and `s` unless they become probabilities; and the order they have."""
        pair = self.add("Concat", [self.add("Neg", [raw_score]), raw_score], axis=1)
        if transform == "Sigmoid":
            self.add(transform, [pair], scores)
        else:
            one = self.constant("one", np.ones((), np.float32))
            self.add("Concat", [self.add("Sub", [one, raw_score]), raw_score], scores, axis=1)
        return pair
