"""Slice, Split, Gather and Where: parts of a tensor at public places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Array, real
from privet.compiler.graph.operators.attention import BLOCKING, mask_elements
from privet.compiler.graph.public_maps import pick, times_public
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site

BESIDE = 2.0**-6
"""How far below a whole number what a suite rounds may be, and still counts as that number."""


@operator("Slice", restrictions="starts, ends, axes and steps constant")
def slice_of(site: Site) -> Operand:
    """As attributes (before opset 10) or inputs; negative indices and steps."""
    x = site.private(0)
    rank = len(x.shape)
    starts = site.ints_of("starts", 1) or []
    ends = site.ints_of("ends", 2) or []
    axes = site.ints_of("axes", 3)
    steps = site.ints_of("steps", 4) or [1] * len(starts)
    axes = list(range(len(starts))) if axes is None else [site.axis(a, rank) for a in axes]
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        site.refuse("its starts, ends, axes and steps do not agree", "Check the model")
    bounds = [(0, size, 1) for size in x.shape]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        bounds[axis] = slice(start, end, step).indices(x.shape[axis])
        if not len(range(*bounds[axis])):
            site.refuse("it keeps no element", "Check the model")
    return site.slice(x, bounds)


@operator("Split", restrictions="sizes constant")
def split(site: Site) -> tuple[Operand, ...]:
    """Into equal or given parts."""
    x = site.private(0)
    axis = site.axis(site.attribute("axis", 0), len(x.shape))
    size, count = x.shape[axis], site.output_count
    sizes = site.ints_of("split", 1)
    if sizes is None:
        part = -(-size // count)
        sizes = [part] * (count - 1) + [size - part * (count - 1)]
    if len(sizes) != count:
        site.refuse(f"it splits {size} elements into {sizes}", "Check the model's shapes")
    return parts(site, x, axis, sizes)


def parts(site: Site, x: Private, axis: int, sizes: Sequence[int]) -> tuple[Private, ...]:
    """An axis cut into parts of these sizes."""
    if sum(sizes) != x.shape[axis] or min(sizes) < 1:
        site.refuse(f"it splits {x.shape[axis]} elements into {sizes}", "Check the model's shapes")
    ends = np.cumsum(sizes).tolist()
    return tuple(site.slice_axis(x, axis, end - n, end) for end, n in zip(ends, sizes, strict=True))


@operator("Gather", restrictions="indices constant, or places of classes or rows in a constant")
def gather(site: Site) -> Operand:
    """Any elements along an axis, in any order; rows of a table for private tokens."""
    ids = site.operand(1)
    if isinstance(ids, Private):
        table = site.constant(0, "table")
        axis = site.axis(site.attribute("axis", 0), table.ndim)
        rows = look_up(site, np.moveaxis(table, axis, 0), ids)
        leading, rank = table.shape[:axis], len(ids.shape) - ids.one_hot
        if not leading:
            return rows
        order = (*range(rank, rank + axis), *range(rank), *range(rank + axis, len(rows.shape)))
        return site.apply("Transpose", rows, perm=order)
    x = site.private(0)
    indices = site.constant(1, "indices").astype(np.int64)
    axis = site.axis(site.attribute("axis", 0), len(x.shape))
    size = x.shape[axis]
    flat_indices = np.where(indices < 0, indices + size, indices).reshape(-1)
    if not len(flat_indices) or flat_indices.min() < 0 or flat_indices.max() >= size:
        site.refuse("its indices lie outside the tensor", "Check the model")
    picked = pick(site, x, axis, flat_indices.tolist())
    return site.reshape(picked, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


def look_up(site: Site, table: Array, ids: Private, *, within: bool = False) -> Private:
    """Rows of a constant at private places: `ids.shape` (the place's axis is not counted) and the
    shape of a row. Unless places are known to be `within` the table, they may count from behind.

    A place is as many steps up as there are rows before it: the row is the first one and the
    differences of rows up to there.
    """
    if table.dtype.kind not in "fiub":
        site.refuse("it takes texts at private places", "Take numbers, or ask for labels alone")
    rows = real(table).reshape(len(table), -1)
    if ids.one_hot:
        shape = ids.shape[:-1]
        one_hot = site.reshape(ids, (math.prod(shape), ids.shape[-1]))
        one_hot = site.slice_axis(one_hot, 1, 0, min(len(table), ids.shape[-1]))
        selection = site.emit(op.Dense(rows[: ids.shape[-1]], None), one_hot)
    elif not within and ids.upper_bound > len(table):
        site.refuse(
            f"it takes elements of a constant of {len(table)} at private places up to "
            f"{ids.upper_bound - 1}, which are not known to be in it",
            "Check the model",
        )
    else:
        # One step for each row, whatever is known of the places: shapes are public, and how far the
        # numbers of another private table go is not.
        shape, first = ids.shape, 0
        if not within and not 1 < ids.upper_bound <= len(table):
            first, rows = -len(table), np.concatenate([rows, rows])
        steps = step_columns(site, ids, first + 1, len(table))
        selection = site.emit(op.Dense(np.diff(rows, axis=0), rows[0]), steps)
    is_whole = table.dtype.kind in "iub"
    upper_bound = int(table.max()) + 1 if is_whole and table.min() >= 0 else 0
    looked_up = site.reshape(selection, (*shape, *table.shape[1:]))
    return replace(looked_up, integer=is_whole, whole=is_whole, upper_bound=upper_bound)


def as_one_hot(site: Site, ids: Private) -> Private:
    """Places as rows of zeros with a one: `[.., n]`."""
    if ids.one_hot:
        return ids
    if ids.upper_bound < 2:
        site.refuse("its places are not known to be in the tensor", "Let ArgMax or TopK find them")
    one_hot = one_hot_columns(site, ids, 0, ids.upper_bound)
    return replace(site.reshape(one_hot, (*ids.shape, ids.upper_bound)), integer=True, one_hot=True)


def one_hot_columns(site: Site, ids: Private, first: int, end: int) -> Private:
    """`[count, end - first]`: 1 at the place that each is, of those from `first` on."""
    steps = step_columns(site, ids, first, end + 1)
    sides = [site.slice_axis(steps, 1, k, k + end - first) for k in range(2)]
    return site.emit(op.Sub(), *sides)


def step_columns(site: Site, ids: Private, first: int, end: int) -> Private:
    """`[count, end - first]`: whether each is at the places from `first` on, or beyond."""
    places = np.arange(first, end)
    bounds = (
        np.where(places > 0, places - BESIDE, places - 1 + BESIDE)
        if ids.cast_to_integer
        else places - 0.5
    )
    return site.emit(op.Step(0), _minus_places(site, ids, bounds))


def number_of(site: Site, ids: Private) -> Private:
    """The places themselves of rows of zeros with a one, integers unless cast to floats."""
    shape, count = ids.shape[:-1], ids.shape[-1]
    rows = site.reshape(replace(ids, one_hot=False), (math.prod(shape), count))
    places = np.arange(count, dtype=np.float32)[:, None]
    number = site.reshape(site.emit(op.Dense(places, None), rows), shape)
    return replace(number, integer=ids.integer, whole=True, upper_bound=count)


def _minus_places(site: Site, ids: Private, places: Array) -> Private:
    """`[count, n]`: how far each is above each of n places."""
    count = math.prod(ids.shape)
    column = replace(site.reshape(ids, (count, 1)), integer=False)
    columns = site.broadcast(column, (count, len(places)))
    return site.emit(op.AddConstant(-places[None]), columns)


def where_constant(site: Site) -> Operand:
    """Elements of one tensor or another; minus infinity, or what stands for it, is a mask."""
    condition = site.constant(0, "condition").astype(bool)
    a, b = site.operand(1), site.operand(2)
    if not isinstance(a, Private):
        a, b, condition = b, a, ~condition
    assert isinstance(a, Private)
    shape = tuple(map(int, np.broadcast_shapes(condition.shape, a.shape, b.shape)))
    a = replace(site.broadcast(replace(a, neg_inf=None), shape), neg_inf=a.neg_inf)
    if condition.all():
        return a
    if isinstance(b, Private):
        if a.neg_inf is not None or b.neg_inf is not None:
            site.refuse("it chooses among masked elements", "Mask after it")
        return site.emit(
            op.Add(),
            keep_elements(site, a, condition),
            keep_elements(site, site.broadcast(b, shape), ~condition),
        )
    other_values = np.broadcast_to(real(b), shape)[~np.broadcast_to(condition, shape)]
    if (other_values <= BLOCKING).all():
        return mask_elements(site, a, np.broadcast_to(~condition, shape))
    if a.neg_inf is not None:
        site.refuse("it chooses among masked elements", "Mask after it")
    return site.emit(
        op.AddConstant(np.where(condition, 0.0, real(b))), keep_elements(site, a, condition)
    )


def keep_elements(site: Site, x: Private, keep_mask: Array) -> Private:
    """0 where an element is not kept; which ones are is public."""
    return times_public(site, x, keep_mask) if keep_mask.any() else site.emit(op.Sub(), x, x)


@operator("IsInf", since=10)
@operator("IsNaN", since=9)
def is_nan(site: Site) -> Operand:
    """Never: no private value is."""
    site.assume_present()
    return np.zeros(site.private(0).shape, dtype=bool)
