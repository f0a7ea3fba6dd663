"""Activations as Chebyshev interpolants, written with Mul, Add and Sub.

SiLU and softplus are both x/2 plus an even function, and so are their interpolants at Chebyshev
nodes. With t = x/bound and u = T_2(t) = 2t^2 - 1, the even part's series in T_2k(t) is a series in
T_k(u) of half the degree, which Clenshaw's recurrence sums without the huge coefficients of powers:

    b_k = c_k + 2u b_(k+1) - b_(k+2),    p(x) = x/2 + c_0 + u b_1 - b_2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from numpy.polynomial import chebyshev

from .graph import GraphBuilder, Value

Reals = npt.NDArray[np.float64]


def silu(x: Reals) -> Reals:
    """`x * sigmoid(x)`."""
    return x / (1.0 + np.exp(-x))


def softplus(x: Reals) -> Reals:
    """`log(1 + exp(x))`."""
    return np.logaddexp(0.0, x)


@dataclass(frozen=True)
class Interpolant:
    """The Chebyshev interpolant on `[-bound, bound]` of x/2 plus an even function."""

    function: Callable[[Reals], Reals]
    degree: int
    bound: float

    @cached_property
    def even(self) -> Reals:
        """The coefficients c_k of T_2k(x/bound)."""
        nodes = chebyshev.chebpts1(self.degree + 1)
        values = self.function(self.bound * nodes)
        sums = chebyshev.chebvander(nodes, self.degree).T @ values
        series = sums * (2.0 / len(nodes))
        series[0] /= 2.0
        return np.asarray(series[::2], dtype=np.float64)

    def __call__(self, x: Reals) -> Reals:
        """The interpolant's values."""
        u = 2.0 * (x / self.bound) ** 2 - 1.0
        return x / 2.0 + chebyshev.chebval(u, self.even)

    def append(self, graph: GraphBuilder, x: Value) -> Value:
        """Append the interpolant of `x` to `graph`, about 3 * degree / 2 nodes."""
        label = graph.label("act")
        moment = self._moment(x.moment)
        names = iter(range(1, 3 * len(self.even) + 6))

        def node(op: str, *inputs: Value | str) -> Value:
            step = f"{label}.{op.lower()}{next(names)}"
            return graph.node(op, inputs, x.shape, signed=0.0, positive=moment, label=step)

        def coefficient(k: int) -> str:
            return graph.constant(f"{label}.c{k}", float(self.even[k]))

        t = node("Mul", x, graph.constant(f"{label}.scale", 1.0 / self.bound))
        double = node("Mul", node("Mul", t, t), graph.constant(f"{label}.four", 4.0))
        # 2u = 4t^2 - 2
        double = node("Sub", double, graph.constant(f"{label}.two", 2.0))
        half = graph.constant(f"{label}.half", 0.5)
        last = len(self.even) - 1
        newer: Value | str = coefficient(last)
        older: Value | str | None = None
        for k in range(last - 1, 0, -1):
            total = node("Mul", double, newer)
            if older is not None:
                total = node("Sub", total, older)
            newer, older = node("Add", total, coefficient(k)), newer
        total = node("Mul", node("Mul", double, half), newer)
        if older is not None:
            total = node("Sub", total, older)
        total = node("Add", total, coefficient(0))
        return node("Add", node("Mul", x, half), total)

    def _moment(self, moment: float) -> float:
        # By Gauss-Hermite quadrature over a normal input.
        nodes, weights = np.polynomial.hermite_e.hermegauss(64)
        inside = np.clip(nodes * np.sqrt(moment), -self.bound, self.bound)
        mean = float(np.sum(weights * self(inside) ** 2) / np.sum(weights))
        # Rounded, as the quadrature's last digits differ between machines and weights follow it.
        return round(mean, 3)
