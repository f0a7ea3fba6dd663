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
        producer = producers.get(node.inputs[0])
        if producer is not None and isinstance(producer.operation, op.Reshape):
            producer = producers.get(producer.inputs[0])
        if producer is None or not isinstance(producer.operation, op.AddConstant):
            continue
        magnitude = graph.values[producer.inputs[0]].magnitude or 0.0
        if (producer.operation.bias == -op.MASKED).any() and 2.0 * magnitude + NOTHING > op.MASKED:
            max_magnitude = (op.MASKED - NOTHING) / 2.0
            why = (
                f"what it masks reaches {magnitude:.4g}, and at most {max_magnitude:g} is possible"
            )
            instead = "Give calibration inputs, or scale the scores as attention does"
            problems.append(Problem(node.name, "Softmax", why, instead))
    if problems:
        raise UnsupportedModel(problems)
    return graph


_MOVES = (op.Broadcast, op.Concat, op.Negate, op.Reshape, op.Slice, op.Transpose)


def has_private_masks(graph: Graph) -> bool:
    """Whether there is a product with `BLOCKED`, as `bound_masks` makes it."""
    return any(_is_mask_product(node.operation) for node in graph.nodes)


def masks_hold(graph: Graph, extremes: Mapping[int, tuple[float, float]], margin: float) -> bool:
    """Whether in an imported graph such products are masks, and lower elements far enough.

    `extremes` are the smallest and the largest number of each value.
    """
    magnitudes = {id: margin * max(-low, high, 0.0) for id, (low, high) in extremes.items()}
    masked_values: dict[int, _MaskedValue] = {}
    for node in graph.nodes:
        operation, inputs = node.operation, [masked_values.get(id) for id in node.inputs]
        if _is_mask_product(operation):
            low, high = extremes[node.inputs[0]]
            if not -1.0 <= low <= high <= 1.0:
                return False
            masked_values[node.output] = _MaskedValue(0.0, is_mask=True)
        elif any(inputs):
            operands = [
                operand or _MaskedValue(magnitudes[id])
                for operand, id in zip(inputs, node.inputs, strict=True)
            ]
            if isinstance(operation, op.MaxPool2d):
                if operands[0].is_mask or 2.0 * operands[0].reach + NOTHING > op.BLOCKED:
                    return False
            elif (masked_result := _propagate(operation, operands)) is not None:
                masked_values[node.output] = masked_result
            elif not isinstance(operation, op.Elementwise):
                return False
    return True


@dataclass(frozen=True)
class _MaskedValue:
    """A value, some elements of which are lowered: how far it reaches without that; a mask alone
    is nothing else."""

    reach: float
    is_mask: bool = False


def _propagate(operation: Operation, operands: Sequence[_MaskedValue]) -> _MaskedValue | None:
    """What comes of lowered values, if they stay such."""
    magnitudes, is_mask = (
        [operand.reach for operand in operands],
        all(operand.is_mask for operand in operands),
    )
    if isinstance(operation, op.Add | op.Sub):
        return _MaskedValue(sum(magnitudes), is_mask)
    if isinstance(operation, op.AddConstant):
        return _MaskedValue(magnitudes[0] + float(np.abs(operation.bias).max()), is_mask)
    return _MaskedValue(max(magnitudes), is_mask) if isinstance(operation, _MOVES) else None


def _is_mask_product(operation: Operation) -> bool:
    if isinstance(operation, op.Scale):
        factors = operation.weight
    elif isinstance(operation, op.ChannelAffine) and operation.offset is None:
        factors = operation.factor
    else:
        return False
    return operation.uniform and bool((np.abs(factors) == op.BLOCKED).all())
