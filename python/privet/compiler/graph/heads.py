"""Where a model is cut: what runs privately, and the head that the client computes in the clear.

The client may compute what follows a value that the model's outputs tell it anyway: the scores
before a softmax (up to a common shift) or a sigmoid, the place of the largest of scores that are an
output, the text that stands for a place, a map from labels to probabilities. Whatever is not known
stays private: a label whose scores are no output is an argmax of the suite.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from privet.compiler.graph.control_flow import needed_nodes
from privet.compiler.graph.graph import ClientStep
from privet.compiler.graph.head import ARITHMETIC, OPERATORS, Head, HeadNode, plain
from privet.compiler.graph.input_shapes import FLOATS
from privet.compiler.graph.operations import Array
from privet.compiler.graph.rewriting import without_nodes
from privet.compiler.graph.site import Private, TensorList, Unsupported
from privet.errors import Misuse

INVERTIBLE = frozenset(
    {
        *("Concat", "Dropout", "Exp", "Flatten", "Identity", "LabelEncoder", "Log", "LogSoftmax"),
        *("Neg", "Normalizer", "Probit", "Reciprocal", "Reshape", "Sigmoid", "Softmax"),
        *("SoftmaxZero", "Squeeze", "Tanh", "Transpose", "Unsqueeze", "ZipMap"),
    }
)
"""Operators whose result tells what they read, softmax and normalisations up to one number."""

BEGINNINGS = frozenset(
    {
        *("ArgMax", "ArgMin", "LabelEncoder", "LogSoftmax", "Normalizer", "PairwiseCoupling"),
        *("Probit", "Sigmoid", "Softmax", "SoftmaxZero", "TopK", "ZipMap"),
    }
)
"""Operators that a head may begin with; others are part of one only behind these."""

MORE_BEGINNINGS = frozenset({"Binarizer", "Exp", "Log", "Reciprocal", "ReduceLogSumExp", "Tanh"})
"""Operators that a head may begin with, too, where the client may see scores."""

_KEEPS = ("Cast", "Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")
_COMPARED = ("Greater", "Less", "Sign")
"""Operators that a head may begin with where nothing private is behind them."""
_TRUTHS = ("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal", "Not", "And", "Or", "Xor")
"""Operators whose result, cast to a number, is a place among two."""
_LAST = ("LogSoftmax", "Softmax")
_LOOK_UPS = ("ArrayFeatureExtractor", "Gather")
_SCORES = "SVMClassifier"
"""Where the client may see scores, a head begins with whatever reads what this makes."""


@dataclass(frozen=True)
class Cut:
    """Nodes of the head, by `id`; `tail` has those that could be part of one with `scores`."""

    head: Collection[int]
    tail: Collection[int]


def cut(
    nodes: Sequence[onnx.NodeProto],
    inputs: Collection[str],
    outputs: Collection[str],
    *,
    tables: Collection[str],
    scores: bool,
    functions: bool,
) -> Cut:
    """The cut of a model whose `nodes` all lead to an output.

    With `scores` the client may see whatever the longest possible head reads, else only what
    `outputs` tell. `tables` are constants that cannot be labels. `functions` keeps a Sigmoid
    private, for a suite with smooth functions.
    """
    private = set(inputs)
    for node in nodes:
        if private.intersection(node.input) and node.op_type not in ("Shape", "Size"):
            private.update(node.output)
    labels = _label_look_ups(nodes, private, tables)
    weights = {id(node) for node in nodes if _looks_up(node, private)} - labels
    tail = set(_tail(nodes, weights))
    visible = _revealed(nodes, private, outputs, labels)
    if scores:
        visible |= {name for node in nodes if id(node) in tail for name in node.input}
    beginnings = BEGINNINGS | (MORE_BEGINNINGS if scores else set())
    if functions:
        beginnings -= {"Sigmoid"}

    def head_nodes(private_nodes: Collection[int]) -> set[int]:
        head: set[int] = set()
        at_client: set[str] = set()
        decisions: set[str] = set()
        for node in nodes:
            private_inputs = private.intersection(node.input)
            if scores and node.op_type == _SCORES:
                decisions.update(node.output)
            may_begin = node.op_type in beginnings or id(node) in labels
            may_begin |= id(node) in tail and node.op_type in _COMPARED
            may_begin |= bool(private_inputs & decisions)
            may_begin |= (
                scores and id(node) in tail and node.op_type == "Cast" and not _casts_to_float(node)
            )
            if (
                id(node) in weights
                or id(node) in private_nodes
                or not private_inputs
                or node.op_type not in OPERATORS
                or not (may_begin or private_inputs & at_client)
            ):
                continue
            if private_inputs <= at_client | visible:
                head.add(id(node))
                at_client.update(node.output)
        return head

    private_nodes: set[int] = set()
    head = head_nodes(private_nodes)
    while nodes_inside := _read_inside(nodes, head):
        # What is computed privately for a node inside is revealed where it is an output.
        private_nodes |= nodes_inside
        head = head_nodes(private_nodes)
    return Cut(set() if _is_last_step(nodes, head) else head, tail)


def _read_inside(nodes: Sequence[onnx.NodeProto], head: Collection[int]) -> set[int]:
    """Nodes of a head, by `id`, that lead to a node which is not of it."""
    read_names: set[str] = set()
    inner_nodes: set[int] = set()
    for node in reversed(nodes):
        if id(node) in head:
            if not read_names.intersection(node.output):
                continue
            inner_nodes.add(id(node))
        read_names.update(node.input)
    return inner_nodes


def _label_look_ups(
    nodes: Sequence[onnx.NodeProto], private: Collection[str], tables: Collection[str]
) -> set[int]:
    """Nodes, by `id`, that take labels from a constant at the places of classes. A constant that
    is read at any other place, such as a table at ids of the input, is a weight."""
    look_ups: set[int] = set()
    places: set[str] = set()
    for node in nodes:
        if node.op_type in ("ArgMax", "ArgMin", "LabelEncoder", *_TRUTHS):
            places.update(node.output)
        elif node.op_type == "TopK":
            places.update(node.output[1:])
        elif node.op_type.endswith("Classifier"):
            places.update(node.output[:1])
        elif node.op_type in _KEEPS and node.input[0] in places:
            places.update(node.output)
        elif (
            node.input
            and _looks_up(node, private)
            and node.input[1] in places
            and node.input[0] not in tables
        ):
            look_ups.add(id(node))
            places.update(node.output)
    return look_ups


def _looks_up(node: onnx.NodeProto, private: Collection[str]) -> bool:
    """Whether a node takes elements of a constant."""
    return node.op_type in _LOOK_UPS and node.input[0] not in private


def _revealed(
    nodes: Sequence[onnx.NodeProto],
    private: Collection[str],
    outputs: Collection[str],
    label_look_ups: Collection[int],
) -> set[str]:
    """Private tensors that whoever has the outputs can work out; nodes in `label_look_ups`, by
    `id`, take labels of classes, constants at private places."""
    labels: set[str] = set()
    for node in nodes:
        makes_labels = (
            node.op_type in ("ArgMax", "ArgMin", "LabelEncoder") or id(node) in label_look_ups
        )
        if makes_labels or (node.op_type in _KEEPS and node.input[0] in labels):
            labels.update(node.output)
    revealed = set(outputs).intersection(private)
    for node in reversed(nodes):
        private_inputs = [name for name in node.input if name in private]
        reveals = (
            node.op_type in INVERTIBLE
            or (node.op_type == "PairwiseCoupling" and _pairs(node) == 1)
            or (node.op_type in ARITHMETIC and len(private_inputs) == 1)
            or (node.op_type == "Cast" and (_casts_to_float(node) or node.input[0] in labels))
            or id(node) in label_look_ups
        )
        if reveals and revealed.intersection(node.output):
            revealed.update(private_inputs)
    return revealed


def _tail(nodes: Sequence[onnx.NodeProto], weights: Collection[int]) -> Iterator[int]:
    """Nodes that clients compute, and everything behind them, too; none of `weights`, by `id`."""
    server_reads: set[str] = set()
    for node in reversed(nodes):
        is_at_client = node.op_type in OPERATORS and id(node) not in weights
        if is_at_client and not server_reads.intersection(node.output):
            yield id(node)
        else:
            server_reads.update(node.input)


def _pairs(node: onnx.NodeProto) -> int:
    return next(len(a.floats) for a in node.attribute if a.name == "prob_a")


def _casts_to_float(node: onnx.NodeProto) -> bool:
    return any(a.name == "to" and a.i in FLOATS for a in node.attribute)


def _is_last_step(nodes: Sequence[onnx.NodeProto], head: Collection[int]) -> bool:
    """Whether a head is only what an output itself can tell (`ClientStep`): one softmax."""
    head_outputs: set[str] = set()
    for node in nodes:
        if id(node) not in head:
            continue
        passes_through = node.op_type in ("Identity", "Dropout") or (
            node.op_type == "Cast" and _casts_to_float(node)
        )
        if not passes_through and (
            node.op_type not in _LAST or head_outputs.intersection(node.input)
        ):
            return False
        head_outputs.update(node.output)
    return True


def compare_scores(nodes: Sequence[onnx.NodeProto], model_cut: Cut) -> list[onnx.NodeProto]:
    """The nodes, with what a private ArgMax reads made simpler, but in the same order.

    So is what a private TopK reads whose values nobody does. A normalisation of each row keeps the
    order of its elements, a root that of all; and of `1 - sigmoid(z)` and
    `sigmoid(z)`, as exporters write two classes, the larger is that of `-z` and `z`.
    """
    producers = {name: node for node in nodes for name in node.output}
    read_names = {name for node in nodes for name in node.input}
    new_nodes: list[onnx.NodeProto] = []
    for node in nodes:
        if node.op_type == "TopK" and node.output[0] not in read_names:
            producer = producers.get(node.input[0])
            while producer is not None and producer.op_type in ("Sqrt", "Identity"):
                node = _with_inputs(node, producer.input[0], *node.input[1:])
                producer = producers.get(producer.input[0])
        if node.op_type == "ArgMax" and id(node) not in model_cut.head:
            producer = producers.get(node.input[0])
            while producer is not None and producer.op_type in ("Normalizer", "Identity"):
                node = _with_inputs(node, producer.input[0])
                producer = producers.get(producer.input[0])
            logit = _binary_logit(producer, producers)
            if producer is not None and logit is not None:
                negated, scores = f"{node.output[0]}_below", f"{node.output[0]}_scores"
                node_name = node.name or node.output[0]
                new_nodes += [
                    onnx.helper.make_node("Neg", [logit], [negated], name=node_name),
                    _with_output(_with_inputs(producer, negated, logit), scores),
                ]
                node = _with_inputs(node, scores)
        new_nodes.append(node)
    return new_nodes


def _binary_logit(
    concat: onnx.NodeProto | None, producers: dict[str, onnx.NodeProto]
) -> str | None:
    """`z` of a Concat of `1 - sigmoid(z)` and `sigmoid(z)`."""
    if concat is None or concat.op_type != "Concat" or len(concat.input) != 2:
        return None
    complement, probability = (producers.get(name) for name in concat.input)
    if (
        complement is None
        or probability is None
        or probability.op_type != "Sigmoid"
        or complement.op_type != "Sub"
    ):
        return None
    return probability.input[0] if complement.input[1] == probability.output[0] else None


def _with_inputs(node: onnx.NodeProto, *inputs: str) -> onnx.NodeProto:
    copy = deepcopy(node)
    copy.input[:] = inputs
    return copy


def _with_output(node: onnx.NodeProto, output: str) -> onnx.NodeProto:
    node.output[:] = [output]
    return node


def labels_alone(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its labels as its only outputs and what these need as its only nodes; with the
    argmax of its scores, if it has no labels. Raises `Misuse` if it is not plain what is a
    label."""
    copy = without_nodes(model)
    graph, nodes = copy.graph, list(model.graph.node)
    tensors = onnx.TensorProto
    labels = [
        output
        for output in graph.output
        if output.type.tensor_type.elem_type in (tensors.STRING, tensors.INT64, tensors.INT32)
    ]
    if not labels:
        if len(graph.output) != 1 or not graph.output[0].type.HasField("tensor_type"):
            names = ", ".join(output.name for output in graph.output)
            raise Misuse(f"reveal is 'label', and no output of {names} is one: end with an ArgMax")
        (scores,) = graph.output
        dims = scores.type.tensor_type.shape.dim
        if len(dims) < 2 or dims[1].dim_value == 1:
            raise Misuse(f"reveal is 'label', and output {scores.name!r} has no axis of classes")
        nodes.append(onnx.helper.make_node("ArgMax", [scores.name], ["label"], axis=1, keepdims=0))
        labels = [onnx.helper.make_tensor_value_info("label", tensors.INT64, None)]
    label_outputs = [deepcopy(label) for label in labels]
    del graph.output[:]
    graph.output.extend(label_outputs)
    graph.node.extend(needed_nodes(nodes, [label.name for label in label_outputs])[0])
    return copy


