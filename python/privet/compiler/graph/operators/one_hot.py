"""OneHot and Hardmax: 1 at one place, 0 at the others."""

from __future__ import annotations

import math

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.operators.arithmetic import plus_constant, times_constant
from privet.compiler.graph.operators.comparison import SUITES, is_nonnegative
from privet.compiler.graph.operators.reduction import largest_of_rows, running_sum
from privet.compiler.graph.operators.selection import one_hot_columns, parts
from privet.compiler.graph.public_maps import as_rows, from_rows
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site


@operator("Hardmax", restrictions=SUITES)
def hardmax(site: Site) -> Operand:
    """1 at the first of the largest elements, 0 elsewhere."""
    x = site.private(0)
    axis = site.axis(site.attribute("axis", 1 if site.opset < 13 else -1), len(x.shape))
    axes = list(range(axis, len(x.shape))) if site.opset < 13 else [axis]
    rows, leading = as_rows(site, x, axes)
    hot = first_largest(site, rows)
    if len(axes) > 1 or site.opset < 13:
        return site.reshape(hot, x.shape)
    return from_rows(site, hot, leading, axis, x.shape[axis])


def first_largest(site: Site, rows: Private) -> Private:
    """`[rows, n]`: 1 at the first of the largest elements of each row."""
    largest = site.broadcast(largest_of_rows(site, rows), rows.shape)
    is_largest = is_nonnegative(site, site.emit(op.Sub(), rows, largest))
    # Twice itself less those up to it is 1 at the first one, and below 1 elsewhere.
    twice = site.emit(op.Add(), is_largest, is_largest)
    first_score = site.emit(op.Sub(), twice, running_sum(site, is_largest))
    return is_nonnegative(site, plus_constant(site, first_score, np.asarray(-1.0)))


@operator("OneHot", since=9, restrictions=f"depth and values constant; {SUITES}")
def one_hot(site: Site) -> Operand:
    """An axis of its own that has 1 where its place is the index, which may count from behind."""
    x, depth = site.private(0), int(np.ravel(site.constant(1, "depth"))[0])
    off, on = (float(value) for value in np.ravel(site.constant(2, "values")))
    site.check_size(depth)
    axis, rank = site.axis(site.attribute("axis", -1), len(x.shape) + 1), len(x.shape)
    if 1 < x.upper_bound <= depth:
        hot = one_hot_columns(site, x, 0, depth)
    else:
        hot_pairs = site.reshape(
            one_hot_columns(site, x, -depth, depth), (math.prod(x.shape), 2, depth)
        )
        hot = site.emit(op.Add(), *parts(site, hot_pairs, 1, [1, 1]))
    hot = site.reshape(hot, (*x.shape, depth))
    hot = site.transpose(hot, (*range(axis), rank, *range(axis, rank)))
    return plus_constant(site, times_constant(site, hot, np.asarray(on - off)), np.asarray(off))
