"""Replaces smooth functions by lines, for suites that look lines up by shared bits.

A function that is constant or rises like its argument beyond some point gets a table up to there,
and goes on exactly. Of any other the table covers the range that was measured, to a power of two,
and arguments outside count as its ends. Both take two comparisons: with `P = max(x - low, 0)` and
`Q = max(P - top, 0)`, `P - Q` is the argument in the table and `Q` is what lies above it.

Of a reciprocal of positive arguments the relative error counts, and arguments and values keep as
many bits as that takes. Its range may be wide: it is cut into tables of which each adds what the
function changes by from its own beginning on, up to its end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from privet.compiler.graph import Graph, Node
from privet.compiler.graph import operations as op
from privet.compiler.graph.function import Function, Step
from privet.compiler.passes.check_ranges import GUARD_BITS, RING_BITS
from privet.compiler.passes.rewriter import Rewriter
from privet.errors import OverflowRisk, Problem, UnsupportedModel

INDEX_BITS = range(6, 13)
"""Binary logarithms of numbers of lines to choose from."""
LARGEST_TAIL = 6
"""A table ends where the function goes on as a line up to `2^LARGEST_TAIL`, else as measured."""
REACH = 1e4
"""How far a tail is looked at."""
RELATIVE_BITS = 16
"""Bits of the function's largest magnitude that lines aim at if it is more than a unit; and where
scales are finer than that, two bits more than the scale."""
RELATIVE = 2.0**-12
"""Of a reciprocal's value itself: what lines aim at."""
PIECE_BITS = 9
"""Binary logarithm of the number of lines of each of a reciprocal's tables."""
MOST_PIECES = 6
MOST_FINE = 10
"""Most bits that a reciprocal's arguments and values keep beyond others'."""
FINER = (0, 4, 8)
"""Bits that arguments may keep beyond others' where a function is steep at one end."""
MOST_BITS = 30
"""Bits that a reciprocal's largest value may have."""
EXCESS, END = 16.0, 0.5
"""A table ends where the function passes its largest value, if it went on to `EXCESS` times that;
and at a multiple of `END`."""
SHORT = 1.5
"""Units of the last place that a function may change by where its table ends sooner."""
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


@dataclass(frozen=True)
class Tables:
    """Tables that follow one another, and bits that arguments and values keep beyond others'."""

    tables: tuple[op.Piecewise, ...]
    argument_bits: int = 0
    value_bits: int = 0


