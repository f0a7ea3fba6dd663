"""The output shape of every operation, within the limits of a program."""

from __future__ import annotations

import math
from collections.abc import Sequence

from privet.compiler.graph.operations import Operation, Shape

MAX_RANK = 8
MAX_ELEMENTS = 1 << 28
MAX_SAMPLE = 1 << 25
"""Most elements of a tensor of one sample: far above any layer, and soon computed."""


def infer_shape(operation: Operation, inputs: Sequence[Shape]) -> Shape:
    """Shape of `operation` on inputs of these shapes; `ValueError` where they do not fit."""
    shape = operation.result_shape(inputs)
    if len(shape) > MAX_RANK:
        raise ValueError(f"{len(shape)} axes, more than {MAX_RANK}")
    if any(dim < 1 for dim in shape):
        raise ValueError(f"shape {list(shape)} is empty")
    if math.prod(shape) > MAX_ELEMENTS:
        raise ValueError(f"shape {list(shape)} has more than {MAX_ELEMENTS} elements")
    return shape
