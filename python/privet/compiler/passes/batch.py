"""Widens a graph for one sample to one that computes several at once, each as if it were alone.

Every value becomes the samples' values joined along its first axis, whether that axis is the batch
or, behind a reshape, the rows of a matrix. Most operations then work as they stand. One that acts
along the first axis itself gets the samples on an axis of their own for a moment; so no operation
can mix samples, and a value's bound for one sample holds for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from privet.compiler.graph import Graph, Node
from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Array, Operation, Shape
from privet.compiler.passes.merge_moves import merge_moves
from privet.compiler.passes.rewriter import Rewriter
from privet.errors import Problem, UnsupportedModel


def batch(graph: Graph, samples: int) -> Graph:
    """The graph for `samples` samples at once; inputs and outputs are `[samples, ..]`. Raises
    `UnsupportedModel` with every input and output that has no batch axis of 1, or a node that has
    too many axes to be widened."""
    if samples == 1:
        return graph
    if problems := _without_batch_axis(graph):
        raise UnsupportedModel(problems)
    return merge_moves(_Widening(graph, samples).graph())


def _without_batch_axis(graph: Graph) -> list[Problem]:
    problems = []
    for entry in graph.inputs:
        if graph.values[entry.value].shape[:1] != (1,):
            why = f"its shape {list(graph.values[entry.value].shape)} does not begin with 1"
            instead = "Export the model for one sample or with a symbolic batch axis"
            problems.append(Problem(entry.name, "graph input", f"{why}, the batch axis", instead))
    producers = graph.producers()
    for output in graph.outputs:
        shape, node = graph.values[output.value].shape, producers.get(output.value)
        place = f"{output.name}, made by {node.name}," if node else output.name
        if shape[:1] != (1,):
            why = f"its shape for one sample is {list(shape)}, without a batch axis of 1 in front"
            instead = "Keep the batch axis: reshape to [-1, ..] rather than to a vector or scalar"
            problems.append(Problem(place, "graph output", why, instead))
        elif output.client is not None and output.client.axis == 0:
            why, instead = f"its {output.client.op} is over the batch axis", "Give it another axis"
            problems.append(Problem(place, "graph output", why, instead))
    return problems


class _Widening:
    """One graph being widened."""

    def __init__(self, graph: Graph, samples: int) -> None:
        self.single_graph, self.samples = graph, samples
        batched_graph = graph.with_values(
            lambda _, value: replace(value, shape=self._batched_shape(value.shape))
        )
        self.rewriter = Rewriter(batched_graph)

    def graph(self) -> Graph:
        return self.rewriter.walk(self._rewrite)

    def _rewrite(self, node: Node) -> int:
        shapes = [self.single_graph.values[id].shape for id in node.inputs]
        shape = self.single_graph.values[node.output].shape
        widened_operation = self._on_joined_samples(node.operation, shapes, shape)
        try:
            if widened_operation is None:
                return self._on_sample_axis(node, shapes, shape)
            inputs = (self.rewriter.new[id] for id in node.inputs)
            return self.rewriter.add(node, widened_operation, *inputs)
        except ValueError as error:
            problem = Problem(node.name, type(node.operation).__name__, str(error), "Run single")
            raise UnsupportedModel([problem]) from error

    def _on_joined_samples(
        self, operation: Operation, shapes: Sequence[Shape], target: Shape
    ) -> Operation | None:
        """The operation on joined samples; None if it acts along the first axis."""
        match operation:
            case op.Reshape():
                return op.Reshape(self._batched_shape(target))
            case op.Scale(weight=weight):
                return op.Scale(self._repeat(weight))
            case op.AddConstant(bias=bias):
                varies = target and bias.ndim == len(target) and bias.shape[0] > 1
                return op.AddConstant(self._repeat(bias)) if varies else operation
            case op.Broadcast():
                return (
                    op.Broadcast(self._batched_shape(target))
                    if target[:1] == shapes[0][:1]
                    else None
                )
            case op.Transpose(perm=perm):
                return operation if perm[:1] == (0,) else None
            case op.Slice(starts=starts, ends=ends, steps=steps):
                if not starts or (starts[0], ends[0], steps[0]) != (0, *shapes[0][:1], 1):
                    return None
                return op.Slice(starts, (self.samples * ends[0], *ends[1:]), steps)
            case op.Concat(axis=axis) | op.ArgMax(axis=axis):
                return operation if axis else None
            case op.Pad(before=before, after=after):
                return None if any(before[:1] + after[:1]) else operation
            case _:
                return operation

    def _on_sample_axis(self, node: Node, shapes: Sequence[Shape], target: Shape) -> int:
        """The operation with the samples on an axis of their own, in front."""
        operation, samples = node.operation, self.samples
        batched: Operation
        match operation:
            case op.Broadcast():
                shapes = [(1,) * (len(target) - len(shapes[0])) + shapes[0]]
                batched = op.Broadcast((samples, *target))
            case op.Transpose(perm=perm):
                batched = op.Transpose((0, *(axis + 1 for axis in perm)))
            case op.Slice(starts=starts, ends=ends, steps=steps):
                batched = op.Slice((0, *starts), (samples, *ends), (1, *steps))
            case op.Concat(axis=axis) | op.ArgMax(axis=axis):
                batched = replace(operation, axis=axis + 1)
            case op.Pad(before=before, after=after):
                batched = replace(operation, before=(0, *before), after=(0, *after))
            case _:
                raise AssertionError(f"{operation} does not act along the first axis")
        split_inputs = []
        for id, shape in zip(node.inputs, shapes, strict=True):
            reshape, like = op.Reshape((samples, *shape)), self.rewriter.old.values[id]
            new_id = self.rewriter.new[id]
            split_inputs.append(self.rewriter.add_new(node.name, reshape, new_id, like=like))
        like = self.rewriter.old.values[node.output]
        result = self.rewriter.add_new(node.name, batched, *split_inputs, like=like)
        return self.rewriter.add(node, op.Reshape(self._batched_shape(target)), result)

    def _batched_shape(self, shape: Shape) -> Shape:
        """The shape of the samples' values joined; scalars become a vector."""
        return (self.samples * shape[0], *shape[1:]) if shape else (self.samples,)

    def _repeat(self, array: Array) -> Array:
        return np.concatenate([np.atleast_1d(array)] * self.samples)
