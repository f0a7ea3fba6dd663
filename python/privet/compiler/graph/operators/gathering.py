"""GatherElements, GatherND, ScatterElements, ScatterND, Compress, ReverseSequence and Trilu.

Places are constants, so that each is a map of elements along one flat axis.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Array, real
from privet.compiler.graph.operators.activation import extreme
from privet.compiler.graph.operators.comparison import BEYOND
from privet.compiler.graph.operators.rearrangement import as_private
from privet.compiler.graph.operators.selection import hits, kept, look_up, number_of, ones_at
from privet.compiler.graph.public_maps import pick
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site

_CONSTANT = "indices constant"
_BOUNDS = {"max": -1.0, "min": 1.0}
"""The side on which a number is no bound to a maximum or minimum."""


@operator("GatherElements", since=11, restrictions=f"{_CONSTANT}, or places of the last axis")
def gather_elements(site: Site) -> Operand:
    """An element for each index; at private places, a product with rows of zeros with a one."""
    ids = site.operand(1)
    if isinstance(ids, Private) and not isinstance(site.operand(0), Private):
        return _of_constant(site, site.constant(0, "table"), ids)
    x = site.private(0)
    if isinstance(ids, Private):
        shape = x.shape[:-1] if x.one_hot else x.shape
        hot = ones_at(site, ids)
        ahead = math.prod(shape[:-1])
        last = site.axis(site.attribute("axis", 0), len(shape)) == len(shape) - 1
        if not last or hot.shape[:-2] != shape[:-1] or hot.shape[-1] != shape[-1]:
            site.refuse("its places are not of the last axis", "Transpose before it")
        rows = site.reshape(x, (ahead, shape[-1], math.prod(x.shape) // (ahead * shape[-1])))
        result = site.emit(op.MatMul(), site.reshape(hot, (ahead, *hot.shape[-2:])), rows)
        gathered = site.reshape(result, (*ids.shape[: len(shape)], *x.shape[len(shape) :]))
        return replace(gathered, integer=x.integer, one_hot=x.one_hot)
    x = number_of(site, x) if x.one_hot else x
    places = _along_axis(site, x.shape, site.constant(1, "indices"))
    return _taken(site, x, places)


def _of_constant(site: Site, table: Array, ids: Private) -> Operand:
    """Elements of a constant at private places, if places mean the same in all of its rows."""
    axis = site.axis(site.attribute("axis", 0), table.ndim)
    rows = np.moveaxis(table, axis, -1).reshape(-1, table.shape[axis])
    if (rows != rows[0]).any():
        site.refuse(
            "it takes elements at private places from rows of a constant that are not alike",
            "Gather from one row of the constant",
        )
    if (rows == rows[0, 0]).all():
        return np.full(ids.shape[:-1] if ids.one_hot else ids.shape, rows[0, 0])
    return look_up(site, rows[0], ids)


@operator("GatherND", since=11, restrictions=f"{_CONSTANT}, or places of one axis")
def gather_nd(site: Site) -> Operand:
    """Elements or slices at tuples of indices, with batch_dims."""
    x, tuples = site.private(0), site.operand(1)
    batch = site.attribute("batch_dims", 0)
    if isinstance(tuples, Private):
        return _at_places(site, x, tuples, batch)
    indices = tuples.astype(np.int64)
    if batch:
        grid = np.indices(indices.shape[:batch]).reshape(batch, -1)
        grid = grid.reshape(batch, *indices.shape[:batch], *[1] * (indices.ndim - batch))
        grid = np.moveaxis(np.broadcast_to(grid, (batch, *indices.shape[:-1], 1))[..., 0], 0, -1)
        indices = np.concatenate([grid, indices], axis=-1)
    return _taken(site, x, _at_tuples(site, x.shape, indices))


def _at_places(site: Site, x: Private, tuples: Private, batch: int) -> Operand:
    """Elements or slices at private tuples whose last index alone tells one from another, such as
    the state of a text's last token: a product with rows of zeros with a one."""
    axis = batch + tuples.shape[-1] - 1
    ahead, among, inner = tuples.shape[:batch], tuples.shape[batch:-1], x.shape[axis + 1 :]
    if ahead != x.shape[:batch] or math.prod(x.shape[batch:axis]) != 1:
        site.refuse(
            "its indices depend on the private input and name places of several axes",
            "Take the places of one axis after the other",
        )
    size, rows = x.shape[axis], math.prod(ahead)
    last = site.part(tuples, len(tuples.shape) - 1, tuples.shape[-1] - 1, tuples.shape[-1])
    hot = hits(site, last, -size, size)
    hot = site.emit(op.Add(), site.part(hot, 1, 0, size), site.part(hot, 1, size, 2 * size))
    hot = site.reshape(hot, (rows, math.prod(among), size))
    result = site.emit(op.MatMul(), hot, site.reshape(x, (rows, size, math.prod(inner))))
    return replace(site.reshape(result, (*ahead, *among, *inner)), integer=x.integer)


@operator("Scatter", since=9, restrictions=_CONSTANT)
@operator("ScatterElements", since=11, restrictions=_CONSTANT)
def scatter_elements(site: Site) -> Operand:
    """Replaces elements, or adds to them, multiplies them or takes the larger or smaller; `Scatter`
    is the older name."""
    data = site.operand(0)
    return _scattered(site, data, _along_axis(site, data.shape, site.constant(1, "indices")))