def tabulate_functions(
    graph: Graph,
    lows: Mapping[int, float],
    extremes: Mapping[int, tuple[float, float]],
    *,
    scale_bits: int,
    error: float,
) -> Graph:
    """The graph with each `Elementwise` a `Piecewise` on what is brought into its range.

    Values need magnitudes; `lows` has the smallest that is to be expected of each, `extremes`
    the smallest and the largest that were measured.

    Raises `UnsupportedModel` if lines are off by more than `error` times the largest value in
    range; `OverflowRisk` if an argument fits no ring.
    """
    rewriter = Rewriter(graph)
    problems = []

    def rewrite(node: Node) -> int | None:
        if not isinstance(node.operation, op.Elementwise):
            return None
        (x,), function = node.inputs, node.operation.function
        magnitude = graph.values[x].magnitude
        assert magnitude is not None, "ranges are measured before this pass"
        low, high = extremes[x]
        if low == high and math.prod(graph.values[x].shape) > 1 and is_reciprocal(function):
            with np.errstate(all="ignore"):
                value = float(function(np.array([low]))[0])
            if not math.ldexp(abs(value), scale_bits) < 2.0**MOST_BITS:
                problems.append(Problem(node.name, "activation", *_constant_argument(low)))
                return None
        if is_reciprocal(function) and lows[x] > 0.0:
            reciprocal_tables = reciprocals(function, lows[x], magnitude, scale_bits)
            if reciprocal_tables is not None:
                return _sum_of_tables(rewriter, node, reciprocal_tables, scale_bits)
        bits = math.frexp(magnitude)[1] + scale_bits + GUARD_BITS
        if bits > RING_BITS[-1]:
            raise OverflowRisk(
                f"layer {node.name} (function): arguments up to {magnitude:.4g} need {bits} bits "
                f"at scale {scale_bits}, and rings have at most {RING_BITS[-1]}. Bring inputs to "
                "similar sizes, by a StandardScaler before the model, or scale the weights",
                layer=node.name,
                magnitude=magnitude,
                bits_needed=bits,
            )
        domain = domain_of(function, lows[x], magnitude or 1.0, scale_bits)
        max_magnitude, excess = graph.values[node.output].magnitude or 0.0, EXCESS
        if function.degree is not None:
            # A polynomial of an argument at its margin is beyond the margin of values.
            end_values = function(np.array([-magnitude, magnitude]))
            max_magnitude, excess = max(max_magnitude, float(np.abs(end_values).max())), 1.0
        domain = within(function, domain, extremes[x], max_magnitude, scale_bits, excess)
        table = fit(function, domain, scale_bits, error)
        if table is None:
            domain = trimmed(function, domain, scale_bits)
            table = fit(function, domain, scale_bits, error)
        narrow_domain = measured_domain(function, lows[x], magnitude or 1.0, scale_bits)
        if table is None and narrow_domain.bits < domain.bits:
            # What it becomes far outside may be where its own numbers end, as in log(1 - sigmoid).
            domain = narrow_domain
            table = fit(function, domain, scale_bits, error)
        if table is None and not domain.rises and not is_reciprocal(function):
            for extra_bits in FINER:
                finer_domain = Domain(domain.low << extra_bits, domain.bits + extra_bits)
                if tables := parts(function, finer_domain, scale_bits + extra_bits, error):
                    return _sum_of_tables(
                        rewriter, node, Tables(tables, argument_bits=extra_bits), scale_bits
                    )
        if table is None:
            start_and_width = (
                math.ldexp(domain.low, -scale_bits),
                math.ldexp(1 << domain.bits, -scale_bits),
            )
            interval = f"{start_and_width[0]:.3g} to {sum(start_and_width):.3g}"
            why = (
                f"2^{INDEX_BITS[-1]} straight lines do not come close enough to it from {interval}"
            )
            instead = (
                "If it is among the model's last steps, let the client compute it (--reveal "
                "scores). Else give calibration inputs that keep its argument in a narrower range, "
                "or a larger activation_error to privet.compile"
            )
            problems.append(Problem(node.name, "activation", why, instead))
            return None
        nonnegative = node.operation.nonnegative and not domain.low
        if nonnegative and not domain.rises:
            table = shortened(table, scale_bits, error)
        table = replace(table, rises=domain.rises, nonnegative=nonnegative)
        return _look_up(rewriter, node, table, scale_bits)

    tabulated_graph = rewriter.walk(rewrite)
    if problems:
        raise UnsupportedModel(problems)
    return tabulated_graph


def _constant_argument(argument: float) -> tuple[str, str]:
    return (
        f"its argument is {argument:.3g} in all elements and calibration inputs",
        "Check the exported file. Of nearest neighbours with weights='distance' skl2onnx writes "
        "weights that are all equal: weights='uniform' gives the same numbers, and runs",
    )


