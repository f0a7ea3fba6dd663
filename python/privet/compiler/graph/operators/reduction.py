"""The reductions, CumSum and ArgMax."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.function import chain
from privet.compiler.graph.operations.linear import MAX_KERNEL
from privet.compiler.graph.operators.activation import magnitude
from privet.compiler.graph.operators.arithmetic import plus
from privet.compiler.graph.operators.attention import DECAY
from privet.compiler.graph.public_maps import as_rows, from_rows, pick
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site

_AXES = "axes constant"
_INSIDE = "axes constant; not with `--security malicious`"
MOST_FACTORS = 64
"""Most elements that a ReduceProd multiplies: each product rounds."""


@operator("CumSum", since=11, restrictions="axis constant")
def cum_sum(site: Site) -> Operand:
    """Sums of all elements up to each, or from each on; the element itself may be left out."""
    x = site.private(0)
    axis = site.axis(int(np.ravel(site.constant(1, "axis"))[0]), len(x.shape))
    rows, leading = as_rows(site, x, [axis])
    sums = running_sum(site, rows, reverse=bool(site.attribute("reverse", 0)))
    if site.attribute("exclusive", 0):
        sums = site.emit(op.Sub(), sums, rows)
    return from_rows(site, sums, leading, axis, x.shape[axis])


def running_sum(site: Site, x: Private, *, reverse: bool = False) -> Private:
    """`[rows, n]`: sums of all elements of a row up to each; with `reverse`, from each on."""
    rows, width = x.shape
    if width > MAX_KERNEL:
        site.refuse(f"it sums {width} elements, more than {MAX_KERNEL}", "Split the axis")
    padding = (0, 0, 0, width - 1) if reverse else (0, width - 1, 0, 0)
    windows = op.AvgPool2d((1, width), (1, 1), padding, (1, 1), (1, width), factors=(1.0,))
    image = site.reshape(x, (1, rows, 1, width))
    return site.reshape(site.emit(windows, image), x.shape)


@operator("ArgMax")
def arg_max(site: Site) -> Operand:
    """The index of the largest element; equal ones by select_last_index."""
    x = site.private(0)
    axis = site.axis(site.attribute("axis", 0), len(x.shape))
    if x.client is not None and (x.client.axis != axis or x.client.flatten):
        site.refuse(
            f"it reads a {x.client.op} over another axis, which the client computes in the clear",
            "End the model there, or take ArgMax over the same axis",
        )
    # Softmax keeps the order along its axis, so ArgMax may read what Softmax read.
    keepdims = bool(site.attribute("keepdims", 1))
    select_last = bool(site.attribute("select_last_index", 0))
    return replace(site.emit(op.ArgMax(axis, keepdims, select_last), x), upper_bound=x.shape[axis])


@operator("ArgMin")
def arg_min(site: Site) -> Operand:
    """The index of the largest of the negated elements."""
    return site.apply("ArgMax", site.emit(op.Negate(), site.private(0)), **site.attributes)


def reduce_axes(site: Site) -> Operand:
    """The axes that a node names, as an attribute or an input, reduced as `REDUCTIONS` say."""
    x = site.private(0)
    rank = len(x.shape)
    axes = sorted({site.axis(axis, rank) for axis in site.ints_of("axes", 1) or []})
    if not axes and not site.attribute("noop_with_empty_axes", 0):
        axes = list(range(rank))
    rows, leading = as_rows(site, x, axes)
    _, reduce_rows = REDUCTIONS[site.operator]
    result = reduce_rows(site, rows)
    if site.attribute("keepdims", 1):
        return site.reshape(result, [1 if i in axes else x.shape[i] for i in range(rank)])
    return site.reshape(result, leading)


def sum_of_rows(site: Site, x: Private, *, mean: bool = False) -> Private:
    """`[rows, n]` to sums or means `[rows, 1]`."""
    rows, count = x.shape
    if count == 1:
        return x
    size = _window_size(count)
    if pad_count := math.prod(size) - count:
        x = site.emit(op.Pad((0, 0), (0, pad_count), 0.0), x)
    factors = (1.0 / count if mean else 1.0,)
    pool = op.AvgPool2d(size, (1, 1), op.NO_PADDING, (1, 1), (1, 1), factors)
    return site.reshape(site.emit(pool, site.reshape(x, (1, rows, *size))), (rows, 1))


def largest_of_rows(site: Site, x: Private) -> Private:
    """`[rows, n]` to maxima `[rows, 1]`."""
    rows, count = x.shape
    if count == 1:
        return x
    size = _window_size(count)
    x = pick(site, x, 1, np.minimum(np.arange(math.prod(size)), count - 1).tolist())
    pool = op.MaxPool2d(size, (1, 1), op.NO_PADDING, (1, 1), (1, 1))
    return site.reshape(site.emit(pool, site.reshape(x, (1, rows, *size))), (rows, 1))


def _window_size(count: int) -> tuple[int, int]:
    """The sides of a window over at least so many elements."""
    height = -(-count // MAX_KERNEL)
    return height, -(-count // height)


def _elementwise(site: Site, name: str, x: Private) -> Private:
    return site.emit(op.Elementwise(chain(name)), x)


def _negate(site: Site, x: Private) -> Private:
    return site.emit(op.Negate(), x)


def squares_of_rows(site: Site, x: Private) -> Private:
    """`[rows, n]` to sums of squares `[rows, 1]`."""
    return sum_of_rows(site, site.emit(op.Mul(), x, x))


def _log_sum_exp(site: Site, x: Private) -> Private:
    """`m + log(sum(exp(x - m)))` with the largest element m."""
    largest = largest_of_rows(site, x)
    differences = site.emit(op.Sub(), site.broadcast(largest, x.shape), x)
    total = sum_of_rows(site, site.emit(op.Elementwise(DECAY, nonnegative=True), differences))
    return plus(site, largest, _elementwise(site, "log", total))


def _product(site: Site, x: Private) -> Private:
    """The product of all, two by two."""
    if x.shape[1] > MOST_FACTORS:
        site.refuse(f"it multiplies {x.shape[1]} elements", "Take the logarithm before, or sum")
    while (count := x.shape[1]) > 1:
        half = count // 2
        halves = [pick(site, x, 1, range(k * half, (k + 1) * half)) for k in range(2)]
        product = site.emit(op.Mul(), *halves)
        rest = [pick(site, x, 1, [count - 1])] if count % 2 else []
        x = site.concat(1, [product, *rest])
    return x


REDUCTIONS: dict[str, tuple[str, Callable[[Site, Private], Private]]] = {
    "ReduceL1": (_AXES, lambda site, x: sum_of_rows(site, magnitude(site, x))),
    "ReduceL2": (_INSIDE, lambda site, x: _elementwise(site, "sqrt", squares_of_rows(site, x))),
    "ReduceLogSum": (_INSIDE, lambda site, x: _elementwise(site, "log", sum_of_rows(site, x))),
    "ReduceLogSumExp": (_INSIDE, _log_sum_exp),
    "ReduceMax": (_AXES, largest_of_rows),
    "ReduceMean": (_AXES, lambda site, x: sum_of_rows(site, x, mean=True)),
    "ReduceMin": (_AXES, lambda site, x: _negate(site, largest_of_rows(site, _negate(site, x)))),
    "ReduceProd": (f"of up to {MOST_FACTORS} elements; {_INSIDE}", _product),
    "ReduceSum": (_AXES, sum_of_rows),
    "ReduceSumSquare": (_INSIDE, squares_of_rows),
}
"""Restrictions of the reductions, and what makes `[rows, n]` to `[rows, 1]`."""

for _name, (_restrictions, _) in REDUCTIONS.items():
    operator(_name, restrictions=_restrictions)(reduce_axes)
