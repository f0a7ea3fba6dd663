"""Smooth functions of single elements, on integers as the file format defines them.

An integer `x` at scale `s` stands for `x / 2^s`. Steps are rounded one by one to float64 and kept
to magnitudes of `2^500`, so that none is infinite. The value times `2^t`, for the output's scale
`t`, is rounded to a whole number (halves to even) and kept within the ring.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, Self

import numpy as np

from privet.compiler.graph.function import SMOOTH, Function, apply
from privet.compiler.graph.operations import elementary
from privet.compiler.graph.operations.elementary import Reals
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

MOST = math.ldexp(1.0, 500)
"""The largest magnitude of a step's result."""
FLOAT_ERROR = 1e-14
"""Bound on the relative error of a step of a smooth function, or on the absolute one below 1."""

PRIMITIVES: dict[str, Callable[[Reals], Reals]] = {
    name: getattr(elementary, name) for name in SMOOTH
}
"""The functions of `SMOOTH`, alike on every machine."""


@dataclass(frozen=True)
class Elementwise(Operation):
    """A smooth function of each element on its own, in small steps.

    The passes `fit_polynomials` and `tabulate_functions` replace it, but for suite `stream`, where
    a party computes it in the clear.

    `nonnegative` says that no argument is negative, by how it is made.
    """

    function: Function
    nonnegative: bool = False

    name: ClassVar[str] = "function"
    reads_ring: ClassVar[bool] = True

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        return self.function(operands[0])

    def fixed(self, operands: Sequence[Array], context: Context) -> Array:
        return function_values(operands[0], self.function, *context.scales, context.ring_bits)

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        """Interval arithmetic in floats, each step widened by what rounding may do."""
        (x,), (input_scale, output_scale) = operands, context.scales
        results = [
            _widen(*(np.ldexp(end.astype(np.float64), -input_scale) for end in (x.low, x.high)))
        ]
        for step in self.function.steps:
            bounds = [results[index] for index in step.operands]
            match step.name:
                case "reciprocal" if (bounds[0][0] <= 0.0).any() and (bounds[0][1] >= 0.0).any():
                    largest = np.full_like(bounds[0][0], MOST)
                    results.append((-largest, largest))
                    continue
                case "sin" | "cos":
                    one = np.ones_like(bounds[0][0])
                    results.append(_widen(-one, one))
                    continue
                case "mul":
                    pairs = list(product(bounds[0], bounds[1]))
                case "sub":
                    pairs = [(bounds[0][0], bounds[1][1]), (bounds[0][1], bounds[1][0])]
                case _:  # rises or falls in all operands at once
                    pairs = list(zip(*bounds, strict=True))
            corners = [apply(step, list(pair), PRIMITIVES) for pair in pairs]
            low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
            if step.name == "mul" and step.operands[0] == step.operands[1]:
                low = np.maximum(low, 0.0)
            results.append(_widen(np.clip(low, -MOST, MOST), np.clip(high, -MOST, MOST)))
        limit = float(1 << (min(context.ring_bits, 60) - 1))
        low, high = (np.clip(np.ldexp(end, output_scale), -limit, limit) for end in results[-1])
        return Interval(np.floor(low).astype(np.int64), np.ceil(high).astype(np.int64))

    def form(self, prefix: str) -> tuple[Attributes, Tensors]:
        return {"steps": encode_steps(self.function)}, {}

    @classmethod
    def read(cls, attributes: Attributes, shape: Shape, tensors: Mapping[str, Array]) -> Self:
        return cls(decode_steps(attributes.pop("steps")))


def function_values(
    x: Array, function: Function, input_scale: int, output_scale: int, ring_bits: int
) -> Array:
    """The values at int64 `x` of scale `input_scale`, at scale `output_scale` in a ring of so many
    bits."""
    return round_to_ring(np.ldexp(real_values(x, function, input_scale), output_scale), ring_bits)


def real_values(x: Array, function: Function, input_scale: int) -> Reals:
    """The values at int64 `x` of scale `input_scale`, before they are rounded."""
    results: list[Reals] = [np.ldexp(x.astype(np.float64), -input_scale)]
    for step in function.steps:
        result = apply(step, [results[index] for index in step.operands], PRIMITIVES)
        results.append(np.clip(result, -MOST, MOST))
    return results[-1]


def round_to_ring(reals: Reals, ring_bits: int) -> Array:
    """The nearest integers of a ring of so many bits; none beyond `2^62`."""
    limit = 1 << (min(ring_bits, 63) - 1)
    integers = np.clip(np.rint(reals), -float(limit), float(limit))
    # The float next to 2^62 in an int64 is above the ring.
    return np.minimum(integers.astype(np.int64), limit - 1)


def _widen(low: Array, high: Array) -> tuple[Array, Array]:
    return (
        low - FLOAT_ERROR * np.maximum(np.abs(low), 1.0),
        high + FLOAT_ERROR * np.maximum(np.abs(high), 1.0),
    )
