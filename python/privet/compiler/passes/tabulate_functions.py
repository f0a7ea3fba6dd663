"""Replaces smooth functions by lines, for suites that look lines up by shared bits.

A function that is constant or rises like its argument beyond some point gets a table up to there,
and goes on exactly. Of any other the table covers the range that was measured, to a power of two,
and arguments outside count as its ends. Both take two comparisons: with `P = max(x - low, 0)` and
`Q = max(P - top, 0)`, `P - Q` is the argument in the table and `Q` is what lies above it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from privet.compiler.graph import Graph, Node, Value
from privet.compiler.graph.function import Function
from privet.compiler.graph.operations import Add, AddConstant, Elementwise, Piecewise, Relu, Sub
from privet.compiler.passes.rewriter import Rewriter
from privet.errors import Problem, UnsupportedModel

INDEX_BITS = range(6, 13)
"""Binary logarithms of numbers of lines to choose from."""
LARGEST_TAIL = 6
"""A table ends where the function goes on as a line up to `2^LARGEST_TAIL`, else as measured."""
REACH = 1e4
"""How far a tail is looked at."""
RELATIVE_ERROR = 2.0**-16
"""Of the function's largest magnitude: what lines aim at if it is more than a unit."""
POINTS = 8
"""Points in each line where its error is looked at."""


@dataclass(frozen=True)
class Domain:
    """Arguments from `low` to `low + 2^bits - 1`, as integers at the scale of arguments.

    `rises` says that the function rises like its argument above.
    """

    low: int
    bits: int
    rises: bool = False


def tabulate_functions(
    graph: Graph, lows: Mapping[int, float], *, scale_bits: int, error: float
) -> Graph:
    """The graph with each `Elementwise` a `Piecewise` on what is brought into its range.

    Values need magnitudes; `lows` has the smallest that is to be expected of each.

    # Errors
    `UnsupportedModel` if lines are off by more than `error` times the largest value in range.
    """
    rewriter = Rewriter(graph)
    problems = []

    def rewrite(node: Node) -> int:
        if not isinstance(node.operation, Elementwise):
            return rewriter.copy(node)
        (x,), function = node.inputs, node.operation.function
        magnitude = graph.values[x].magnitude
        assert magnitude is not None, "ranges are measured before this pass"
        domain = domain_of(function, lows[x], magnitude or 1.0, scale_bits)
        made = fit(function, domain, scale_bits, error)
        if made is None:
            ends = f"{lows[x]:.3g} to {magnitude:.3g}"
            why = f"2^{INDEX_BITS[-1]} lines are not close to it from {ends}"
            instead = "Give calibration inputs, or a larger error for activations"
            problems.append(Problem(node.name, "activation", why, instead))
            return rewriter.copy(node)
        return _looked_up(rewriter, node, made, domain, scale_bits)

    tabulated = rewriter.walk(rewrite)
    if problems:
        raise UnsupportedModel(problems)
    return tabulated


def domain_of(function: Function, low: float, magnitude: float, scale: int) -> Domain:
    """The range of a function's table, where arguments are at least `low` if that is positive."""
    unit = 2.0**-scale
    for power in range(-1, LARGEST_TAIL + 1):
        end = 2.0**power
        far = end * np.geomspace(1.0, REACH / end, 200)
        left = np.abs(function(-far) - function(np.array([-end])))
        right = function(far) - function(np.array([end]))
        rises = [float(np.abs(right - slope * (far - end)).max()) for slope in (0.0, 1.0)]
        if float(left.max()) <= unit / 4.0 and min(rises) <= unit / 4.0:
            return Domain(-(1 << (power + scale)), power + 1 + scale, rises[1] <= unit / 4.0)
    if low > 0.0:
        start = math.floor(math.ldexp(2.0 ** math.floor(math.log2(low)), scale))
        span = math.ldexp(magnitude, scale) - start
        return Domain(start, max(math.ceil(math.log2(max(span, 1.0) + 1.0)), INDEX_BITS[0] + 1))
    bits = max(math.ceil(math.log2(magnitude)) + scale, INDEX_BITS[0])
    if _is_of_positives(function):
        return Domain(0, bits + 1)
    return Domain(-(1 << bits), bits + 1)


def _is_of_positives(function: Function) -> bool:
    """Whether a logarithm or root of the argument itself is taken."""
    return any(it.name in ("log", "sqrt") and it.operands == (0,) for it in function.steps)


def fit(function: Function, domain: Domain, scale: int, error: float) -> Piecewise | None:
    """The fewest lines that are close enough; None if no number of lines is."""
    most = 0.0
    found = None
    for index_bits in INDEX_BITS:
        if index_bits >= domain.bits:
            break
        found = Piecewise(function, domain.low, domain.bits, index_bits)
        off, most = _error(found, scale)
        if off <= max(2.0**-scale, RELATIVE_ERROR * most):
            return found
        if off > error * most and index_bits == INDEX_BITS[-1]:
            return None
    return found


def _error(operation: Piecewise, scale: int) -> tuple[float, float]:
    """The largest distance of lines from the function, and the function's largest magnitude."""
    step = 1 << operation.step_bits
    starts = operation.low + step * np.arange(1 << operation.index_bits)
    shares = np.linspace(0.0, 1.0, POINTS + 1)
    x = np.ldexp(starts[:, None] + shares * step, -scale)
    values = operation.function(x)
    chords = values[:, :1] + shares * (values[:, -1:] - values[:, :1])
    middle = POINTS // 2
    chords = chords + (values - chords)[:, middle : middle + 1] / 2.0
    return float(np.abs(values - chords).max()), float(np.abs(values).max())


def _looked_up(rewriter: Rewriter, node: Node, table: Piecewise, domain: Domain, scale: int) -> int:
    old = rewriter.old.values[node.inputs[0]]
    low = math.ldexp(domain.low, -scale)
    top = math.ldexp((1 << domain.bits) - 1, -scale)
    reach = (old.magnitude or 0.0) + abs(low)

    def like(name: str, magnitude: float) -> Value:
        return Value(old.shape, f"{node.name}.{name}", magnitude)

    def shifted(x: int, by: float, name: str) -> int:
        shift = AddConstant(np.asarray(by, dtype=np.float64))
        return rewriter.add_new(node.name, shift, x, like=like(name, max(reach, top)))

    x = rewriter.new[node.inputs[0]]
    raised = shifted(x, -low, "raised") if low else x
    above = rewriter.add_new(node.name, Relu(), raised, like=like("above", reach))
    over = shifted(above, -top, "over")
    excess = rewriter.add_new(node.name, Relu(), over, like=like("excess", reach))
    within = rewriter.add_new(node.name, Sub(), above, excess, like=like("within", top))
    largest = float(np.abs(table.function(np.linspace(low, low + top, 257))).max())
    made = rewriter.old.values[node.output]
    result = replace(made, magnitude=max(made.magnitude or 0.0, largest))
    if not domain.rises:
        return rewriter.add_new(node.name, table, within, like=result)
    looked_up = rewriter.add_new(node.name, table, within, like=like("value", largest))
    return rewriter.add_new(node.name, Add(), looked_up, excess, like=result)
