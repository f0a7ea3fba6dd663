"""Functions of single elements by lines on integers, as the file format defines them.

What an integer is above `low`, kept between 0 and `2^bits - 1`, is `i 2^f + d` with `f = bits -
index_bits`; the value is `slopes[i] d + offsets[i]`, and what is above the table, times `2^f`, if
the function rises there. Line `i` has the slope of the chord over its arguments, rounded, and
goes through the middle between chord and function half-way along. So a convex function is as far
above its line there as it is below at the ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from privet.compiler.graph.function import Function
from privet.compiler.graph.operations.elementwise import real_values, whole
from privet.compiler.graph.operations.interval import Interval
from privet.compiler.graph.operations.operation import (
    Array,
    Attributes,
    Context,
    Operation,
    Shape,
    Tensors,
)
from privet.compiler.graph.operations.steps import decode_steps, encode_steps

INDEX_BITS = range(6, 13)
"""Binary logarithms of the number of lines that a function may have."""
POINTS = 257
"""Points at which a function is looked at outside of its tables."""
ERROR = 2.0**-10
"""Of the function's largest value: what counts as no error outside, as lines may be so far off."""


@dataclass(frozen=True)
class Piecewise(Operation):
    """A smooth function of each element by `2^index_bits` lines.

    Lines are over arguments from `low` to `low + 2^bits - 1`, integers at their scale. Below, the
    value is that of `low`; above, that of the last one, or if the function `rises`, it goes on like
    its argument. `nonnegative` says that no argument is below `low`, by how it is made. Slopes have
    as many fractional bits as a line has arguments. Only integer graphs have it.
    """

    function: Function
    low: int
    bits: int
    index_bits: int
    rises: bool = False
    nonnegative: bool = False

    name: ClassVar[str] = "piecewise"
    makes_ring: ClassVar[bool] = True

    @property
    def step_bits(self) -> int:
        """The binary logarithm of the number of a line's arguments."""
        return self.bits - self.index_bits

    def fixed(self, operands: Sequence[Array], at: Context) -> Array:
        if self.nonnegative and int(operands[0].min(initial=self.low)) < self.low:
            # Suites look at no sign there.
            raise OverflowError("an argument below all that a function is of")
        return piecewise_values(operands[0], self, *at.scales, at.ring_bits)

    def interval(self, operands: Sequence[Interval], at: Context) -> Interval | None:
        (x,) = operands
        slopes, offsets = lines(self, *at.scales, at.ring_bits)
        last_distance = (1 << self.step_bits) - 1
        ends_of_lines = np.concatenate([offsets, slopes * last_distance + offsets])
        top = self.low + (1 << self.bits) - 1
        excess = np.maximum(x.high - top, 0) << self.step_bits if self.rises else 0
        return Interval(
            np.full_like(x.low, ends_of_lines.min()),
            np.full_like(x.high, ends_of_lines.max()) + excess,
        )

    def form(self, prefix: str) -> tuple[Attributes, Tensors]:
        table = {"low": self.low, "bits": self.bits, "index_bits": self.index_bits}
        choices = {"rises": self.rises, "nonnegative": self.nonnegative}
        flags = {name: True for name, choice in choices.items() if choice}
        return {"steps": encode_steps(self.function), **table, **flags}, {}

    @classmethod
    def read(cls, given: Attributes, shape: Shape, tensors: Mapping[str, Array]) -> Self:
        function = decode_steps(given.pop("steps"))
        low, bits, index_bits = (given.pop(name) for name in ("low", "bits", "index_bits"))
        if any(type(number) is not int for number in (low, bits, index_bits)):
            raise TypeError("the table of a function of lines is no integers")
        if index_bits not in INDEX_BITS or not index_bits < bits <= 62 or abs(low) >= 1 << 50:
            raise ValueError(f"a table of 2^{index_bits} lines over {bits} bits from {low} on")
        choices = [given.pop(name, False) for name in ("rises", "nonnegative")]
        if any(type(choice) is not bool for choice in choices):
            raise TypeError("how a function goes on beyond its table is no boolean")
        return cls(function, low, bits, index_bits, *choices)


def leaves_tables(tables: Sequence[Piecewise], low: int, high: int, at: Context) -> set[Piecewise]:
    """Of all tables that read one value, those of functions that arguments from `low` to `high` may
    leave where the function goes on otherwise than the tables do.

    Tables that follow one another are one function's.
    """
    reached: set[Piecewise] = set()
    left = sorted(tables, key=lambda table: (table.low, len(table.function.steps)))
    while left:
        chain = [left.pop(0)]
        steps = chain[0].function.steps
        for table in list(left):
            follows = table.low == chain[-1].low + (1 << chain[-1].bits)
            if follows and table.function.steps[: len(steps)] == steps:
                chain.append(table)
                left.remove(table)
        if not _goes_on(chain, low, high, at):
            reached.update(chain)
    return reached


def _goes_on(chain: Sequence[Piecewise], low: int, high: int, at: Context) -> bool:
    """Whether the function is constant, or rises, outside of its tables, up to their own error."""
    first, last, (before, after) = chain[0], chain[-1], at.scales
    inside = np.linspace(first.low, last.low + (1 << last.bits), POINTS).astype(np.int64)
    values = real_values(inside, first.function, before)
    tolerance = max(2.0 * 2.0**-after, ERROR * float(np.abs(values).max()))
    end = last.low + (1 << last.bits) - 1
    if low < first.low and not first.nonnegative:
        below = first.low - np.geomspace(1, first.low - low, POINTS).astype(np.int64)
        error = real_values(below, first.function, before) - values[0]
        if not bool(np.abs(error).max() <= tolerance):
            return False
    if high > end:
        above = end + np.geomspace(1, high - end, POINTS).astype(np.int64)
        error = real_values(above, first.function, before) - values[-1]
        if last.rises:
            error -= np.ldexp((above - end).astype(np.float64), -before)
        return bool(np.abs(error).max() <= tolerance)
    return True


def piecewise_values(x: Array, operation: Piecewise, before: int, after: int, ring: int) -> Array:
    """The values at int64 `x` of scale `before`, at scale `after` in a ring of so many bits."""
    slopes, offsets = lines(operation, before, after, ring)
    raised = np.maximum(x - operation.low, 0)
    position = np.minimum(raised, (1 << operation.bits) - 1)
    index, distance = position >> operation.step_bits, position & ((1 << operation.step_bits) - 1)
    excess = (raised - position) << operation.step_bits if operation.rises else 0
    return np.asarray(slopes[index] * distance + offsets[index] + excess)


def lines(operation: Piecewise, before: int, after: int, ring: int) -> tuple[Array, Array]:
    """Slopes and offsets of all lines; nothing but the program decides them."""
    step = 1 << operation.step_bits
    starts = operation.low + step * np.arange(1 << operation.index_bits, dtype=np.int64)
    first, middle, last = (
        real_values(starts + at, operation.function, before) for at in (0, step // 2, step)
    )
    slopes = whole(np.ldexp(last - first, after) / float(step), ring)
    chord = (first + last) * 0.5
    height = np.ldexp(chord + (middle - chord) * 0.5, after)
    return slopes, whole(height - slopes.astype(np.float64) * float(step // 2), ring)
