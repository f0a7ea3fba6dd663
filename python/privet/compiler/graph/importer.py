"""The walk over an ONNX model that turns it into a typed graph.

Every node whose inputs are all constants is computed on the way. Whatever is not supported is
collected, with its node's name and what to do instead, and reported together at the end: an
unsupported node's outputs get the shapes that ONNX's own shape inference gives them, so that the
nodes behind it are still looked at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import onnx

from privet.compiler.graph import registry
from privet.compiler.graph.constants import fold, foldable
from privet.compiler.graph.graph import Graph, GraphBuilder, Value
from privet.compiler.graph.input_shapes import FLOATS, InputShapes, resolve
from privet.compiler.graph.onnx_model import DEFAULT_DOMAINS, ML, opset_of
from privet.compiler.graph.onnx_trees import expand_trees
from privet.compiler.graph.operations import Array, Shape
from privet.compiler.graph.registry import OLDEST_OPSET
from privet.compiler.graph.site import Operand, Private, Site, Unsupported
from privet.errors import InvalidModel, Problem, UnsupportedModel

THROUGH_CLIENT_STEPS = ("Identity", "Dropout", "Cast", "ArgMax")
"""Operators that may read a result on which the client still has a step to do."""


def import_model(
    model: onnx.ModelProto, *, name: str, input_shapes: InputShapes | None = None
) -> Graph:
    """The typed graph of a model that `load_model` returned.

    # Errors
    `UnsupportedModel` with every problem of the model; `InvalidModel` if input shapes are missing
    or do not fit.
    """
    newest = onnx.defs.onnx_opset_version()
    if not OLDEST_OPSET <= opset_of(model) <= newest:
        raise InvalidModel(
            f"the model uses opset {opset_of(model)}; opsets {OLDEST_OPSET} to {newest} are "
            f"supported: convert it with onnx.version_converter"
        )
    return _Walk(expand_trees(model), name, input_shapes).graph()


class _Walk:
    """The state of one import: what each ONNX tensor has become, and the problems so far."""

    def __init__(self, model: onnx.ModelProto, name: str, input_shapes: InputShapes | None) -> None:
        self.model = model
        self.opset = opset_of(model)
        self.builder = GraphBuilder(name)
        self.problems: list[Problem] = []
        self.tensors: dict[str, Operand | None] = {
            tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer
        }
        self.shapes = resolve(model, input_shapes)
        self.nodes, self.used = _needed(model.graph)

    def graph(self) -> Graph:
        for entry in self.model.graph.input:
            if entry.name not in self.tensors:
                self._input(entry)
        for index, node in enumerate(self.nodes):
            name = node.name or next((out for out in node.output if out), f"node {index}")
            try:
                self._node(node, name)
            except Unsupported as refusal:
                self._problem(name, node.op_type, refusal.why, refusal.instead)
                self._unknown(node)
        for output in self.model.graph.output:
            self._output(output.name)
        if self.problems:
            raise UnsupportedModel(self.problems)
        return self.builder.build()

    def _input(self, entry: onnx.ValueInfoProto) -> None:
        kind = entry.type.tensor_type.elem_type
        if not entry.type.HasField("tensor_type") or kind not in FLOATS:
            type_name = entry.type.WhichOneof("value") or "unknown"
            if entry.type.HasField("tensor_type"):
                type_name = onnx.TensorProto.DataType.Name(kind).lower()
            self._problem(
                entry.name,
                "graph input",
                f"its type is {type_name}, and only floating-point inputs can be private",
                "Start the model at a floating-point tensor (do embeddings and decoding before)",
            )
        shape = self.shapes.get(entry.name)
        self.tensors[entry.name] = None if shape is None else self._declare(entry.name, shape)

    def _declare(self, name: str, shape: Shape) -> Private:
        return Private(self.builder.input(name, Value(shape, name)), shape)

    def _node(self, node: onnx.NodeProto, name: str) -> None:
        missing = [tensor for tensor in node.input if tensor and tensor not in self.tensors]
        if missing:
            raise InvalidModel(f"{name} reads {missing[0]}, which nothing makes")
        operands = [self.tensors[tensor] if tensor else None for tensor in node.input]
        if node.domain in DEFAULT_DOMAINS and foldable(node):
            constants = [x for x in operands if not isinstance(x, Private)]
            unknown = any(x is None and t for x, t in zip(operands, node.input, strict=True))
            if len(constants) == len(operands) and not unknown:
                self._fold(node, constants)
                return
        known = node.domain in (*DEFAULT_DOMAINS, ML)
        run = registry.importer(node.op_type) if known else None
        if run is None:
            title = node.op_type if known else "a custom operator"
            raise Unsupported(
                f"{title} is not supported",
                "Replace it with supported operators, or end the model before it and do the rest "
                "on the client",
            )
        if any(x is None and t for x, t in zip(operands, node.input, strict=True)):
            self._unknown(node)
            return
        if node.op_type not in THROUGH_CLIENT_STEPS:
            _refuse_client_steps(operands)
        site = Site(
            node,
            name=name,
            opset=self.opset,
            inputs=operands,
            used=self.used,
            builder=self.builder,
        )
        before = self.builder.made()
        try:
            results = run(site)
        except (ValueError, IndexError, TypeError) as error:
            why = f"its attributes and inputs do not fit together ({error})"
            raise Unsupported(why, "Check the model with onnx.checker") from error
        made = results if isinstance(results, tuple) else (results,)
        for tensor, result in zip(node.output, made, strict=False):
            self.tensors[tensor] = result
            if isinstance(result, Private) and result.id >= before:
                self.builder.rename(result.id, tensor)
        for tensor in node.output[len(made) :]:
            self.tensors[tensor] = None

    def _fold(self, node: onnx.NodeProto, constants: Sequence[Array | None]) -> None:
        try:
            results = fold(node, constants, self.model.opset_import)
        except Exception as error:  # the evaluator raises many types
            raise Unsupported(
                f"it reads only constants but cannot be computed ahead of time ({error})",
                "Simplify the model, for instance with onnxsim, so that it is a constant",
            ) from error
        self.tensors.update(zip([out for out in node.output if out], results, strict=True))

    def _unknown(self, node: onnx.NodeProto) -> None:
        """Lets the walk go on behind a node that was refused."""
        for tensor in node.output:
            shape = self.inferred.get(tensor)
            self.tensors[tensor] = None if shape is None else self._declare(tensor, shape)

    @cached_property
    def inferred(self) -> Mapping[str, Shape]:
        """Static shapes by ONNX's own inference, needed only once something is unsupported."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        for entry in model.graph.input:
            if entry.name in self.shapes:
                dims = entry.type.tensor_type.shape.dim
                for dim, size in zip(dims, self.shapes[entry.name], strict=False):
                    dim.dim_value = size
        try:
            model = onnx.shape_inference.infer_shapes(model, data_prop=True)
        except Exception:  # an invalid model: the problems found so far say enough
            return {}
        found = {}
        for entry in (*model.graph.value_info, *model.graph.output):
            tensor_type = entry.type.tensor_type
            dims = [dim.dim_value for dim in tensor_type.shape.dim]
            if tensor_type.HasField("shape") and dims and math.prod(dims) > 0:
                found[entry.name] = tuple(dims)
        return found

    def _output(self, name: str) -> None:
        result = self.tensors.get(name)
        if isinstance(result, Private):
            self.builder.output(name, result.id, result.client)
        elif result is not None:
            why, instead = "it does not depend on the private input", "it is a constant"
            self._problem(name, "graph output", why, f"Remove this output: {instead}")
        elif not self.problems:
            why = "it is an output of its operator that is not computed"
            self._problem(name, "graph output", why, "Remove this output")

    def _problem(self, node: str, operator: str, why: str, instead: str) -> None:
        self.problems.append(Problem(node, operator, why, instead))


def _refuse_client_steps(operands: Sequence[Operand | None]) -> None:
    for operand in operands:
        if isinstance(operand, Private) and operand.client is not None:
            raise Unsupported(
                f"it reads the result of {operand.client.op}, which the client computes in the "
                "clear after the private part",
                "End the model at that result, or do this step on the client",
            )


def _needed(graph: onnx.GraphProto) -> tuple[list[onnx.NodeProto], set[str]]:
    """The nodes that some output depends on, in their order, and the tensors that are read."""
    needed = {output.name for output in graph.output}
    kept = []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(node.input)
            for attribute in node.attribute:
                for inner in (attribute.g, *attribute.graphs):
                    needed.update(name for n in inner.node for name in n.input)
    return kept[::-1], needed
