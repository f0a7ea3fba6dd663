"""What changes the scale of integers, and nothing on the reals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privet.compiler.graph.operations.interval import BEYOND, Interval
from privet.compiler.graph.operations.operation import (
    TRUNCATION_ERROR,
    Array,
    Attributes,
    Context,
    Operation,
    Shape,
    Tensors,
)


@dataclass(frozen=True)
class ShiftLeft(Operation):
    """Times `2^bits` on the integers, which raises the scale; nothing on the reals."""

    bits: int

    name: ClassVar[str] = "shift_left"
    reads_ring: ClassVar[bool] = True

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        return operands[0]

    def fixed(self, operands: Sequence[Array], context: Context) -> Array:
        (x,) = operands
        if int(np.abs(x).max()) << self.bits >= 1 << 63:
            raise OverflowError("a shift beyond 63 bits")
        return x << self.bits

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        (x,) = operands
        if x.largest << self.bits >= BEYOND:
            return None
        return Interval(x.low << self.bits, x.high << self.bits)


@dataclass(frozen=True)
class Truncate(Operation):
    """`floor(x / 2^bits)` on the integers, which lowers the scale; nothing on the reals.

    Suites on shares go on in a ring of `width` bits, if that is given.
    """

    bits: int
    width: int | None = None

    name: ClassVar[str] = "truncate"

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        return operands[0]

    def fixed(self, operands: Sequence[Array], context: Context) -> Array:
        return context.arithmetic.truncate(operands[0], self.bits)

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        (x,) = operands
        return Interval(x.low >> self.bits, x.high >> self.bits).wider(TRUNCATION_ERROR)

    def form(self, prefix: str) -> tuple[Attributes, Tensors]:
        return {"bits": self.bits} | ({} if self.width is None else {"width": self.width}), {}
