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

Run = Callable[[Iterable[onnx.NodeProto]], None]
"""Walks over nodes in place of the one that holds them."""
Known = Callable[[str], Array | None]
"""The value of a tensor that was met, if it is a constant."""
ShapeOf = Callable[[str], Shape | None]
"""The shape of a tensor that was met, if it is known."""


def names_read(node: onnx.NodeProto) -> Iterator[str]:
    """What a node reads, also within its bodies."""
    yield from node.input
    for body in _bodies(node):
        yield from (output.name for output in body.output)
        for inner in body.node:
            yield from names_read(inner)


def needed(
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


def unroll(node: onnx.NodeProto, known: Known, shape_of: ShapeOf, run: Run) -> None:
    """Walks over the nodes that stand for an If, a Loop or a Scan. Raises `Unsupported` if a
    condition, or how often a loop runs, is no constant."""
    if node.op_type == "If":
        run(_branch(node, _truth(known(node.input[0]))))
        return
    if node.op_type == "Scan":
        _scan(node, shape_of, run)
        return
    (body,) = _bodies(node)
    carried = list(node.input[2:])
    stacked: list[list[str]] = [[] for _ in body.output[1 + len(carried) :]]
    times = known(node.input[0]) if node.input[0] else None
    if node.input[0] and times is None:
        raise _depends("how often it runs")
    limit = None if times is None else int(times.ravel()[0])
    condition = node.input[1]
    goes_on = _truth(known(condition)) if condition else True
    count, step = 0, 0
    while goes_on and (limit is None or step < limit):
        ahead = f"{node.output[0]}/{step}/"
        counter = _constant(f"{ahead}step", np.asarray(step, np.int64))
        going = _constant(f"{ahead}condition", np.asarray(True))
        arguments = [counter.output[0], going.output[0], *carried]
        names = dict(zip((entry.name for entry in body.input), arguments, strict=True))
        nodes = [counter, going, *_inlined(body, names, ahead)]
        count += len(nodes)
        if count > MOST_NODES:
            raise Unsupported(f"it runs to more than {MOST_NODES} nodes", "Export it unrolled")
        run(nodes)
        results = [names.get(output.name, output.name) for output in body.output]
        goes_on = _truth(known(results[0]))
        carried = results[1 : 1 + len(carried)]
        for parts, result in zip(stacked, results[1 + len(carried) :], strict=True):
            parts.append(result)
        step += 1
    run(_results(node, carried, stacked))


def _scan(node: onnx.NodeProto, shape_of: ShapeOf, run: Run) -> None:
    """One step for each slice of the tensors that it goes along."""
    attrs = attributes(node)
    (body,) = _bodies(node)
    count = len(node.input) - int(attrs["num_scan_inputs"])
    carried, sources = list(node.input[:count]), list(node.input[count:])
    shapes = [shape_of(source) for source in sources]
    axes = attrs.get("scan_input_axes") or [0] * len(sources)
    backwards = attrs.get("scan_input_directions") or [0] * len(sources)
    steps = _steps([shape for shape in shapes if shape], axes, len(sources))
    if steps * (len(body.node) + len(body.initializer) + 2 * len(sources)) > MOST_NODES:
        raise Unsupported(f"it runs to more than {MOST_NODES} nodes", "Export it unrolled")
    stacked: list[list[str]] = [[] for _ in body.output[count:]]
    for step in range(steps):
        ahead = f"{node.output[0]}/{step}/"
        nodes: list[onnx.NodeProto] = []
        slices: list[str] = []
        for source, axis, reverse in zip(sources, axes, backwards, strict=True):
            at = _constant(
                f"{ahead}{len(slices)}/at", np.array(steps - 1 - step if reverse else step)
            )
            slices.append(f"{ahead}{len(slices)}/slice")
            gather = onnx.helper.make_node(
                "Gather", [source, at.output[0]], slices[-1:], axis=axis, name=slices[-1]
            )
            nodes += [at, gather]
        entries = [entry.name for entry in body.input]
        names = dict(zip(entries, [*carried, *slices], strict=True))
        run([*nodes, *_inlined(body, names, ahead)])
        results = [names.get(output.name, output.name) for output in body.output]
        carried = results[:count]
        for parts, result in zip(stacked, results[count:], strict=True):
            parts.append(result)
    for parts, reverse in zip(stacked, attrs.get("scan_output_directions", []), strict=False):
        parts[:] = parts[::-1] if reverse else parts
    run(_results(node, carried, stacked, attrs.get("scan_output_axes", [])))


def _steps(shapes: Sequence[Shape], axes: Sequence[int], sources: int) -> int:
    """How many slices each of the tensors has along its axis."""
    if not shapes or len(shapes) < sources:
        raise _depends("how often it runs")
    if any(not -len(shape) <= axis < len(shape) for shape, axis in zip(shapes, axes, strict=True)):
        raise Unsupported("it goes along an axis that there is not", "Check the model")
    counts = {shape[axis] for shape, axis in zip(shapes, axes, strict=True)}
    if len(counts) != 1:
        raise Unsupported("it goes along tensors of different lengths", "Check the model")
    return counts.pop()


def _results(
    node: onnx.NodeProto,
    carried: list[str],
    stacked: list[list[str]],
    axes: Sequence[int] = (),
) -> Iterator[onnx.NodeProto]:
    outputs = list(node.output)
    for source, output in zip(carried, outputs, strict=False):
        if output:
            yield onnx.helper.make_node("Identity", [source], [output])
    for index, (parts, output) in enumerate(zip(stacked, outputs[len(carried) :], strict=False)):
        axis = axes[index] if axes else 0
        if not parts and output:
            raise Unsupported("it stacks what no step makes", "Export it unrolled")
        if output:
            sequence = f"{output}/steps"
            yield onnx.helper.make_node("SequenceConstruct", parts, [sequence])
            yield onnx.helper.make_node(
                "ConcatFromSequence", [sequence], [output], axis=axis, new_axis=1
            )


def _branch(node: onnx.NodeProto, condition: bool) -> Iterator[onnx.NodeProto]:
    branch = "then_branch" if condition else "else_branch"
    body = next(a.g for a in node.attribute if a.name == branch)
    names: dict[str, str] = {}
    yield from _inlined(body, names, f"{node.output[0]}/")
    for produced, output in zip(body.output, node.output, strict=False):
        if output:
            source = names.get(produced.name, produced.name)
            yield onnx.helper.make_node("Identity", [source], [output])


def _inlined(body: onnx.GraphProto, names: dict[str, str], ahead: str) -> Iterator[onnx.NodeProto]:
    """The nodes of a body, whose own tensors get names that begin with `ahead`.

    `names` has those that its inputs stand for, and gets its own.
    """
    for tensor in body.initializer:
        names[tensor.name] = ahead + tensor.name
        yield onnx.helper.make_node("Constant", [], [names[tensor.name]], value=tensor)
    for inner in body.node:
        names.update((output, ahead + output) for output in inner.output if output)
        yield _renamed(inner, names, ahead)


def _renamed(node: onnx.NodeProto, names: Mapping[str, str], ahead: str = "") -> onnx.NodeProto:
    copy = deepcopy(node)
    copy.name = ahead + node.name if node.name else ""
    copy.input[:] = [names.get(name, name) for name in node.input]
    copy.output[:] = [names.get(name, name) for name in node.output]
    for body in _bodies(copy):
        inner = [_renamed(step, names) for step in body.node]
        del body.node[:]
        body.node.extend(inner)
        for output in body.output:
            output.name = names.get(output.name, output.name)
    return copy


def _bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g


def _constant(name: str, value: Array) -> onnx.NodeProto:
    return onnx.helper.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(value))


def _truth(condition: Array | None) -> bool:
    if condition is None:
        raise _depends("its condition")
    return bool(condition.ravel()[0])


def _depends(subject: str) -> Unsupported:
    return Unsupported(
        f"{subject} depends on the private input",
        "Export the model with torch.jit.trace or torch.export, for one course of the computation",
    )
