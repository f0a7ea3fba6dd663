"""Polynomials in Chebyshev's basis, on integers as the file format defines them.

With p = `COEFFICIENT_BITS`, divisions and shifts rounding down:

    t = x * 2^p // bound
    b_k = c_k + (2 t b_(k+1) >> p) - b_(k+2),  from the highest k down to 1
    y = c_0 + (t b_1 >> p) - b_2

and y is brought from p fractional bits to the output's scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.polynomial.chebyshev import chebval

from privet.compiler.graph.operations.interval import Interval
from privet.compiler.graph.operations.operation import (
    Array,
    Attributes,
    Context,
    Operation,
    Shape,
    Tensors,
    tensor,
)

COEFFICIENT_BITS = 24
"""Fractional bits of a polynomial's coefficients and of its argument, on integers."""


@dataclass(frozen=True, eq=False)
class Polynomial(Operation):
    """`sum_k coefficients[k] T_k(x / bound)` of each element, with Chebyshev's T_k.

    Meant for `|x| <= bound`. On integers, coefficients and `x / bound` have `COEFFICIENT_BITS`
    fractional bits, and `bound` the scale of x.
    """

    coefficients: Array
    bound: float

    name: ClassVar[str] = "polynomial"
    reads_ring: ClassVar[bool] = True

    @property
    def degree(self) -> int:
        """The degree: one less than there are coefficients."""
        return len(self.coefficients) - 1

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        (x,) = operands
        return np.asarray(chebval(x / self.bound, self.coefficients)).astype(x.dtype)

    def fixed(self, operands: Sequence[Array], context: Context) -> Array:
        (x,), (_, scale) = operands, context.scales
        bits, bound = COEFFICIENT_BITS, int(self.bound)
        t = _shift_left(x, bits) // bound
        newer = np.full_like(t, int(self.coefficients[-1]))
        older = np.zeros_like(t)
        for coefficient in self.coefficients[-2:0:-1]:
            product = _exact_product(2 * t, newer) >> bits
            newer, older = int(coefficient) + product - older, newer
        y = int(self.coefficients[0]) + (_exact_product(t, newer) >> bits) - older
        return y >> bits - scale if bits >= scale else _shift_left(y, scale - bits)

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        """Within its bound, where Chebyshev's polynomials are at most 1; outside there is no bound.

        Rounding in each of its steps is a unit times at most `degree + 1`.
        """
        (x,), (_, scale) = operands, context.scales
        if x.largest > int(self.bound):
            return None
        rounding = (self.degree + 1) * (self.degree + 2)
        largest = int(np.abs(self.coefficients).sum()) + rounding
        shift = COEFFICIENT_BITS - scale
        largest = (largest >> shift) + 1 if shift >= 0 else largest << -shift
        return Interval(np.full_like(x.low, -largest), np.full_like(x.high, largest))

    def form(self, prefix: str) -> tuple[Attributes, Tensors]:
        names = {"coefficients": f"{prefix}.coefficients", "bound": f"{prefix}.bound"}
        limit = np.array([int(self.bound)], dtype=np.int64)
        tensors = {names["coefficients"]: self.coefficients, names["bound"]: limit}
        return {**names, "degree": self.degree}, tensors

    @classmethod
    def read(cls, attributes: Attributes, shape: Shape, tensors: Mapping[str, Array]) -> Self:
        count = attributes.pop("degree") + 1
        if count < 2:
            raise ValueError("a polynomial of degree 0 or less")
        coefficients = tensor(tensors, attributes.pop("coefficients"), (count,))
        return cls(coefficients, float(tensor(tensors, attributes.pop("bound"), (1,))[0]))


def _shift_left(x: Array, bits: int) -> Array:
    if int(np.abs(x).max(initial=0)) << bits >= 1 << 63:
        raise OverflowError("a polynomial's argument or value beyond 63 bits")
    return x << bits


def _exact_product(a: Array, b: Array) -> Array:
    if int(np.abs(a).max(initial=0)) * int(np.abs(b).max(initial=0)) >= 1 << 63:
        raise OverflowError("a polynomial's value beyond 63 bits")
    return a * b
