"""Masks that depend on the input, such as those of padding: what is added to scores before softmax,
or to what the largest is taken of.

Exporters write minus infinity, or the least number of a type, at the elements to leave out. In
fixed point `BLOCKED` does the same, where what is masked is not too large (`masks_hold`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
from onnx import helper

from privet.compiler.graph.constants import array_of
from privet.compiler.graph.control_flow import names_read
from privet.compiler.graph.input_shapes import WHOLE
from privet.compiler.graph.onnx_model import DEFAULT_DOMAINS
from privet.compiler.graph.operations import BLOCKED, Array
from privet.compiler.graph.rewriting import without_nodes
from privet.errors import Problem, UnsupportedModel

ENOUGH, ENOUGH_TIMES = 1e5, 1e9
"""Numbers that stand for infinity in a choice, and as factors of truth values."""
_THROUGH = frozenset(
    {
        *("Add", "Cast", "Concat", "Dropout", "Expand", "Flatten", "Identity", "Reshape", "Slice"),
        *("Squeeze", "Sub", "Sum", "Tile", "Transpose", "Unsqueeze", "Where"),
    }
)
"""Operators that a mask may go through on its way to a softmax."""
_PRODUCTS = ("Einsum", "IsNaN", "MatMul", "Mul")
"""What reads the results of a softmax inside a network; PyTorch also asks whether they are NaN."""
_TRUTHS = frozenset(
    {
        *("And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual"),
        *("Not", "Or", "Xor"),
    }
)
_OF_WHOLE = frozenset({"Add", "Max", "Min", "Mul", "Sub", "Sum"})
"""Operators that make whole numbers of whole numbers, besides those that move and choose."""


def bound_masks(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with such masks by finite numbers; itself if it has none. Raises `UnsupportedModel`
    if a number that may lie between 0 and 1 is multiplied to mask scores: what is next to 1 would
    be 1 in fixed point, and masks the element in floating point."""
    constants = _scalar_constants(model)
    private = _private_tensors(model)
    nodes = model.graph.node
    rewriters = {
        index: rewriter
        for index, node in enumerate(nodes)
        if node.domain in DEFAULT_DOMAINS and (rewriter := _mask_rewriter(node, constants, private))
    }
    masks = _mask_tensors(model) if rewriters else set()
    rewriters = {
        index: rewriter
        for index, rewriter in rewriters.items()
        if masks.issuperset(nodes[index].output)
    }
    if not rewriters:
        return model
    _check_whole(model, [nodes[index] for index in rewriters], constants)
    copy = without_nodes(model)
    for index, node in enumerate(nodes):
        rewriter = rewriters.get(index)
        copy.graph.node.extend([node] if rewriter is None else rewriter(copy.graph))
    return copy


def _check_whole(
    model: onnx.ModelProto, mask_nodes: Sequence[onnx.NodeProto], constants: Mapping[str, Array]
) -> None:
    whole_tensors, scores = _whole_tensors(model, constants), set[str]()
    for node in reversed(model.graph.node):
        if node.op_type == "Softmax" or (
            node.op_type in _THROUGH and not scores.isdisjoint(node.output)
        ):
            scores.update(node.input)
    problems = [
        Problem(
            node.name or node.output[0],
            node.op_type,
            f"it masks scores by a large number times {name}, which need not be 0 or 1",
            "Let the mask be an input of integers or truth values, or compare it with 0.5 first",
        )
        for node in mask_nodes
        if node.op_type == "Mul" and not scores.isdisjoint(node.output)
        for name in node.input
        if name not in whole_tensors and name not in constants
    ]
    if problems:
        raise UnsupportedModel(problems)


def _whole_tensors(model: onnx.ModelProto, constants: Mapping[str, Array]) -> set[str]:
    """Tensors of whole numbers or truth values."""
    whole_tensors = {name for name, array in constants.items() if (array == np.rint(array)).all()}
    whole_tensors |= {
        entry.name for entry in model.graph.input if entry.type.tensor_type.elem_type in WHOLE
    }
    for node in model.graph.node:
        inputs = node.input[1:] if node.op_type == "Where" else node.input
        moves = node.op_type in _THROUGH - _OF_WHOLE - {"Concat", "Where"}
        inputs = node.input[:1] if moves else inputs
        keeps_whole = moves or node.op_type in _OF_WHOLE | {"Concat", "Where"}
        is_truth = node.op_type in _TRUTHS or (
            node.op_type == "Cast"
            and any(attr.name == "to" and attr.i in WHOLE for attr in node.attribute)
        )
        if is_truth or (keeps_whole and whole_tensors.issuperset(inputs)):
            whole_tensors.update(node.output)
    return whole_tensors


