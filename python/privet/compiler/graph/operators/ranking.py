"""TopK of private tensors: which elements are the largest, as rows of zeros with a one.

Of few elements all pairs are compared at once, so that each has a rank; of many, one after the
other is found and left out. Equal elements come in their order, as in ONNX Runtime.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.operators.arithmetic import minus, plus, plus_constant
from privet.compiler.graph.operators.comparison import is_nonnegative
from privet.compiler.graph.operators.one_hot import first_largest
from privet.compiler.graph.operators.reduction import largest_of_rows, sum_of_rows
from privet.compiler.graph.operators.selection import keep_elements
from privet.compiler.graph.public_maps import pick
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Private, Site

MOST_PAIRED = 256
"""Most elements all pairs of which are compared."""
MOST_FOUND = 64
"""Most elements that are found one after the other."""
_LAST = "k constant, of the last axis; only where a suite has `Mul` of private tensors"


@operator("TopK", restrictions=_LAST)
def top_k(site: Site) -> tuple[Private, Private]:
    """The largest or smallest elements of each row, in order, and their places."""
    x = site.private(0)
    size = x.shape[-1] if x.shape else 0
    count = int(np.ravel(site.constant(1, "k"))[0]) if site.has_input(1) else site.attribute("k", 1)
    if site.axis(site.attribute("axis", -1), len(x.shape)) != len(x.shape) - 1:
        site.refuse("it takes elements along another axis than the last", "Transpose before it")
    if not 0 < count <= size:
        site.refuse(f"it takes {count} of {size} elements", "Check the model")
    leading, samples = x.shape[:-1], math.prod(x.shape[:-1])
    rows = site.reshape(x, (samples, size))
    keys = rows if site.attribute("largest", 1) else site.emit(op.Negate(), rows)
    if size > MOST_PAIRED and count > MOST_FOUND:
        site.refuse(f"it takes {count} of {size} elements", f"Take {MOST_FOUND} at most")
    one_hot = _by_ranks(site, keys, count) if size <= MOST_PAIRED else _by_maxima(site, keys, count)
    values = site.emit(op.MatMul(), one_hot, site.reshape(rows, (samples, size, 1)))
    places = site.reshape(one_hot, (*leading, count, size))
    return site.reshape(values, (*leading, count)), replace(places, integer=True, one_hot=True)


def _by_ranks(site: Site, keys: Private, count: int) -> Private:
    """`[rows, count, n]`: an element's rank is how many are before it."""
    rows, size = keys.shape
    shape = (rows, size, size)
    column_keys = site.broadcast(site.reshape(keys, (rows, 1, size)), shape)
    row_keys = site.broadcast(site.reshape(keys, (rows, size, 1)), shape)
    # Of a pair i, j with j < i: whether j is before i, as equal ones are.
    before = keep_elements(
        site,
        is_nonnegative(site, site.emit(op.Sub(), column_keys, row_keys)),
        np.tri(size, k=-1) > 0,
    )
    before_rows = site.reshape(before, (rows * size, size))
    behind = site.apply("Transpose", before, perm=[0, 2, 1])
    behind_rows = site.reshape(behind, (rows * size, size))
    offsets = np.arange(size - 1, -1, -1, dtype=np.float64)
    rank = minus(site, sum_of_rows(site, before_rows), sum_of_rows(site, behind_rows))
    rank = plus_constant(site, site.reshape(rank, (rows, 1, size)), offsets)
    ranks = site.broadcast(rank, (rows, count, size))
    ends = np.arange(count, dtype=np.float64)[:, None] + 0.5
    is_within = is_nonnegative(site, minus(site, ends, ranks))
    if count == 1:
        return is_within
    first = pick(site, is_within, 1, [0])
    steps = [pick(site, is_within, 1, range(shift, count - 1 + shift)) for shift in (1, 0)]
    return site.emit(op.Concat(1), first, site.emit(op.Sub(), *steps))


def _by_maxima(site: Site, keys: Private, count: int) -> Private:
    """`[rows, count, n]`: what was found is put below all others, and the next one looked for."""
    rows, size = keys.shape
    least = site.emit(op.Negate(), largest_of_rows(site, site.emit(op.Negate(), keys)))
    lowest = site.broadcast(plus_constant(site, least, np.asarray(-1.0)), keys.shape)
    one_hots = []
    for remaining in reversed(range(count)):
        one_hot = first_largest(site, keys)
        one_hots.append(site.reshape(one_hot, (rows, 1, size)))
        if remaining:
            keys = plus(site, keys, site.emit(op.Mul(), one_hot, site.emit(op.Sub(), lowest, keys)))
    return site.concat(1, one_hots)
