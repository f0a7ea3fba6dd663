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
from privet.compiler.graph.operations.elementwise import real_values, round_to_ring
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

    def fixed(self, operands: Sequence[Array], context: Context) -> Array:
        if self.nonnegative and int(operands[0].min(initial=self.low)) < self.low:
            # Suites look at no sign there.
            raise OverflowError("an argument below all that a function is of")
        return piecewise_values(operands[0], self, *context.scales, context.ring_bits)

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        (x,) = operands
        slopes, offsets = lines(self, *context.scales, context.ring_bits)
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
    def read(cls, attributes: Attributes, shape: Shape, tensors: Mapping[str, Array]) -> Self:
        function = decode_steps(attributes.pop("steps"))
        low, bits, index_bits = (attributes.pop(name) for name in ("low", "bits", "index_bits"))
        if any(type(field) is not int for field in (low, bits, index_bits)):
            raise TypeError("the table of a function of lines is no integers")
        if index_bits not in INDEX_BITS or not index_bits < bits <= 62 or abs(low) >= 1 << 50:
            raise ValueError(f"a table of 2^{index_bits} lines over {bits} bits from {low} on")
        choices = [attributes.pop(name, False) for name in ("rises", "nonnegative")]
        if any(type(choice) is not bool for choice in choices):
            raise TypeError("how a function goes on beyond its table is no boolean")
        return cls(function, low, bits, index_bits, *choices)


def leaves_tables(
    tables: Sequence[Piecewise], low: int, high: int, context: Context
) -> set[Piecewise]:
    """Of all tables that read one value, those of functions that arguments from `low` to `high` may
    leave where the function goes on otherwise than the tables do.

    Tables that follow one another are one function's.
    """
    left_tables: set[Piecewise] = set()
    remaining = sorted(tables, key=lambda table: (table.low, len(table.function.steps)))
    while remaining:
        chain = [remaining.pop(0)]
        steps = chain[0].function.steps
        for table in list(remaining):
            follows = table.low == chain[-1].low + (1 << chain[-1].bits)
            if follows and table.function.steps[: len(steps)] == steps:
                chain.append(table)
                remaining.remove(table)
        if not _continues(chain, low, high, context):
            left_tables.update(chain)
    return left_tables


def _continues(chain: Sequence[Piecewise], low: int, high: int, context: Context) -> bool:
    """Whether the function is constant, or rises, outside of its tables, up to their own error."""
    first, last, (input_scale, output_scale) = chain[0], chain[-1], context.scales
    points = np.linspace(first.low, last.low + (1 << last.bits), POINTS).astype(np.int64)
    values = real_values(points, first.function, input_scale)
    tolerance = max(2.0 * 2.0**-output_scale, ERROR * float(np.abs(values).max()))
    end = last.low + (1 << last.bits) - 1
    if low < first.low and not first.nonnegative:
        points_below = first.low - np.geomspace(1, first.low - low, POINTS).astype(np.int64)
        error = real_values(points_below, first.function, input_scale) - values[0]
        if not bool(np.abs(error).max() <= tolerance):
            return False
    if high > end:
        points_above = end + np.geomspace(1, high - end, POINTS).astype(np.int64)
        error = real_values(points_above, first.function, input_scale) - values[-1]
        if last.rises:
            error -= np.ldexp((points_above - end).astype(np.float64), -input_scale)
        return bool(np.abs(error).max() <= tolerance)
    return True


def piecewise_values(
    x: Array, operation: Piecewise, input_scale: int, output_scale: int, ring_bits: int
) -> Array:
    """The values at int64 `x` of scale `input_scale`, at scale `output_scale` in a ring of so many
    bits."""
    slopes, offsets = lines(operation, input_scale, output_scale, ring_bits)
    offset = np.maximum(x - operation.low, 0)
    position = np.minimum(offset, (1 << operation.bits) - 1)
    index, distance = position >> operation.step_bits, position & ((1 << operation.step_bits) - 1)
    excess = (offset - position) << operation.step_bits if operation.rises else 0
    return np.asarray(slopes[index] * distance + offsets[index] + excess)


def lines(
    operation: Piecewise, input_scale: int, output_scale: int, ring_bits: int
) -> tuple[Array, Array]:
    """Slopes and offsets of all lines; nothing but the program decides them."""
    step = 1 << operation.step_bits
    starts = operation.low + step * np.arange(1 << operation.index_bits, dtype=np.int64)
    first, middle, last = (
        real_values(starts + offset, operation.function, input_scale)
        for offset in (0, step // 2, step)
    )
    slopes = round_to_ring(np.ldexp(last - first, output_scale) / float(step), ring_bits)
    chord = (first + last) * 0.5
    height = np.ldexp(chord + (middle - chord) * 0.5, output_scale)
    return slopes, round_to_ring(height - slopes.astype(np.float64) * float(step // 2), ring_bits)
