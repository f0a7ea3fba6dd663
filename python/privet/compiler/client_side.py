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
    partition = _ModelPartition(model, resolve(model, input_shapes))
    for node in model.graph.node:
        partition.assign(node)
    return partition.result()


class _ModelPartition:
    """The nodes of the front so far, with what each makes of an example."""

    def __init__(self, model: onnx.ModelProto, shapes: Mapping[str, Shape]) -> None:
        self.model, self.opset = model, opset_of(model)
        self.constants: dict[str, Array] = {t.name: array_of(t) for t in model.graph.initializer}
        for sparse in model.graph.sparse_initializer:
            self.constants[sparse.values.name] = dense(sparse)
        entries = [info for info in model.graph.input if info.name in shapes]
        self.given = [Given(info.name, _kind(info), shapes[info.name]) for info in entries]
        self.examples: dict[str, Array] = {}
        for entry in self.given:
            if entry.kind in _EXAMPLES and math.prod(entry.shape) <= MAX_GIVEN:
                self.examples[entry.name] = np.full(entry.shape, _EXAMPLES[entry.kind])
        self.nodes: list[HeadNode] = []
        self.used_constants: dict[str, Array] = {}
        self.rest: list[onnx.NodeProto] = []

    def assign(self, node: onnx.NodeProto) -> None:
        """Gives a node to the front if it can be computed there, else to the rest."""
        if node.op_type == "Imputer" and any(math.isinf(attr.f) for attr in node.attribute):
            # Infinity is never given, and no input of the rest may be infinite.
            node = onnx.helper.make_node("Identity", node.input, node.output, node.name)
        input_names = [name for name in node.input if name]
        is_known = node.domain in (*DEFAULT_DOMAINS, ML) and bool(node.output)
        if node.op_type in ("Shape", "Size") and input_names[0] in self.examples:
            self._fold_shape(node)
        elif is_known and all(name in self.constants for name in input_names) and foldable(node):
            self._fold(node)
        elif not (is_known and node.op_type in FRONT and self._compute(node, input_names)):
            self.rest.append(node)

    def _fold_shape(self, node: onnx.NodeProto) -> None:
        """A shape is a constant."""
        example = np.zeros(self.examples[node.input[0]].shape, np.float32)
        opsets = self.model.opset_import
        self.constants[node.output[0]] = fold(node, [example], opsets)[0]

    def _fold(self, node: onnx.NodeProto) -> None:
        operands = [self.constants[name] if name else None for name in node.input]
        try:
            results = fold(node, operands, self.model.opset_import)
        except Exception:  # the importer of the rest says what is wrong
            self.rest.append(node)
            return
        self.constants.update(zip([name for name in node.output if name], results, strict=True))

    def _compute(self, node: onnx.NodeProto, input_names: Sequence[str]) -> bool:
        """Whether the front can compute a node; tries it on the example."""
        if not all(name in self.examples or name in self.constants for name in input_names):
            return False
        if node.op_type in LOOKUPS and input_names[0] not in self.examples:
            return False
        try:
            step = HeadNode(node.op_type, tuple(node.input), tuple(node.output), _attributes(node))
            constants = {
                name: plain(self.constants[name])
                for name in input_names
                if name not in self.examples
            }
            trial_node = HeadNode(
                step.op, step.inputs, step.outputs, _with_zero_rows(step.attributes)
            )
            trial = Head(self.opset, step.outputs, (trial_node,), constants)
            outputs = run_head(
                trial, {name: self.examples[name] for name in input_names if name in self.examples}
            )
        except (Unsupported, InvalidProgram, ValueError):
            return False
        self.nodes.append(step)
        self.used_constants |= constants
        self.examples |= outputs
        return True

    def result(self) -> tuple[Front | None, onnx.ModelProto]:
        """The two parts."""
        if not self.nodes:
            return None, self.model
        rest_reads = self._rest_reads()
        rest_reads |= {output.name for output in self.model.graph.output}
        boundary_names = [name for name in self.examples if name in rest_reads]
        nodes = _live_nodes(self.nodes, boundary_names)
        if not nodes:
            return None, self.model
        front_reads = {name for node in nodes for name in node.inputs}
        front_reads.update(boundary_names)
        steps = Head(
            self.opset,
            tuple(boundary_names),
            nodes,
            {k: v for k, v in self.used_constants.items() if k in front_reads},
        )
        entries = tuple(entry for entry in self.given if entry.name in front_reads)
        return Front(entries, steps), self._rest_model(boundary_names)

    def _rest_reads(self) -> set[str]:
        """What the nodes of the rest read."""
        return {name for node in self.rest for name in names_read(node)}

    def _rest_model(self, boundary_names: Sequence[str]) -> onnx.ModelProto:
        model = without_nodes(self.model)
        declared_inputs = {entry.name: entry for entry in self.model.graph.input}
        entries = []
        for name in boundary_names:
            element_type = _TYPES.get(self.examples[name].dtype.kind, onnx.TensorProto.STRING)
            shape = self.examples[name].shape
            if name in declared_inputs:
                element_type = declared_inputs[name].type.tensor_type.elem_type
            entries.append(onnx.helper.make_tensor_value_info(name, element_type, shape))
        del model.graph.input[:]
        model.graph.input.extend(entries)
        model.graph.node.extend(self.rest)
        initializers = {tensor.name for tensor in model.graph.initializer}
        for name in self._rest_reads().intersection(self.constants) - initializers:
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
    node_copy = deepcopy(node)
    del node_copy.attribute[:]
    node_copy.attribute.extend(attr for attr in node.attribute if not math.isnan(attr.f))
    nan_attributes = {attr.name: "nan" for attr in node.attribute if math.isnan(attr.f)}
    return {**attributes_of(node_copy), **nan_attributes}


def _with_zero_rows(attributes: Mapping[str, object]) -> dict[str, object]:
    """As the attributes, with zeros for what is no category: an example need not be one."""
    return {**attributes, "zeros": 1} if "zeros" in attributes else dict(attributes)


def _live_nodes(nodes: Sequence[HeadNode], outputs: Sequence[str]) -> tuple[HeadNode, ...]:
    """The nodes that some output depends on, in their order."""
    live_names, live_nodes = set(outputs), []
    for node in reversed(nodes):
        if live_names.intersection(node.outputs):
            live_nodes.append(node)
            live_names.update(node.inputs)
    return tuple(live_nodes[::-1])
