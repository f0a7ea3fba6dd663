"""Operations that only move elements: the same on reals and on integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Array, Operation, Shape


def moved(operation: Operation, operands: Sequence[Array], shape: Shape) -> Array:
    """The result of a Reshape, Broadcast, Transpose, Slice, Concat or Pad, of `shape`."""
    x = operands[0]
    match operation:
        case op.Reshape():
            return x.reshape(shape)
        case op.Broadcast():
            return np.broadcast_to(x, shape)
        case op.Transpose(perm=perm):
            return np.ascontiguousarray(x.transpose(perm))
        case op.Slice():
            return x[tuple(map(_slice, operation.starts, operation.ends, operation.steps))]
        case op.Concat(axis=axis):
            return np.concatenate(operands, axis=axis)
        case op.Pad(before=before, after=after, constant=constant):
            pads = list(zip(before, after, strict=True))
            return np.pad(x, pads, constant_values=constant)
        case _:
            raise AssertionError(f"{operation} does arithmetic")


def _slice(start: int, end: int, step: int) -> slice:
    return slice(start, None if end < 0 else end, step)