def domain_of(function: Function, low: float, magnitude: float, scale: int) -> Domain:
    """The range of a function's table, where arguments are at least `low` if that is positive.

    What goes on as a line beyond it is off by a unit at most, as lines are within it.
    """
    unit = 2.0**-scale
    for power in range(-1, LARGEST_TAIL + 1):
        end = 2.0**power
        far_points = end * np.geomspace(1.0, REACH / end, 200)
        near_points = np.concatenate([np.linspace(0.0, end, 200), far_points])
        differences_below = [
            float(np.abs(function(-points) - function(np.array([end_point]))).max())
            for points, end_point in ((near_points, 0.0), (far_points, -end))
        ]
        differences_above = function(far_points) - function(np.array([end]))
        rises = [
            float(np.abs(differences_above - slope * (far_points - end)).max())
            for slope in (0.0, 1.0)
        ]
        if min(rises) > unit:
            continue
        if differences_below[0] == 0.0:
            return Domain(0, power + scale, rises[1] <= unit)
        if differences_below[1] <= unit:
            return Domain(-(1 << (power + scale)), power + 1 + scale, rises[1] <= unit)
    return measured_domain(function, low, magnitude, scale)


def measured_domain(function: Function, low: float, magnitude: float, scale: int) -> Domain:
    """The range of a table for what was measured, with its margin, to a power of two."""
    if low > 0.0:
        start = math.floor(math.ldexp(2.0 ** math.floor(math.log2(low)), scale))
        span = math.ldexp(magnitude, scale) - start
        return Domain(start, max(math.ceil(math.log2(max(span, 1.0) + 1.0)), INDEX_BITS[0] + 1))
    bits = max(math.ceil(math.log2(magnitude)) + scale, INDEX_BITS[0])
    if _is_of_positives(function):
        return Domain(0, bits + 1)
    return Domain(-(1 << bits), bits + 1)


def within(
    function: Function,
    domain: Domain,
    measured_range: tuple[float, float],
    max_magnitude: float,
    scale: int,
    excess: float = EXCESS,
) -> Domain:
    """The domain without arguments above or below those of `measured_range` at which the function
    is beyond `max_magnitude`, where it goes on to `excess` times that: as an exponential is of
    arguments with a margin.

    The end is rounded to a whole `END` and stated by the program.
    """
    unit = 2.0**-scale
    domain_start, domain_end = domain.low * unit, (domain.low + (1 << domain.bits)) * unit
    if (
        domain.rises
        or not max_magnitude
        or not domain_start <= measured_range[0] <= measured_range[1] <= domain_end
    ):
        return domain
    side_arguments = [
        np.linspace(start, end, 4097)
        for start, end in zip(measured_range, (domain_start, domain_end), strict=True)
    ]
    side_magnitudes = [np.abs(function(arguments)) for arguments in side_arguments]
    is_beyond = [
        not float(magnitudes.max()) <= excess * max_magnitude for magnitudes in side_magnitudes
    ]
    if sum(is_beyond) != 1:
        return domain
    arguments, magnitudes = side_arguments[is_beyond[1]], side_magnitudes[is_beyond[1]]
    crossing = float(arguments[np.flatnonzero(~(magnitudes <= max_magnitude))[0]])
    if is_beyond[1]:
        top = math.ceil(crossing / END) * END
        bits = max(math.ceil(math.log2((top - domain_start) / unit)), INDEX_BITS[0] + 1)
        return Domain(round(top / unit) - (1 << bits), bits)
    bottom = math.floor(crossing / END) * END
    bits = max(math.ceil(math.log2((domain_end - bottom) / unit)), INDEX_BITS[0] + 1)
    return Domain(round(bottom / unit), bits)


def shortened(table: op.Piecewise, scale: int, error: float) -> op.Piecewise:
    """Half the table of a function of numbers that are not negative, if it changes by `SHORT` units
    at most from there on: it goes by that in the last of the lines, to what it was at the end.

    So an exponential function is 0 above the table, and however many such values are added up.
    """
    half = Domain(table.low, table.bits - 1)
    half_end, end = (
        math.ldexp(table.low + (1 << bits), -scale) for bits in (half.bits, table.bits)
    )
    difference = float(np.subtract(*table.function(np.array([half_end, end]))))
    if not difference or abs(difference) > math.ldexp(SHORT, -scale):
        return table
    steps, width = table.function.steps, math.ldexp(1.0, table.step_bits - scale)
    ramp = (
        Step("shift", (0,), width - half_end),
        Step("relu", (len(steps) + 1,)),
        Step("scale", (len(steps) + 2,), difference / width),
        Step("sub", (len(steps), len(steps) + 3)),
    )
    return fit(Function((*steps, *ramp)), half, scale, error) or table


