"""Replaces smooth functions by polynomials on the intervals that were measured.

A polynomial of the model stays what it is where its terms matter; any other function becomes its
Chebyshev interpolant. The degree is the smallest whose error is within the tolerance, and from
there as high as the same number of encrypted products in a row reaches.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from numpy.polynomial import chebyshev

from privet.compiler.graph import Graph, Node
from privet.compiler.graph import operations as op
from privet.compiler.graph.function import SMOOTH, Function
from privet.compiler.passes.rewriter import Rewriter
from privet.errors import Problem, UnsupportedModel

HIGHEST_DEGREE = 127
GROWTH = 2.0
"""How many times as far as on the measured interval a polynomial may reach on the wider one."""

Reals = npt.NDArray[np.float64]


def fit_polynomials(
    graph: Graph, extremes: Mapping[int, tuple[float, float]], *, margin: float, error: float
) -> Graph:
    """The graph with each `Elementwise` a `Polynomial`; values need magnitudes, and `extremes` has
    the smallest and the largest number of each that was measured.

    A polynomial is good to `error` times the function's largest magnitude on `extremes` with their
    margin, on an interval up to `margin` times as wide as what was measured. (A polynomial that the
    model itself has may explode beyond where it was meant to be used; then its interval is
    narrower.)

    Raises `UnsupportedModel` if a function needs a degree above `HIGHEST_DEGREE`.
    """
    rewriter = Rewriter(graph)
    problems = []

    def rewrite(node: Node) -> int | None:
        if not isinstance(node.operation, op.Elementwise):
            return None
        magnitude = graph.values[node.inputs[0]].magnitude
        assert magnitude is not None, "ranges are measured before this pass"
        measured_bound = magnitude / margin or 1.0
        polynomial = fit(
            node.operation.function, measured_bound, margin, error, extremes.get(node.inputs[0])
        )
        if polynomial is None:
            why = f"no polynomial of degree {HIGHEST_DEGREE} or less is close on its range"
            instead = (
                "Give calibration inputs, a larger activation_error to privet.compile, or choose "
                "another suite"
            )
            problems.append(Problem(node.name, kind(node.operation.function), why, instead))
            return None
        return rewriter.add(node, polynomial, *(rewriter.new[id] for id in node.inputs))

    fitted_graph = rewriter.walk(rewrite)
    if problems:
        raise UnsupportedModel(problems)
    return fitted_graph


def kind(function: Function) -> str:
    """The parts of a function that are no polynomials, the outermost first."""
    names = [step.name for step in reversed(function.steps) if step.name in SMOOTH]
    return " of ".join(names) or "activation"


def fit(
    function: Function,
    measured_bound: float,
    margin: float,
    error: float,
    extremes: tuple[float, float] | None = None,
) -> op.Polynomial | None:
    """A polynomial for `function` of arguments up to `measured_bound`, or between `extremes`; None
    if none is good enough."""
    points = HIGHEST_DEGREE + 1
    is_exact = function.degree is not None and function.degree <= HIGHEST_DEGREE
    if is_exact and function.degree is not None:
        points = function.degree + 1
    narrow_series = interpolant(function, measured_bound, points)
    bound = measured_bound * margin
    series = interpolant(function, bound, points)
    if is_exact:
        limit = GROWTH * max(
            float(np.abs(narrow_series).sum()), margin * abs(float(narrow_series[1]))
        )
        while float(np.abs(series).sum()) > limit and bound > 1.01 * measured_bound:
            bound = max(measured_bound, 0.9 * bound)
            series = interpolant(function, bound, points)
    # Far from all arguments, as an exponential on the other side of 0, a function may be so large
    # that an error beside that says nothing.
    low, high = (
        extremes if extremes and extremes[0] < extremes[1] else (-measured_bound, measured_bound)
    )
    low = max(low * margin if low < 0 else low / margin, -bound)
    high = min(high * margin if high > 0 else high / margin, bound)
    arguments = np.linspace(min(low / bound, 1.0), max(high / bound, -1.0), 257)
    largest = float(np.abs(chebyshev.chebval(arguments, series)).max())
    tails = np.append(np.cumsum(np.abs(series[::-1]))[::-1][1:], 0.0)
    degrees = np.nonzero(tails <= error * largest)[0]
    degree = max(int(degrees[0]), 1)
    if not is_exact and degree > HIGHEST_DEGREE * 3 // 4:
        return None  # a tail that is cut off by the number of points says nothing
    # Degrees up to 2^k - 1 take k products in a row; a square alone takes one.
    highest_degree = degree if degree <= 2 else (1 << degree.bit_length()) - 1
    return op.Polynomial(series[: highest_degree + 1], bound)


def interpolant(function: Function, bound: float, points: int) -> Reals:
    """Chebyshev coefficients of the interpolant at that many nodes of [-bound, bound]."""
    nodes = chebyshev.chebpts1(points)
    values = function(bound * nodes)
    series = chebyshev.chebvander(nodes, points - 1).T @ values * (2.0 / points)
    series[0] /= 2.0
    return np.asarray(series, dtype=np.float64)