def _scalar_constants(model: onnx.ModelProto) -> dict[str, Array]:
    """Single numbers by name: initialisers, and values of Constant nodes."""
    tensors = {t.name: t for t in model.graph.initializer}
    for node in model.graph.node:
        values = [attr.t for attr in node.attribute if attr.name == "value"]
        if node.op_type == "Constant" and values and node.output:
            tensors[node.output[0]] = values[0]
    return {
        name: array_of(tensor) for name, tensor in tensors.items() if math.prod(tensor.dims) == 1
    }


def _private_tensors(model: onnx.ModelProto) -> set[str]:
    initializers = {tensor.name for tensor in model.graph.initializer}
    private = {entry.name for entry in model.graph.input} - initializers
    for node in model.graph.node:
        if private.intersection(names_read(node)) and node.op_type not in ("Shape", "Size"):
            private.update(node.output)
    return private


MaskRewriter = Callable[[onnx.GraphProto], list[onnx.NodeProto]]


def _mask_rewriter(
    node: onnx.NodeProto, constants: Mapping[str, Array], private: set[str]
) -> MaskRewriter | None:
    """What makes nodes in place of one that masks, if it does."""
    numbers = [
        float(constants[name].ravel()[0])
        if name in constants and constants[name].dtype.kind == "f"
        else 0.0
        for name in node.input
    ]
    if node.op_type == "Mul" and len(numbers) == 2:
        for number, other in zip(numbers, node.input[::-1], strict=True):
            if abs(number) >= ENOUGH_TIMES and other in private:
                (factor,) = (name for name in node.input if name != other)
                bound = np.full_like(constants[factor], math.copysign(BLOCKED, number))
                return lambda graph: [_product_node(graph, node, other, bound, node.output[0])]
    if node.op_type == "Where" and len(numbers) == 3 and node.input[0] in private:
        for place in (1, 2):
            if numbers[place] <= -ENOUGH:
                other = node.input[3 - place]
                bound = np.full_like(constants[node.input[place]], -BLOCKED)
                return lambda graph: _masked_nodes(graph, node, other, bound, is_negated=place == 2)
    return None


def _product_node(
    graph: onnx.GraphProto, node: onnx.NodeProto, x: str, factor: Array, output: str
) -> onnx.NodeProto:
    name = f"{node.output[0]}_bound"
    graph.initializer.append(onnx.numpy_helper.from_array(factor.astype(np.float32), name))
    return helper.make_node("Mul", [x, name], [output], node.name)


def _masked_nodes(
    graph: onnx.GraphProto, node: onnx.NodeProto, x: str, bound: Array, *, is_negated: bool
) -> list[onnx.NodeProto]:
    """`x`, lower where the condition holds, or where it does not."""
    nodes = []
    condition, (truth, number, mask) = (
        node.input[0],
        (f"{node.output[0]}_{part}" for part in ("truth", "number", "mask")),
    )
    if is_negated:
        nodes.append(helper.make_node("Not", [condition], [truth], node.name))
        condition = truth
    element_type = onnx.TensorProto.FLOAT
    nodes.append(helper.make_node("Cast", [condition], [number], node.name, to=element_type))
    nodes.append(_product_node(graph, node, number, bound, mask))
    nodes.append(helper.make_node("Add", [x, mask], node.output, node.name))
    return nodes


def _mask_tensors(model: onnx.ModelProto) -> set[str]:
    """Tensors that nothing reads but softmaxes inside the network and what takes the largest of
    them, through sums and moves.

    The client must not see scores that are lowered: it computes a softmax that outputs tell.
    """
    read_by: dict[str, list[onnx.NodeProto]] = defaultdict(list)
    for node in model.graph.node:
        for name in names_read(node):
            read_by[name].append(node)
    output_names = {output.name for output in model.graph.output}
    masks: set[str] = set()
    factors: set[str] = set()
    for node in reversed(model.graph.node):
        for name in set(node.output) - output_names:
            readers = read_by[name]
            if readers and all(_reads_factor(reader, factors) for reader in readers):
                factors.add(name)
            if readers and all(_reads_mask(reader, name, masks, factors) for reader in readers):
                masks.add(name)
    return masks


def _reads_factor(node: onnx.NodeProto, factors: set[str]) -> bool:
    """Whether a node makes products of what it reads, or passes it on to such nodes alone."""
    passes = node.op_type in _THROUGH and factors.issuperset(node.output)
    moves = node.op_type == "Einsum" and len(node.input) == 1
    return passes or (node.op_type in _PRODUCTS and not moves)


def _reads_mask(node: onnx.NodeProto, name: str, masks: set[str], factors: set[str]) -> bool:
    if node.op_type == "Softmax":
        return factors.issuperset(node.output)
    if node.op_type == "ReduceMax":
        return bool(name == node.input[0])
    is_data = node.op_type != "Where" or name != node.input[0]
    return node.op_type in _THROUGH and is_data and masks.issuperset(node.output)
