"""Finds masks that do not lower elements so far that a softmax or a maximum leaves them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from privet.compiler.graph import Graph
from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Operation
from privet.errors import Problem, UnsupportedModel

NOTHING = 16.0
"""The exponential function of less than minus this is 0 at every scale."""


def check_masks(graph: Graph) -> Graph:
    """The graph itself; values need magnitudes. Raises `UnsupportedModel` with every mask in front
    of which values are too large."""
    producers = graph.producers()
    problems = []
    for node in graph.nodes:
        if not isinstance(node.operation, op.MaxPool2d):
            continue
        before = producers.get(node.inputs[0])
        if before is not None and isinstance(before.operation, op.Reshape):
            before = producers.get(before.inputs[0])
        if before is None or not isinstance(before.operation, op.AddConstant):
            continue
        reach = graph.values[before.inputs[0]].magnitude or 0.0
        if (before.operation.bias == -op.MASKED).any() and 2.0 * reach + NOTHING > op.MASKED:
            most = (op.MASKED - NOTHING) / 2.0
            why = f"what it masks reaches {reach:.4g}, and at most {most:g} is possible"
            instead = "Give calibration inputs, or scale the scores as attention does"
            problems.append(Problem(node.name, "Softmax", why, instead))
    if problems:
        raise UnsupportedModel(problems)
    return graph


_MOVES = (op.Broadcast, op.Concat, op.Negate, op.Reshape, op.Slice, op.Transpose)


def has_private_masks(graph: Graph) -> bool:
    """Whether there is a product with `BLOCKED`, as `bound_masks` makes it."""
    return any(_blocks(node.operation) for node in graph.nodes)


def masks_hold(graph: Graph, ends: Mapping[int, tuple[float, float]], margin: float) -> bool:
    """Whether in an imported graph such products are masks, and lower elements far enough.

    `ends` are the smallest and the largest number of each value.
    """
    reach = {id: margin * max(-low, high, 0.0) for id, (low, high) in ends.items()}
    lowered: dict[int, _Lowered] = {}
    for node in graph.nodes:
        operation, inputs = node.operation, [lowered.get(id) for id in node.inputs]
        if _blocks(operation):
            low, high = ends[node.inputs[0]]
            if not -1.0 <= low <= high <= 1.0:
                return False
            lowered[node.output] = _Lowered(0.0, is_mask=True)
        elif any(inputs):
            reaches = [
                operand or _Lowered(reach[id])
                for operand, id in zip(inputs, node.inputs, strict=True)
            ]
            if isinstance(operation, op.MaxPool2d):
                if reaches[0].is_mask or 2.0 * reaches[0].reach + NOTHING > op.BLOCKED:
                    return False
            elif (passed := _passed(operation, reaches)) is not None:
                lowered[node.output] = passed
            elif not isinstance(operation, op.Elementwise):
                return False
    return True


@dataclass(frozen=True)
class _Lowered:
    """A value, some elements of which are lowered: how far it reaches without that; a mask alone
    is nothing else."""

    reach: float
    is_mask: bool = False


def _passed(operation: Operation, operands: Sequence[_Lowered]) -> _Lowered | None:
    """What comes of lowered values, if they stay such."""
    reaches, is_mask = (
        [operand.reach for operand in operands],
        all(operand.is_mask for operand in operands),
    )
    if isinstance(operation, op.Add | op.Sub):
        return _Lowered(sum(reaches), is_mask)
    if isinstance(operation, op.AddConstant):
        return _Lowered(reaches[0] + float(np.abs(operation.bias).max()), is_mask)
    return _Lowered(max(reaches), is_mask) if isinstance(operation, _MOVES) else None


def _blocks(operation: Operation) -> bool:
    if isinstance(operation, op.Scale):
        factors = operation.weight
    elif isinstance(operation, op.ChannelAffine) and operation.offset is None:
        factors = operation.factor
    else:
        return False
    return operation.uniform and bool((np.abs(factors) == op.BLOCKED).all())
