"""Polynomials in Chebyshev's basis on integers, as the file format defines them.

With p = `COEFFICIENT_BITS`, divisions and shifts rounding down:

    t = x * 2^p // bound
    b_k = c_k + (2 t b_(k+1) >> p) - b_(k+2),  from the highest k down to 1
    y = c_0 + (t b_1 >> p) - b_2

and y is brought from p fractional bits to the output's scale.
"""

from __future__ import annotations

import numpy as np

from privet.compiler.graph.operations import COEFFICIENT_BITS, Array, Polynomial


def polynomial_values(x: Array, polynomial: Polynomial, scale: int) -> Array:
    """The values at int64 `x`, at `scale`; `OverflowError` where 63 bits do not hold them."""
    bits, bound = COEFFICIENT_BITS, int(polynomial.bound)
    t = _shifted(x, bits) // bound
    newer = np.full_like(t, int(polynomial.coefficients[-1]))
    older = np.zeros_like(t)
    for coefficient in polynomial.coefficients[-2:0:-1]:
        product = _product(2 * t, newer) >> bits
        newer, older = int(coefficient) + product - older, newer
    y = int(polynomial.coefficients[0]) + (_product(t, newer) >> bits) - older
    return y >> bits - scale if bits >= scale else _shifted(y, scale - bits)


def _shifted(x: Array, bits: int) -> Array:
    if int(np.abs(x).max(initial=0)) << bits >= 1 << 63:
        raise OverflowError("a polynomial's argument or value beyond 63 bits")
    return x << bits


def _product(a: Array, b: Array) -> Array:
    if int(np.abs(a).max(initial=0)) * int(np.abs(b).max(initial=0)) >= 1 << 63:
        raise OverflowError("a polynomial's value beyond 63 bits")
    return a * b
