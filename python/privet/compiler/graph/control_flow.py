"""If, Loop and Scan whose courses are known while a model is read: their bodies as plain nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy

import numpy as np
import onnx

from privet.compiler.graph.operations import Array, Shape
from privet.compiler.graph.rewriting import attributes
from privet.compiler.graph.site import Unsupported

CONTROL = ("If", "Loop", "Scan")
MOST_NODES = 1 << 13
"""Most nodes that a loop is unrolled to."""

Walk = Callable[[Iterable[onnx.NodeProto]], None]
"""Walks over nodes in place of the one that holds them."""
ConstantOf = Callable[[str], Array | None]
"""The value of a tensor that was met, if it is a constant."""
ShapeOf = Callable[[str], Shape | None]
"""The shape of a tensor that was met, if it is known."""


def names_read(node: onnx.NodeProto) -> Iterator[str]:
    """What a node reads, also within its bodies."""
    yield from node.input
    for body in _bodies(node):
        yield from (output.name for output in body.output)
        for body_node in body.node:
            yield from names_read(body_node)


def needed_nodes(
    nodes: Sequence[onnx.NodeProto], outputs: Collection[str]
) -> tuple[list[onnx.NodeProto], set[str]]:
    """The nodes that some output depends on, in their order, and the tensors that are read."""
    names = set(outputs)
    live_nodes = []
    for node in reversed(nodes):
        if names.intersection(node.output):
            live_nodes.append(node)
            names.update(names_read(node))
    return live_nodes[::-1], names


def unroll(node: onnx.NodeProto, constant_of: ConstantOf, shape_of: ShapeOf, walk: Walk) -> None:
    """Walks over the nodes that stand for an If, a Loop or a Scan. Raises `Unsupported` if a
    condition, or how often a loop runs, is no constant."""
    if node.op_type == "If":
        walk(_branch(node, _bool_value(constant_of(node.input[0]))))
        return
    if node.op_type == "Scan":
        _scan(node, shape_of, walk)
        return
    (body,) = _bodies(node)
    carried = list(node.input[2:])
    scan_outputs: list[list[str]] = [[] for _ in body.output[1 + len(carried) :]]
    trip_count = constant_of(node.input[0]) if node.input[0] else None
    if node.input[0] and trip_count is None:
        raise _input_dependent("how often it runs")
    limit = None if trip_count is None else int(trip_count.ravel()[0])
    condition = node.input[1]
    goes_on = _bool_value(constant_of(condition)) if condition else True
    node_count, step = 0, 0
    while goes_on and (limit is None or step < limit):
        prefix = f"{node.output[0]}/{step}/"
        step_node = _constant(f"{prefix}step", np.asarray(step, np.int64))
        condition_node = _constant(f"{prefix}condition", np.asarray(True))
        arguments = [step_node.output[0], condition_node.output[0], *carried]
        names = dict(zip((entry.name for entry in body.input), arguments, strict=True))
        nodes = [step_node, condition_node, *_inlined_nodes(body, names, prefix)]
        node_count += len(nodes)
        if node_count > MOST_NODES:
            raise Unsupported(f"it runs to more than {MOST_NODES} nodes", "Export it unrolled")
        walk(nodes)
        results = [names.get(output.name, output.name) for output in body.output]
        goes_on = _bool_value(constant_of(results[0]))
        carried = results[1 : 1 + len(carried)]
        for step_outputs, result in zip(scan_outputs, results[1 + len(carried) :], strict=True):
            step_outputs.append(result)
        step += 1
    walk(_output_nodes(node, carried, scan_outputs))


def _scan(node: onnx.NodeProto, shape_of: ShapeOf, walk: Walk) -> None:
    """One step for each slice of the tensors that it goes along."""
    attrs = attributes(node)
    (body,) = _bodies(node)
    state_count = len(node.input) - int(attrs["num_scan_inputs"])
    carried, sources = list(node.input[:state_count]), list(node.input[state_count:])
    shapes = [shape_of(source) for source in sources]
    axes = attrs.get("scan_input_axes") or [0] * len(sources)
    directions = attrs.get("scan_input_directions") or [0] * len(sources)
    steps = _steps([shape for shape in shapes if shape], axes, len(sources))
    if steps * (len(body.node) + len(body.initializer) + 2 * len(sources)) > MOST_NODES:
        raise Unsupported(f"it runs to more than {MOST_NODES} nodes", "Export it unrolled")
    scan_outputs: list[list[str]] = [[] for _ in body.output[state_count:]]
    for step in range(steps):
        prefix = f"{node.output[0]}/{step}/"
        nodes: list[onnx.NodeProto] = []
        slices: list[str] = []
        for source, axis, reverse in zip(sources, axes, directions, strict=True):
            index_node = _constant(
                f"{prefix}{len(slices)}/at", np.array(steps - 1 - step if reverse else step)
            )
            slices.append(f"{prefix}{len(slices)}/slice")
            gather = onnx.helper.make_node(
                "Gather", [source, index_node.output[0]], slices[-1:], axis=axis, name=slices[-1]
            )
            nodes += [index_node, gather]
        input_names = [entry.name for entry in body.input]
        names = dict(zip(input_names, [*carried, *slices], strict=True))
        walk([*nodes, *_inlined_nodes(body, names, prefix)])
        results = [names.get(output.name, output.name) for output in body.output]
        carried = results[:state_count]
        for step_outputs, result in zip(scan_outputs, results[state_count:], strict=True):
            step_outputs.append(result)
    for step_outputs, reverse in zip(
        scan_outputs, attrs.get("scan_output_directions", []), strict=False
    ):
        step_outputs[:] = step_outputs[::-1] if reverse else step_outputs
    walk(_output_nodes(node, carried, scan_outputs, attrs.get("scan_output_axes", [])))


def _steps(shapes: Sequence[Shape], axes: Sequence[int], sources: int) -> int:
    """How many slices each of the tensors has along its axis."""
    if not shapes or len(shapes) < sources:
        raise _input_dependent("how often it runs")
    if any(not -len(shape) <= axis < len(shape) for shape, axis in zip(shapes, axes, strict=True)):
        raise Unsupported("it goes along an axis that there is not", "Check the model")
    counts = {shape[axis] for shape, axis in zip(shapes, axes, strict=True)}
    if len(counts) != 1:
        raise Unsupported("it goes along tensors of different lengths", "Check the model")
    return counts.pop()


def _output_nodes(
    node: onnx.NodeProto,
    carried: list[str],
    scan_outputs: list[list[str]],
    axes: Sequence[int] = (),
) -> Iterator[onnx.NodeProto]:
    outputs = list(node.output)
    for source, output in zip(carried, outputs, strict=False):
        if output:
            yield onnx.helper.make_node("Identity", [source], [output])
    for index, (step_outputs, output) in enumerate(
        zip(scan_outputs, outputs[len(carried) :], strict=False)
    ):
        axis = axes[index] if axes else 0
        if not step_outputs and output:
            raise Unsupported("it stacks what no step makes", "Export it unrolled")
        if output:
            sequence = f"{output}/steps"
            yield onnx.helper.make_node("SequenceConstruct", step_outputs, [sequence])
            yield onnx.helper.make_node(
                "ConcatFromSequence", [sequence], [output], axis=axis, new_axis=1
            )


def _branch(node: onnx.NodeProto, condition: bool) -> Iterator[onnx.NodeProto]:
    branch = "then_branch" if condition else "else_branch"
    body = next(a.g for a in node.attribute if a.name == branch)
    names: dict[str, str] = {}
    yield from _inlined_nodes(body, names, f"{node.output[0]}/")
    for body_output, output in zip(body.output, node.output, strict=False):
        if output:
            source = names.get(body_output.name, body_output.name)
            yield onnx.helper.make_node("Identity", [source], [output])


def _inlined_nodes(
    body: onnx.GraphProto, names: dict[str, str], prefix: str
) -> Iterator[onnx.NodeProto]:
    """The nodes of a body, whose own tensors get names that begin with `prefix`.

    `names` has those that its inputs stand for, and gets its own.
    """
    for tensor in body.initializer:
        names[tensor.name] = prefix + tensor.name
        yield onnx.helper.make_node("Constant", [], [names[tensor.name]], value=tensor)
    for body_node in body.node:
        names.update((output, prefix + output) for output in body_node.output if output)
        yield _with_names(body_node, names, prefix)


def _with_names(node: onnx.NodeProto, names: Mapping[str, str], prefix: str = "") -> onnx.NodeProto:
    copy = deepcopy(node)
    copy.name = prefix + node.name if node.name else ""
    copy.input[:] = [names.get(name, name) for name in node.input]
    copy.output[:] = [names.get(name, name) for name in node.output]
    for body in _bodies(copy):
        body_nodes = [_with_names(body_node, names) for body_node in body.node]
        del body.node[:]
        body.node.extend(body_nodes)
        for output in body.output:
            output.name = names.get(output.name, output.name)
    return copy


def _bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g


def _constant(name: str, value: Array) -> onnx.NodeProto:
    return onnx.helper.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(value))


def _bool_value(condition: Array | None) -> bool:
    if condition is None:
        raise _input_dependent("its condition")
    return bool(condition.ravel()[0])


def _input_dependent(subject: str) -> Unsupported:
    return Unsupported(
        f"{subject} depends on the private input",
        "Export the model with torch.jit.trace or torch.export, for one course of the computation",
    )