@operator("ScatterND", since=11, restrictions=_CONSTANT)
def scatter_nd(site: Site) -> Operand:
    """The same at tuples of indices."""
    data = site.operand(0)
    indices = site.constant(1, "indices").astype(np.int64)
    return _scattered(site, data, _at_tuples(site, data.shape, indices))


@operator("Compress", since=9, restrictions="condition constant")
def compress(site: Site) -> Operand:
    """The slices of an axis, or elements of all, whose condition is true."""
    x = site.private(0)
    places = np.flatnonzero(site.constant(1, "condition")).tolist()
    if "axis" in {attribute.name for attribute in site.node.attribute}:
        return pick(site, x, site.axis(site.attribute("axis", 0), len(x.shape)), places)
    return pick(site, site.reshape(x, (math.prod(x.shape),)), 0, places)


@operator("ReverseSequence", since=10, restrictions="lengths constant")
def reverse_sequence(site: Site) -> Operand:
    """Reverses the beginning of each sequence of a batch."""
    x = site.private(0)
    time, batch = site.attribute("time_axis", 0), site.attribute("batch_axis", 1)
    lengths = site.constant(1, "lengths").astype(np.int64).ravel()
    grid = np.indices(x.shape[:2])
    ends = lengths[grid[batch]]
    grid[time] = np.where(grid[time] < ends, ends - 1 - grid[time], grid[time])
    return _taken(site, x, _at_tuples(site, x.shape, np.moveaxis(grid, 0, -1)))


@operator("Trilu", since=14, restrictions="k constant")
def trilu(site: Site) -> Operand:
    """The upper or lower triangle of matrices, zero elsewhere."""
    x = site.private(0)
    k = int(np.ravel(site.constant(1, "diagonal"))[0]) if site.has(1) else 0
    whole = np.ones(x.shape[-2:])
    return kept(site, x, np.triu(whole, k) if site.attribute("upper", 1) else np.tril(whole, k))


def _along_axis(site: Site, shape: tuple[int, ...], indices: Array) -> Array:
    """Flat places of indices that count along one axis."""
    axis = site.axis(site.attribute("axis", 0), len(shape))
    grid = np.indices(indices.shape)
    grid[axis] = np.where(indices < 0, indices + shape[axis], indices)
    return _flat(site, shape, grid)


def _at_tuples(site: Site, shape: tuple[int, ...], indices: Array) -> Array:
    """Flat places of the elements or slices that tuples of indices name."""
    depth = indices.shape[-1]
    sizes = np.asarray(shape[:depth])
    starts = _flat(
        site, shape[:depth], np.moveaxis(np.where(indices < 0, indices + sizes, indices), -1, 0)
    )
    rest = math.prod(shape[depth:])
    inner = np.arange(rest).reshape(shape[depth:])
    return np.asarray(np.multiply.outer(starts, np.full(inner.shape, rest)) + inner)


def _flat(site: Site, shape: tuple[int, ...], grid: Array) -> Array:
    try:
        return np.asarray(np.ravel_multi_index(tuple(grid), shape))
    except ValueError:
        site.refuse("its indices lie outside the tensor", "Check the model")


def _taken(site: Site, x: Private, places: Array) -> Private:
    flat = site.reshape(x, (math.prod(x.shape),))
    return site.reshape(pick(site, flat, 0, places.ravel().tolist()), places.shape)


def _scattered(site: Site, start: Operand, places: Array) -> Private:
    updates, reduction = as_private(site, site.operand(2)), site.attribute("reduction", "none")
    is_bound = False
    if not isinstance(start, Private) and reduction in _BOUNDS:
        # Exporters take maxima from the least float on, where every place has updates.
        everywhere = len(np.unique(places)) == start.size
        is_bound = everywhere and bool((_BOUNDS[reduction] * real(start) >= BEYOND).all())
        start = np.zeros_like(start) if is_bound else start
    data = as_private(site, start)
    if updates.shape != places.shape:
        site.refuse(f"updates {list(updates.shape)} at {list(places.shape)}", "Check the model")
    flat = site.reshape(data, (math.prod(data.shape),))
    flat_updates = site.reshape(updates, (math.prod(updates.shape),))
    left = np.arange(places.size)
    while left.size:
        # What hits one place several times comes one after the other.
        at, first = np.unique(places.ravel()[left], return_index=True)
        batch = left[first]
        fresh = pick(site, flat_updates, 0, batch.tolist())
        if reduction != "none" and not (is_bound and left.size == places.size):
            fresh = _reduced(site, reduction, pick(site, flat, 0, at.tolist()), fresh)
        sources = np.arange(flat.shape[0])
        sources[at] = flat.shape[0] + np.arange(len(at))
        flat = pick(site, site.emit(op.Concat(0), flat, fresh), 0, sources.tolist())
        left = np.setdiff1d(left, batch)
    return site.reshape(flat, data.shape)


def _reduced(site: Site, reduction: str, old: Private, new: Private) -> Private:
    match reduction:
        case "add":
            return site.emit(op.Add(), old, new)
        case "mul":
            return site.emit(op.Mul(), old, new)
        case "max" | "min":
            return extreme(site, [old, new], sign=1.0 if reduction == "max" else -1.0)
        case other:
            site.refuse(f"its reduction is {other}", "Use none, add, mul, max or min")