def trimmed(function: Function, domain: Domain, scale: int) -> Domain:
    """The domain without a part below, or above, in which the function is constant."""
    unit = 2.0**-scale

    def is_constant(end: int, far_end: int) -> bool:
        x = unit * (end + np.sign(far_end - end) * np.geomspace(1.0, abs(far_end - end), 1025))
        return bool(np.abs(function(x) - function(np.array([end * unit]))).max() <= unit / 4.0)

    for bits in range(INDEX_BITS[0] + 1, domain.bits):
        low, top = domain.low + (1 << domain.bits) - (1 << bits), domain.low + (1 << bits)
        if is_constant(low, domain.low):
            return Domain(low, bits, domain.rises)
        if not domain.rises and is_constant(top, domain.low + (1 << domain.bits)):
            return Domain(domain.low, bits)
    return domain


def parts(
    function: Function, domain: Domain, scale: int, error: float
) -> tuple[op.Piecewise, ...] | None:
    """Tables that follow one another and are close, for a function that is steep at one end; None
    if that takes too many."""
    unit, end = 2.0**-scale, domain.low + (1 << domain.bits)
    max_magnitude = float(np.abs(function(np.linspace(domain.low * unit, end * unit, 4097))).max())
    tolerance = max(unit, relative_error(scale) * max_magnitude)
    while True:
        for index_bits in (PIECE_BITS, INDEX_BITS[-1]):
            tables: list[op.Piecewise] = []
            start = domain.low
            while start < end and len(tables) < MOST_PIECES:
                offset = float(function(np.array([start * unit]))[0]) if tables else 0.0
                step = Step("shift", (len(function.steps),), -offset)
                new_function = Function((*function.steps, step)) if tables else function
                fitting_tables = [
                    table
                    for bits in range(index_bits + 1, domain.bits + 1)
                    if start + (1 << bits - 1) < end or bits == index_bits + 1
                    for table in [op.Piecewise(new_function, start, bits, index_bits)]
                    if _error(table, scale)[0] <= tolerance
                ]
                if not fitting_tables:
                    break
                tables.append(fitting_tables[-1])
                start += 1 << fitting_tables[-1].bits
            if start >= end:
                return tuple(tables)
        if tolerance >= error * max_magnitude:
            return None
        tolerance = min(2.0 * tolerance, error * max_magnitude)


def is_reciprocal(function: Function) -> bool:
    """Whether a reciprocal is taken last."""
    return bool(function.steps) and function.steps[-1].name == "reciprocal"


def reciprocals(function: Function, low: float, high: float, scale: int) -> Tables | None:
    """Tables from `low` to `high`, to powers of two; None if that takes too many."""
    start, end = (
        2.0 ** rounding(math.log2(position))
        for position, rounding in ((low, math.floor), (high, math.ceil))
    )
    end = max(end, 2.0 * start)
    precision = -round(math.log2(RELATIVE))
    argument_bits = min(max(precision - scale - round(math.log2(start)), 0), MOST_FINE)
    min_magnitude = float(np.abs(function(np.array([start, end]))).min())
    value_bits = min(
        max(precision - 1 - scale - math.floor(math.log2(min_magnitude)), 0), MOST_FINE
    )
    max_magnitude = float(np.abs(function(np.array([start, end]))).max())
    if scale + value_bits + math.ceil(math.log2(max_magnitude)) > MOST_BITS:
        return None
    tables: list[op.Piecewise] = []
    position, unit = start, 2.0 ** -(scale + argument_bits)
    while position < end and len(tables) < MOST_PIECES:
        low_integer, bits = round(position / unit), PIECE_BITS + 1
        offset = float(function(np.array([position]))[0])
        while (
            position + (unit * 2**bits) < end
            and _relative_error(function, position, unit * 2 ** (bits + 1)) <= RELATIVE
        ):
            bits += 1
        steps = (
            (*function.steps, Step("shift", (len(function.steps),), -offset))
            if tables
            else function.steps
        )
        tables.append(op.Piecewise(Function(steps), low_integer, bits, PIECE_BITS))
        position += unit * 2**bits
    return Tables(tuple(tables), argument_bits, value_bits) if position >= end else None


