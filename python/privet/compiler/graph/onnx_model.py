"""Reading an ONNX model: from a path, bytes or a `ModelProto`, checked, functions inlined."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from copy import deepcopy
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import numpy as np
import onnx
import onnx.inliner
from google.protobuf import json_format, text_format
from google.protobuf.message import DecodeError

from privet.compiler.graph.control_flow import names_read
from privet.compiler.graph.rewriting import NodeExpansion, expand_nodes, without_nodes
from privet.errors import InvalidModel

ModelSource = str | os.PathLike[str] | bytes | onnx.ModelProto
DEFAULT_DOMAINS = ("", "ai.onnx")
ML = "ai.onnx.ml"
"""The domain of traditional machine learning."""
FUSED_DOMAIN = "com.microsoft"
"""The domain of ONNX Runtime's own operators."""

_UNREADABLE = (DecodeError, json_format.ParseError, text_format.ParseError, onnx.parser.ParseError)
"""What `onnx.load` raises on files that are no models, in each of the forms that names tell it."""
_HALVES = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)

_TERM = r"[A-Za-z]*(?:\.\.\.[A-Za-z]*)?"
_EQUATION = re.compile(f"{_TERM}(?:,{_TERM})*(?:->{_TERM})?")
"""Of Einsum, without spaces."""


def load_model(source: ModelSource) -> onnx.ModelProto:
    """The model, with external data loaded and its local functions inlined. Raises `InvalidModel`
    if it cannot be read or breaks the ONNX specification."""
    try:
        model = _with_ir_version(
            _expand_group_norms(_with_runtime_norms(_sorted_nodes(_read(source))))
        )
        onnx.checker.check_model(_with_shapes(model))
        if model.functions:
            model = onnx.inliner.inline_local_functions(model)
        _check_types(model, source)
        _check_texts(model.graph)
        if any(data_type in _HALVES for data_type in _types(model.graph)):
            model = _in_single_precision(model)
    except OSError as error:
        raise InvalidModel(f"{source!s} cannot be read: {error.strerror or error}") from error
    except _UNREADABLE as error:
        why = str(error).partition("\n")[0]
        raise InvalidModel(f"{_title(source)} is not a valid ONNX model: {why}") from error
    except (onnx.checker.ValidationError, ValueError) as error:
        raise InvalidModel(f"{_title(source)} is not a valid ONNX model: {error}") from error
    if not model.graph.output:
        raise InvalidModel(f"{_title(source)} has no output")
    return _split_sequence_outputs(model)


