"""Linear maps with public entries along one axis: elements at given places, and sums of them.

What a Gather, a padding, a resize or a scatter does to a tensor is known from the graph alone. So
it costs no products: slices and joins move elements, and an average over windows of one element
multiplies each place by a public factor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Array, Shape
from privet.compiler.graph.site import Private, Site

MOST_PARTS = 256
"""A map of more slices than this becomes a product with a matrix of zeros and ones."""
MOST_ENTRIES = 1 << 22
"""Most elements of such a matrix."""
PERIODS = 64
"""Longest pattern that is looked for in places that repeat at equal distances."""


def pick(site: Site, x: Private, axis: int, indices: Sequence[int]) -> Private:
    """The elements at `indices` of an axis, which are not negative."""
    places = np.asarray(indices, dtype=np.int64)
    size = x.shape[axis]
    if places.size == 0 or places.min() < 0 or places.max() >= size:
        site.refuse(f"it reads elements outside of an axis of {size}", "Check the model")
    if np.array_equal(places, np.arange(size)):
        return x
    runs = _runs(places)
    if sum(period for _, _, period in runs) > MOST_PARTS:
        return _pick_by_product(site, x, axis, places)
    leading, trailing = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    flat = site.reshape(x, (leading, size, trailing))
    parts = [_pick_run(site, flat, places[first:last], period) for first, last, period in runs]
    return site.reshape(site.concat(1, parts), (*x.shape[:axis], len(places), *x.shape[axis + 1 :]))


def _runs(places: Array) -> list[tuple[int, int, int]]:
    """Stretches `first..last` in which each place is a fixed distance behind that a period ago."""
    runs = []
    first, count = 0, len(places)
    while first < count:
        best, best_score = (1, 1), 0.0
        for period in range(1, min(PERIODS, count - first) + 1):
            repeats = _regular_length(places[first:], period) // period
            length = (repeats + 1) * period
            if length / (period + 2 * (period > 1)) > best_score:
                best, best_score = (period, length), length / (period + 2 * (period > 1))
        period, length = best
        runs.append((first, first + length, period))
        first += length
    return runs


def _regular_length(places: Array, period: int) -> int:
    """How many places from the first on are all as far before the one a period later."""
    size = len(places) - period
    start, block_size = 0, 1024
    while start < size:
        end = min(start + block_size, size)
        differences = places[start + period : end + period] - places[start:end]
        breaks = np.flatnonzero(differences != places[period] - places[0])
        if breaks.size:
            return start + int(breaks[0])
        start, block_size = end, 4 * block_size
    return size


def _pick_run(site: Site, x: Private, places: Array, period: int) -> Private:
    """Elements of axis 1 of `[a, n, b]`, at places with one period."""
    leading, size, trailing = x.shape
    count = len(places) // period
    step = int(places[period] - places[0]) if count > 1 else 1
    parts = []
    for first in map(int, places[:period]):
        part = x
        end = first + (count - 1) * step + (1 if step >= 0 else -1) if step else first + 1
        if (first, end, step) != (0, size, 1):
            part = site.emit(
                op.Slice((0, first, 0), (leading, end, trailing), (1, step or 1, 1)), x
            )
        if not step:
            part = site.emit(op.Broadcast((leading, count, trailing)), part)
        parts.append(site.reshape(part, (leading, count, 1, trailing)))
    return site.reshape(site.concat(2, parts), (leading, len(places), trailing))


def _pick_by_product(site: Site, x: Private, axis: int, places: Array) -> Private:
    size = x.shape[axis]
    if size * len(places) > MOST_ENTRIES:
        site.refuse(
            f"it takes {len(places)} of {size} elements in no regular order",
            "Order the data before it is given",
        )
    matrix = np.zeros((size, len(places)), np.float32)
    matrix[places, np.arange(len(places))] = 1.0
    rows, leading = as_rows(site, x, [axis])
    product = site.emit(
        op.Dense(matrix, None), site.reshape(rows, (-(-math.prod(x.shape) // size), size))
    )
    return from_rows(site, product, leading, axis, len(places))


def blend(site: Site, x: Private, axis: int, places: Array, weights: Array) -> Private:
    """`sum_k weights[k] * x[places[k]]` along an axis; both arguments are `[K, n]`."""
    terms = [k for k in range(len(weights)) if weights[k].any()] or [0]
    count = places.shape[1]
    rows, leading = as_rows(site, x, [axis])
    total: Private | None = None
    for k in terms:
        part = pick(site, rows, 1, places[k].tolist())
        if not np.all(weights[k] == 1.0):
            part = times_public(site, part, weights[k])
        total = part if total is None else site.emit(op.Add(), total, part)
    assert total is not None
    return from_rows(site, total, leading, axis, count)


def times_public(site: Site, x: Private, factors: Array) -> Private:
    """A tensor times constants that the graph's form tells, which broadcast to the last axes."""
    while factors.ndim > 1 and factors.shape[0] == 1:
        factors = factors[0]
    last_axes = x.shape[len(x.shape) - factors.ndim :]
    count = math.prod(last_axes)
    all_factors = tuple(float(factor) for factor in np.broadcast_to(factors, last_axes).ravel())
    pool = op.AvgPool2d((1, 1), (1, 1), op.NO_PADDING, (1, 1), (1, count), all_factors)
    image = site.reshape(x, (1, math.prod(x.shape) // count, 1, count))
    return site.reshape(site.emit(pool, image), x.shape)


def as_rows(site: Site, x: Private, axes: Sequence[int]) -> tuple[Private, Shape]:
    """`[rows, n]` with some axes as the columns; the shape of the others comes along."""
    other_axes = [axis for axis in range(len(x.shape)) if axis not in axes]
    transposed = site.transpose(x, (*other_axes, *axes))
    leading = tuple(x.shape[axis] for axis in other_axes)
    rows = math.prod(leading)
    return site.reshape(transposed, (rows, math.prod(x.shape) // rows)), leading


def from_rows(site: Site, rows: Private, leading: Shape, axis: int, count: int) -> Private:
    """Rows of one axis back in its place, where it has `count` elements."""
    order = (*range(axis), len(leading), *range(axis, len(leading)))
    return site.transpose(site.reshape(rows, (*leading, count)), order)