def _relative_error(function: Function, low: float, span: float) -> float:
    """The largest relative error of lines from `low` on; lines are worst at the first one."""
    step = span / (1 << PIECE_BITS)
    shares = np.linspace(0.0, 1.0, POINTS + 1)
    values = function(low + shares * step)
    chord = values[0] + shares * (values[-1] - values[0])
    middle = POINTS // 2
    return float(np.abs((values - chord - (values - chord)[middle] / 2.0) / values).max())


def _sum_of_tables(rewriter: Rewriter, node: Node, tables: Tables, scale: int) -> int:
    """The sum of tables that follow one another, each of the argument kept within its part."""
    x = node.inputs[0]
    argument_value, result = rewriter.old.values[x], rewriter.old.values[node.output]
    argument = rewriter.add_new(
        node.name,
        op.Reshape(argument_value.shape),
        rewriter.new[x],
        like=replace(argument_value, fine=tables.argument_bits),
    )
    total = None
    for table in tables.tables:
        part = _look_up(rewriter, node, table, scale, x=argument, fine=tables.value_bits)
        if total is not None:
            part = rewriter.add_new(
                node.name, op.Add(), total, part, like=replace(result, fine=tables.value_bits)
            )
        total = part
    assert total is not None
    return total


def _is_of_positives(function: Function) -> bool:
    """Whether a logarithm or root of the argument itself is taken."""
    return any(step.name in ("log", "sqrt") and step.operands == (0,) for step in function.steps)


def relative_error(scale: int) -> float:
    """Of the function's largest magnitude: what lines aim at."""
    return float(2.0 ** -(RELATIVE_BITS if scale <= RELATIVE_BITS else scale + 2))


def fit(function: Function, domain: Domain, scale: int, error: float) -> op.Piecewise | None:
    """The fewest lines that are close enough; None if no number of lines is."""
    max_magnitude = 0.0
    table = None
    for index_bits in INDEX_BITS:
        if index_bits >= domain.bits:
            break
        table = op.Piecewise(function, domain.low, domain.bits, index_bits)
        max_error, max_magnitude = _error(table, scale)
        if max_error <= max(2.0**-scale, relative_error(scale) * max_magnitude):
            return table
        if max_error > error * max_magnitude and index_bits == INDEX_BITS[-1]:
            return None
    return table


def _error(operation: op.Piecewise, scale: int) -> tuple[float, float]:
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


def _look_up(
    rewriter: Rewriter,
    node: Node,
    table: op.Piecewise,
    scale: int,
    *,
    x: int | None = None,
    fine: int = 0,
) -> int:
    """The table's value at `x`, or at the node's argument.

    Arguments keep as many bits as `x` does, and values `fine` more than others.
    """
    x = rewriter.new[node.inputs[0]] if x is None else x
    extra_bits = rewriter.builder.value(x).fine
    low, top = (
        math.ldexp(bound, -scale - extra_bits)
        for bound in (table.low, table.low + (1 << table.bits) - 1)
    )
    largest = float(np.abs(table.function(np.linspace(low, top, 257))).max())
    result = rewriter.old.values[node.output]
    magnitude = largest if fine else max(result.magnitude or 0.0, largest)
    like = replace(result, magnitude=magnitude, fine=fine)
    return rewriter.add_new(node.name, table, x, like=like)