def _with_runtime_norms(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with norms in ONNX Runtime's domain that its optimiser wrote into a version of the
    standard which has none; itself if there are no such."""
    norms = {"SimplifiedLayerNormalization"}
    if opset_of(model) < 17:
        norms.add("LayerNormalization")
    if not any(
        node.op_type in norms and node.domain in DEFAULT_DOMAINS for node in model.graph.node
    ):
        return model
    copy = deepcopy(model)
    for node in copy.graph.node:
        if node.op_type in norms and node.domain in DEFAULT_DOMAINS:
            node.domain = FUSED_DOMAIN
    if not any(opset.domain == FUSED_DOMAIN for opset in copy.opset_import):
        copy.opset_import.append(onnx.helper.make_opsetid(FUSED_DOMAIN, 1))
    return copy


def _expand_group_norms(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its group normalisations of opsets 18 to 20 as instance normalisations of
    groups: the checker refuses them, as the standard took their form back. A weight is a group's
    there."""
    used_names = {name for node in model.graph.node for name in (*node.input, *node.output)}

    def is_chosen(node: onnx.NodeProto) -> bool:
        is_plain = node.domain in DEFAULT_DOMAINS and len(node.input) == 3
        return is_plain and node.op_type == "GroupNormalization" and opset_of(model) < 21

    def expand_node(node: onnx.NodeProto, graph: onnx.GraphProto) -> list[onnx.NodeProto]:
        expansion = NodeExpansion(node, graph)
        expansion.used_names = used_names
        x, *weights = node.input
        groups = np.array([0, expansion.attrs.get("num_groups", 0), -1], np.int64)
        attrs = {"epsilon": expansion.attrs.get("epsilon", 1e-5)}
        rows = expansion.add("Reshape", [x, expansion.constant("groups", groups)])
        normalized = expansion.add("InstanceNormalization", [rows, *weights], **attrs)
        expansion.add("Reshape", [normalized, expansion.add("Shape", [x])], node.output[0])
        return expansion.new_nodes

    return expand_nodes(model, is_chosen, expand_node)


def _with_ir_version(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model in the first version of the format that need not list its constants among its
    inputs, if an optimiser added some to an older one and left the version; else the model."""
    inputs = {entry.name for entry in model.graph.input}
    if model.ir_version > 3 or all(tensor.name in inputs for tensor in model.graph.initializer):
        return model
    copy = deepcopy(model)
    copy.ir_version = 4
    return copy


def type_title(kind: int) -> str:
    """The name of an ONNX data type, for people."""
    if kind in onnx.TensorProto.DataType.values():
        return str(onnx.TensorProto.DataType.Name(kind)).lower()
    return f"of number {kind}, which ONNX does not know"


def _bodies(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graph, and those of its branches and loops."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for body in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                yield from _bodies(body)


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Constants of a graph: initialisers, and tensors in attributes."""
    for body in _bodies(graph):
        yield from body.initializer
        for sparse in body.sparse_initializer:
            yield sparse.values
        for attribute in (attribute for node in body.node for attribute in node.attribute):
            yield from (*attribute.tensors, *([attribute.t] if attribute.HasField("t") else []))


def _tensor_types(graph: onnx.GraphProto) -> Iterator[onnx.TypeProto.Tensor]:
    """Types of tensors that a graph declares."""
    for body in _bodies(graph):
        for entry in (*body.input, *body.output, *body.value_info):
            if entry.type.HasField("tensor_type"):
                yield entry.type.tensor_type


def _types(graph: onnx.GraphProto) -> set[int]:
    return {tensor.data_type for tensor in _tensors(graph)} | {
        tensor_type.elem_type for tensor_type in _tensor_types(graph)
    }


def _check_types(model: onnx.ModelProto, source: ModelSource) -> None:
    types = set(onnx.TensorProto.DataType.values())
    for tensor in _tensors(model.graph):
        if tensor.data_type not in types:
            raise InvalidModel(
                f"{_title(source)}: constant {tensor.name!r} has a data type {tensor.data_type} "
                "that ONNX does not know: export the model again, or with an older opset"
            )


def _check_texts(graph: onnx.GraphProto) -> None:
    """Raises `ValueError` if a name, or a text of an operator of ONNX, is no UTF-8, or if an
    equation of Einsum is none: ONNX's own inference of shapes never ends on one with two ellipses
    in a term."""
    elements = (*graph.input, *graph.output, *graph.initializer, *graph.node)
    names = [graph.name, *(element.name for element in elements)]
    for node in graph.node:
        names += [node.op_type, node.domain, *node.input, *node.output]
    if invalid_names := [name for name in names if not isinstance(name, str)]:
        raise ValueError(f"the name {invalid_names[0]!r} is no UTF-8")
    for node in graph.node:
        for attribute in node.attribute:
            for body in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                _check_texts(body)
            if node.domain in (*DEFAULT_DOMAINS, ML):
                for text in (attribute.s, *attribute.strings):
                    try:
                        text.decode()
                    except UnicodeDecodeError:
                        place = f"{node.name or node.op_type}: attribute {attribute.name!r}"
                        raise ValueError(f"{place} is no UTF-8") from None
                if node.op_type == "Einsum" and attribute.name == "equation":
                    equation = attribute.s.decode()
                    if not _EQUATION.fullmatch(equation.replace(" ", "")):
                        raise ValueError(f"{node.name or 'Einsum'}: {equation!r} is no equation")


def _in_single_precision(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model in single precision instead of half: what is computed is in fixed point anyway,
    and ONNX Runtime, the reference, has no kernels for many operators in half precision."""
    copy = deepcopy(model)
    for tensor in _tensors(copy.graph):
        if tensor.data_type in _HALVES:
            floats = onnx.numpy_helper.to_array(tensor).astype(np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(floats, tensor.name))
    for tensor_type in _tensor_types(copy.graph):
        if tensor_type.elem_type in _HALVES:
            tensor_type.elem_type = onnx.TensorProto.FLOAT
    for node in (node for body in _bodies(copy.graph) for node in body.node):
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i in _HALVES:
                attribute.i = onnx.TensorProto.FLOAT
    return copy


def _split_sequence_outputs(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with each tensor of a sequence that is an output as an output of its own.

    Of an output `probabilities`, as classifiers of several labels have it, come `probabilities_0`,
    `probabilities_1` and so on.
    """
    constructors = {
        node.output[0]: node for node in model.graph.node if node.op_type == "SequenceConstruct"
    }
    if not any(output.name in constructors for output in model.graph.output):
        return model
    copy = deepcopy(model)
    del copy.graph.output[:]
    for output in model.graph.output:
        items = constructors[output.name].input if output.name in constructors else ()
        kind = output.type.sequence_type.elem_type.tensor_type.elem_type
        for index, item in enumerate(items):
            name = f"{output.name}_{index}"
            copy.graph.node.append(onnx.helper.make_node("Identity", [item], [name], name=name))
            entry = onnx.helper.make_tensor_value_info(name, kind, None)
            copy.graph.output.append(entry)
        if not items:
            copy.graph.output.append(output)
    return copy


def model_name(source: ModelSource, model: onnx.ModelProto) -> str:
    """A name for people: the file's, else the graph's."""
    if isinstance(source, str | os.PathLike):
        return Path(source).stem
    return model.graph.name or "model"


def opset_of(model: onnx.ModelProto) -> int:
    """The version of the default operator set."""
    for entry in model.opset_import:
        if entry.domain in DEFAULT_DOMAINS:
            return int(entry.version)
    return onnx.defs.onnx_opset_version()


def _read(source: ModelSource) -> onnx.ModelProto:
    if isinstance(source, onnx.ModelProto):
        return source
    if isinstance(source, bytes):
        return onnx.load_from_string(source)
    if not isinstance(source, str | os.PathLike):
        raise InvalidModel(
            f"the model is a {type(source).__name__}: give the path, the bytes or the ModelProto "
            "of an ONNX model; torch.onnx.export, skl2onnx.to_onnx and the like make one"
        )
    return onnx.load(source)


def _title(source: ModelSource) -> str:
    return str(source) if isinstance(source, str | os.PathLike) else "the model"


def _sorted_nodes(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with nodes behind what they read. ONNX asks for that; converters to half precision
    append casts at the end, and ONNX Runtime sorts."""
    nodes = model.graph.node
    producers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    dependencies = [
        {producers[name] for name in names_read(node) if name in producers} for node in nodes
    ]
    if all(max(indices, default=-1) < index for index, indices in enumerate(dependencies)):
        return model
    copy = without_nodes(model)
    try:
        order = [*TopologicalSorter(dict(enumerate(dependencies))).static_order()]
    except CycleError:
        return model
    copy.graph.node.extend(nodes[index] for index in order)
    return copy


def _with_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model, with an empty shape for each output that has none: the checker wants one, and
    nothing reads it."""
    shapeless = [
        index
        for index, output in enumerate(model.graph.output)
        if output.type.HasField("tensor_type") and not output.type.tensor_type.HasField("shape")
    ]
    if not shapeless:
        return model
    copy = deepcopy(model)
    for index in shapeless:
        copy.graph.output[index].type.tensor_type.shape.SetInParent()
    return copy