@dataclass(frozen=True)
class AtClient:
    """A tensor that the client computes; `op` is what makes it."""

    op: str


@dataclass
class HeadBuilder:
    """The head of a model that is being read.

    `revealed` has the tensors that the client learns, by name: values of the graph, with the step
    that the client does on each.
    """

    opset: int
    revealed: dict[str, tuple[int, ClientStep | None]] = field(default_factory=dict)
    _nodes: list[HeadNode] = field(default_factory=list)
    _constants: dict[str, Array] = field(default_factory=dict)
    _outputs: list[str] = field(default_factory=list)

    def add(
        self,
        node: onnx.NodeProto,
        operands: Sequence[Private | Array | TensorList | AtClient | None],
    ) -> None:
        """Gives a node to the client.

        Raises `Unsupported` if it holds what the client must not have, or cannot.
        """
        names = []
        for name, operand in zip(node.input, operands, strict=True):
            if isinstance(operand, Private):
                name = self.reveal(name, operand)
            elif isinstance(operand, np.ndarray):
                if node.op_type in ARITHMETIC and operand.size != 1:
                    raise Unsupported(
                        "it follows what the client computes, and its constant would be published",
                        "Put it before that, or end the model there",
                    )
                if node.op_type in _LOOK_UPS and not are_labels(operand):
                    raise Unsupported(
                        "the client would take numbers from it, and all of them would be published",
                        "Take labels (whole numbers or texts in one row), or end the model before",
                    )
                self._constants[name] = _head_constant(operand)
            names.append(name)
        head_node = HeadNode(node.op_type, tuple(names), tuple(node.output), attributes_of(node))
        self._nodes.append(head_node)

    def reveal(self, name: str, operand: Private) -> str:
        """The name under which the client learns a private tensor."""
        for tensor, (id, client) in self.revealed.items():
            if (id, client) == (operand.id, operand.client):
                return tensor
        self.revealed[name] = (operand.id, operand.client)
        return name

    def output(self, name: str, operand: Private | Array | AtClient) -> None:
        """An output of the model.

        Raises `Unsupported` if it is a constant that a head cannot hold.
        """
        self._outputs.append(name)
        if isinstance(operand, np.ndarray):
            self._constants[name] = _head_constant(operand)
        elif isinstance(operand, Private):
            source = self.reveal(name, operand)
            if source != name:
                self._nodes.append(HeadNode("Identity", (source,), (name,), {}))

    def build(self) -> Head | None:
        """The head; None where the user gets just what is revealed."""
        if self._outputs == list(self.revealed) and not self._nodes:
            return None
        return Head(self.opset, tuple(self._outputs), tuple(self._nodes), self._constants)


