"""Operations that compare: with zero, or elements of an axis with one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privet.compiler.graph.operations.arithmetic import Pairwise
from privet.compiler.graph.operations.interval import Interval
from privet.compiler.graph.operations.operation import Alike, Array, Context, Operation, Shape


@dataclass(frozen=True)
class Relu(Operation):
    """`max(x, 0)`."""

    name: ClassVar[str] = "relu"
    compares: ClassVar[bool] = True

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        return np.asarray(np.maximum(operands[0], 0))

    def fixed(self, operands: Sequence[Array], context: Context) -> Array:
        return context.arithmetic.relu(operands[0])

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        (x,) = operands
        return Interval(np.maximum(x.low, 0), np.maximum(x.high, 0))


@dataclass(frozen=True)
class Select(Alike, Pairwise):
    """`y` where `x >= 0`, else 0; the operands are `x` and `y`."""

    name: ClassVar[str] = "select"
    compares: ClassVar[bool] = True
    decides: ClassVar[bool] = True

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        x, y = operands
        return np.where(x >= 0, y, np.zeros_like(y))

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        y = operands[1]
        return Interval(np.minimum(y.low, 0), np.maximum(y.high, 0))


@dataclass(frozen=True)
class Saturate(Operation):
    """`x` kept between `low` and `high`, as a quantised form with such steps keeps it.

    Exists only until the pass `keep_saturations` has run.
    """

    low: float
    high: float
    step: float

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        return np.asarray(np.clip(operands[0], self.low, self.high))


@dataclass(frozen=True)
class Step(Alike):
    """1 where `x >= 0`, else 0; on integers `x` is a signed number of `bits` bits.

    The pass `move_truncation` sets `bits`.
    """

    bits: int

    name: ClassVar[str] = "step"
    compares: ClassVar[bool] = True
    decides: ClassVar[bool] = True
    makes_ring: ClassVar[bool] = True

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        return (operands[0] >= 0).astype(operands[0].dtype)

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        return Interval.of(0, 1, len(context.shape))


@dataclass(frozen=True)
class ArgMax(Alike):
    """Index of the largest element along `axis`; the first or, on request, the last of equals."""

    axis: int
    keepdims: bool
    select_last: bool

    name: ClassVar[str] = "argmax"
    compares: ClassVar[bool] = True
    makes_ring: ClassVar[bool] = True

    def result_shape(self, inputs: Sequence[Shape]) -> Shape:
        (x,) = inputs
        return x[: self.axis] + ((1,) if self.keepdims else ()) + x[self.axis + 1 :]

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        (x,) = operands
        if self.select_last:
            place = x.shape[self.axis] - 1 - np.flip(x, self.axis).argmax(self.axis)
        else:
            place = x.argmax(self.axis)
        place = np.expand_dims(place, self.axis) if self.keepdims else place
        return np.asarray(place, dtype=x.dtype)

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        return self.interval_of_any(context)

    def interval_of_any(self, context: Context) -> Interval | None:
        return Interval.of(0, context.input_shapes[0][self.axis] - 1, len(context.shape))
