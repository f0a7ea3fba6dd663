"""Sums, differences and products of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privet.compiler.graph.operations.exact import exact_matmul, exact_product
from privet.compiler.graph.operations.interval import BEYOND, Interval
from privet.compiler.graph.operations.operation import Alike, Array, Context, Operation, Shape, same


class Pairwise(Operation):
    """Combines two values of equal shape, element by element."""

    arity: ClassVar[int | None] = 2

    def result_shape(self, inputs: Sequence[Shape]) -> Shape:
        return same(inputs[0], inputs[1])


@dataclass(frozen=True)
class Add(Alike, Pairwise):
    """Sum of two values of equal shape."""

    name: ClassVar[str] = "add"

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        return operands[0] + operands[1]

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        x, y = operands
        return Interval(x.low + y.low, x.high + y.high)


@dataclass(frozen=True)
class Sub(Alike, Pairwise):
    """Difference of two values of equal shape."""

    name: ClassVar[str] = "sub"

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        return operands[0] - operands[1]

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        x, y = operands
        return Interval(x.low - y.high, x.high - y.low)


@dataclass(frozen=True)
class Negate(Alike):
    """`-x`."""

    name: ClassVar[str] = "negate"

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        return -operands[0]

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        return Interval(-operands[0].high, -operands[0].low)


@dataclass(frozen=True)
class Mul(Pairwise):
    """Product of two values of equal shape, element by element."""

    name: ClassVar[str] = "mul"
    reads_ring: ClassVar[bool] = True

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        return np.asarray(operands[0] * operands[1])

    def fixed(self, operands: Sequence[Array], context: Context) -> Array:
        return exact_product(operands[0], operands[1])

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        x, y = operands
        if x.largest * y.largest >= BEYOND:
            return None
        product = Interval.between(x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high)
        return Interval(np.maximum(product.low, 0), product.high) if context.repeats else product


@dataclass(frozen=True)
class MatMul(Operation):
    """`[B, M, K] x [B, K, N] -> [B, M, N]`, of two values."""

    name: ClassVar[str] = "matmul"
    arity: ClassVar[int | None] = 2
    reads_ring: ClassVar[bool] = True

    def result_shape(self, inputs: Sequence[Shape]) -> Shape:
        a, b = inputs
        if len(a) != 3 or len(b) != 3 or a[0] != b[0] or a[2] != b[1]:
            raise ValueError(f"{list(a)} times {list(b)}")
        return (a[0], a[1], b[2])

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        return np.asarray(np.matmul(operands[0], operands[1]))

    def fixed(self, operands: Sequence[Array], context: Context) -> Array:
        return exact_matmul(operands[0], operands[1])

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        """By centres and radii: `|xy - cd| <= |c| s + r |d| + r s` for `x = c +- r`, `y = d +- s`.

        Everything is doubled, so that centres are whole.
        """
        x, y = operands
        if 4 * x.largest * y.largest * context.input_shapes[0][2] >= BEYOND:
            return None
        (c, r), (d, s) = (
            (np.broadcast_to(e.high + e.low, shape), np.broadcast_to(e.high - e.low, shape))
            for e, shape in zip(operands, context.input_shapes, strict=True)
        )
        centre = exact_matmul(c, d)
        radius = exact_matmul(np.abs(c) + r, s) + exact_matmul(r, np.abs(d))
        return Interval((centre - radius) >> 2, -((-centre - radius) >> 2)).compact()
