"""Operations that only move elements: the same on reals and on integers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from privet.compiler.graph.operations.interval import Interval
from privet.compiler.graph.operations.operation import (
    Alike,
    Array,
    Attributes,
    Context,
    Shape,
    Tensors,
    broadcast,
)


class Movement(Alike):
    """Moves elements, whatever they are."""

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        pairs = list(zip(operands, context.input_shapes, strict=True))
        lows = [np.broadcast_to(interval.low, shape) for interval, shape in pairs]
        highs = [np.broadcast_to(interval.high, shape) for interval, shape in pairs]
        return Interval(self.real(lows, context.shape), self.real(highs, context.shape)).compact()


@dataclass(frozen=True)
class Shaped(Movement):
    """Brings elements to `shape`, which a program states with the result alone."""

    shape: Shape

    def form(self, prefix: str) -> tuple[Attributes, Tensors]:
        return {}, {}

    @classmethod
    def read(cls, attributes: Attributes, shape: Shape, tensors: Mapping[str, Array]) -> Self:
        return cls(shape)


@dataclass(frozen=True)
class Reshape(Shaped):
    """The same elements, row-major, in another shape."""

    name: ClassVar[str] = "reshape"

    def result_shape(self, inputs: Sequence[Shape]) -> Shape:
        if math.prod(self.shape) != math.prod(inputs[0]):
            raise ValueError(f"{list(inputs[0])} cannot become {list(self.shape)}")
        return self.shape

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        return operands[0].reshape(shape)


@dataclass(frozen=True)
class Broadcast(Shaped):
    """Numpy broadcasting to `shape`."""

    name: ClassVar[str] = "broadcast"

    def result_shape(self, inputs: Sequence[Shape]) -> Shape:
        return broadcast(inputs[0], self.shape)

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        return np.broadcast_to(operands[0], shape)


@dataclass(frozen=True)
class Transpose(Movement):
    """Axis `i` of the output is axis `perm[i]` of the input."""

    perm: tuple[int, ...]

    name: ClassVar[str] = "transpose"

    def result_shape(self, inputs: Sequence[Shape]) -> Shape:
        (x,) = inputs
        if sorted(self.perm) != list(range(len(x))):
            raise ValueError(f"{list(self.perm)} is no permutation of {len(x)} axes")
        return tuple(x[axis] for axis in self.perm)

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        return np.ascontiguousarray(operands[0].transpose(self.perm))


@dataclass(frozen=True)
class Slice(Movement):
    """Elements `start, start + step, ..` before `end` on every axis.

    Starts lie inside the axis; with a negative step, an end of -1 means down to the first element.
    """

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    steps: tuple[int, ...]

    name: ClassVar[str] = "slice"

    def result_shape(self, inputs: Sequence[Shape]) -> Shape:
        slices = zip(self.starts, self.ends, self.steps, strict=True)
        return tuple(len(range(*bounds)) for bounds in slices)

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        return operands[0][tuple(map(_slice, self.starts, self.ends, self.steps))]


@dataclass(frozen=True)
class Concat(Movement):
    """Inputs joined along `axis`."""

    axis: int

    name: ClassVar[str] = "concat"
    arity: ClassVar[int | None] = None

    def result_shape(self, inputs: Sequence[Shape]) -> Shape:
        first, axis = inputs[0], self.axis
        for other in inputs[1:]:
            if other[:axis] + other[axis + 1 :] != first[:axis] + first[axis + 1 :]:
                raise ValueError(f"{list(other)} cannot be joined to {list(first)} on axis {axis}")
        return (*first[:axis], sum(shape[axis] for shape in inputs), *first[axis + 1 :])

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        return np.concatenate(operands, axis=self.axis)


@dataclass(frozen=True)
class Pad(Movement):
    """`before` and `after` elements of `constant` around each axis."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    constant: float

    name: ClassVar[str] = "pad"

    def result_shape(self, inputs: Sequence[Shape]) -> Shape:
        sizes = zip(inputs[0], self.before, self.after, strict=True)
        return tuple(d + b + a for d, b, a in sizes)

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        pads = list(zip(self.before, self.after, strict=True))
        return np.pad(operands[0], pads, constant_values=self.constant)


def _slice(start: int, end: int, step: int) -> slice:
    return slice(start, None if end < 0 else end, step)
