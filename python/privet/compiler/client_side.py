"""Parts a model where its owner lets clients compute what precedes the first private operation.

Those nodes read inputs and constants alone, and are of the list in `privet.compiler.graph.front`:
scaling, imputing, encoding of categories. Their constants become public. What they make is what the
rest of the model takes as its input, privately.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy

import numpy as np
import onnx

from privet.compiler.executor.head import run_head
from privet.compiler.graph.constants import array_of, dense, fold, foldable
from privet.compiler.graph.control_flow import names_read
from privet.compiler.graph.front import FRONT, MAX_GIVEN, Front, Given
from privet.compiler.graph.head import Head, HeadNode, plain
from privet.compiler.graph.heads import attributes_of
from privet.compiler.graph.input_shapes import FLOATS, WHOLE, InputShapes, resolve
from privet.compiler.graph.onnx_model import DEFAULT_DOMAINS, ML, opset_of
from privet.compiler.graph.operations import Array, Shape
from privet.compiler.graph.rewriting import without_nodes
from privet.compiler.graph.site import Unsupported
from privet.errors import InvalidProgram

LOOKUPS = ("ArrayFeatureExtractor", "Gather")
"""They move what a user gives; the rows that they take of a constant are learned."""

_EXAMPLES = {"real": 0.0, "integer": 0, "boolean": False, "text": "0"}
_TYPES = {"f": onnx.TensorProto.FLOAT, "i": onnx.TensorProto.INT64, "b": onnx.TensorProto.BOOL}


def part(
    model: onnx.ModelProto, input_shapes: InputShapes | None
) -> tuple[Front | None, onnx.ModelProto]:
    """The front that clients compute, and the model behind it; no front if nothing is to be done.
    Raises `InvalidModel` if a shape is missing or does not fit."""
    parting = _Parting(model, resolve(model, input_shapes))
    for node in model.graph.node:
        parting.take(node)
    return parting.result()


class _Parting:
    """The nodes of the front so far, with what each makes of an example."""

    def __init__(self, model: onnx.ModelProto, shapes: Mapping[str, Shape]) -> None:
        self.model, self.opset = model, opset_of(model)
        self.constants: dict[str, Array] = {t.name: array_of(t) for t in model.graph.initializer}
        for sparse in model.graph.sparse_initializer:
            self.constants[sparse.values.name] = dense(sparse)
        entries = [info for info in model.graph.input if info.name in shapes]
        self.given = [Given(info.name, _kind(info), shapes[info.name]) for info in entries]
        self.data: dict[str, Array] = {}
        for entry in self.given:
            if entry.kind in _EXAMPLES and math.prod(entry.shape) <= MAX_GIVEN:
                self.data[entry.name] = np.full(entry.shape, _EXAMPLES[entry.kind])
        self.nodes: list[HeadNode] = []
        self.used: dict[str, Array] = {}
        self.rest: list[onnx.NodeProto] = []

    def take(self, node: onnx.NodeProto) -> None:
        """Gives a node to the front if it can be computed there, else to the rest."""
        if node.op_type == "Imputer" and any(math.isinf(attr.f) for attr in node.attribute):
            # Infinity is never given, and no input of the rest may be infinite.
            node = onnx.helper.make_node("Identity", node.input, node.output, node.name)
        reads = [name for name in node.input if name]
        is_known = node.domain in (*DEFAULT_DOMAINS, ML) and bool(node.output)
        if node.op_type in ("Shape", "Size") and reads[0] in self.data:
            self._measure(node)
        elif is_known and all(name in self.constants for name in reads) and foldable(node):
            self._fold(node)
        elif not (is_known and node.op_type in FRONT and self._compute(node, reads)):
            self.rest.append(node)

    def _measure(self, node: onnx.NodeProto) -> None:
        """A shape is a constant."""
        example = np.zeros(self.data[node.input[0]].shape, np.float32)
        opsets = self.model.opset_import
        self.constants[node.output[0]] = fold(node, [example], opsets)[0]

    def _fold(self, node: onnx.NodeProto) -> None:
        operands = [self.constants[name] if name else None for name in node.input]
        try:
            folded = fold(node, operands, self.model.opset_import)
        except Exception:  # the importer of the rest says what is wrong
            self.rest.append(node)
            return
        self.constants.update(zip([name for name in node.output if name], folded, strict=True))

    def _compute(self, node: onnx.NodeProto, reads: Sequence[str]) -> bool:
        """Whether the front can compute a node; tries it on the example."""
        if not all(name in self.data or name in self.constants for name in reads):
            return False
        if node.op_type in LOOKUPS and reads[0] not in self.data:
            return False
        try:
            step = HeadNode(node.op_type, tuple(node.input), tuple(node.output), _attributes(node))
            constants = {
                name: plain(self.constants[name]) for name in reads if name not in self.data
            }
            forgiving = HeadNode(step.op, step.inputs, step.outputs, _forgiving(step.attributes))
            trial = Head(self.opset, step.outputs, (forgiving,), constants)
            outs = run_head(trial, {name: self.data[name] for name in reads if name in self.data})
        except (Unsupported, InvalidProgram, ValueError):
            return False
        self.nodes.append(step)
        self.used |= constants
        self.data |= outs
        return True

    def result(self) -> tuple[Front | None, onnx.ModelProto]:
        """The two parts."""
        if not self.nodes:
            return None, self.model
        rest_reads = self._wanted()
        rest_reads |= {output.name for output in self.model.graph.output}
        cut = [name for name in self.data if name in rest_reads]
        nodes = _needed(self.nodes, cut)
        if not nodes:
            return None, self.model
        front_reads = {name for node in nodes for name in node.inputs}
        front_reads.update(cut)
        steps = Head(
            self.opset, tuple(cut), nodes, {k: v for k, v in self.used.items() if k in front_reads}
        )
        entries = tuple(entry for entry in self.given if entry.name in front_reads)
        return Front(entries, steps), self._behind(cut)

    def _wanted(self) -> set[str]:
        """What the nodes of the rest read."""
        return {name for node in self.rest for name in names_read(node)}

    def _behind(self, cut: Sequence[str]) -> onnx.ModelProto:
        model = without_nodes(self.model)
        declared = {entry.name: entry for entry in self.model.graph.input}
        entries = []
        for name in cut:
            kind = _TYPES.get(self.data[name].dtype.kind, onnx.TensorProto.STRING)
            shape = self.data[name].shape
            if name in declared:
                kind = declared[name].type.tensor_type.elem_type
            entries.append(onnx.helper.make_tensor_value_info(name, kind, shape))
        del model.graph.input[:]
        model.graph.input.extend(entries)
        model.graph.node.extend(self.rest)
        initializers = {tensor.name for tensor in model.graph.initializer}
        for name in self._wanted().intersection(self.constants) - initializers:
            array = self.constants[name]
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        return model


def _kind(entry: onnx.ValueInfoProto) -> str:
    kind = entry.type.tensor_type.elem_type
    if kind == onnx.TensorProto.BOOL:
        return "boolean"
    if kind in FLOATS:
        return "real"
    return "integer" if kind in WHOLE else "text" if kind == onnx.TensorProto.STRING else "unknown"


def _attributes(node: onnx.NodeProto) -> dict[str, object]:
    """A node's attributes; the one that may be no number as a text."""
    copy = deepcopy(node)
    del copy.attribute[:]
    copy.attribute.extend(attr for attr in node.attribute if not math.isnan(attr.f))
    missing = {attr.name: "nan" for attr in node.attribute if math.isnan(attr.f)}
    return {**attributes_of(copy), **missing}


def _forgiving(attributes: Mapping[str, object]) -> dict[str, object]:
    """As the attributes, with zeros for what is no category: an example need not be one."""
    return {**attributes, "zeros": 1} if "zeros" in attributes else dict(attributes)


def _needed(nodes: Sequence[HeadNode], outputs: Sequence[str]) -> tuple[HeadNode, ...]:
    """The nodes that some output depends on, in their order."""
    live_names, live_nodes = set(outputs), []
    for node in reversed(nodes):
        if live_names.intersection(node.outputs):
            live_nodes.append(node)
            live_names.update(node.inputs)
    return tuple(live_nodes[::-1])