def _head_constant(constant: Array) -> Array:
    """A constant as a head holds it; JSON has no infinities."""
    if constant.dtype.kind == "f" and not np.isfinite(constant).all():
        why = "the client would read a constant from the program that is not finite"
        raise Unsupported(why, "Use a large number in place of infinity")
    return plain(constant)


def are_labels(constant: Array) -> bool:
    """Whether a constant is a row of whole numbers or texts."""
    is_row = constant.size == max(constant.shape, default=1)
    is_whole = constant.dtype.kind in "biuSUO" or bool(np.all(constant == np.round(constant)))
    return is_row and is_whole


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """A node's attributes as JSON has them; raises `Unsupported` on what is no number or text."""
    return {attribute.name: _attribute(attribute) for attribute in node.attribute}


def _attribute(attribute: onnx.AttributeProto) -> Any:
    """Numbers and text as JSON has them."""
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, onnx.TensorProto):
        value = plain(onnx.numpy_helper.to_array(value)).ravel()
    if not isinstance(value, int | float | str | bytes):
        value = list(value)
    entries = value if isinstance(value, list) else [value]
    if not all(isinstance(entry, int | float | str | bytes) for entry in entries):
        raise Unsupported(f"its attribute {attribute.name} is no number or text", "Simplify it")
    if not all(math.isfinite(entry) for entry in entries if isinstance(entry, float)):
        raise Unsupported(f"its attribute {attribute.name} is not finite", "Give a number")
    texts = [entry.decode() if isinstance(entry, bytes) else entry for entry in entries]
    return texts if isinstance(value, list) else texts[0]
