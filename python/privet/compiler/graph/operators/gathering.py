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
from privet.compiler.graph.operators.selection import (
    as_one_hot,
    keep_elements,
    look_up,
    number_of,
    one_hot_columns,
)
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
        return _gather_constant(site, site.constant(0, "table"), ids)
    x = site.private(0)
    if isinstance(ids, Private):
        shape = x.shape[:-1] if x.one_hot else x.shape
        one_hot = as_one_hot(site, ids)
        leading = math.prod(shape[:-1])
        is_last_axis = site.axis(site.attribute("axis", 0), len(shape)) == len(shape) - 1
        if not is_last_axis or one_hot.shape[:-2] != shape[:-1] or one_hot.shape[-1] != shape[-1]:
            site.refuse("its places are not of the last axis", "Transpose before it")
        rows = site.reshape(x, (leading, shape[-1], math.prod(x.shape) // (leading * shape[-1])))
        result = site.emit(op.MatMul(), site.reshape(one_hot, (leading, *one_hot.shape[-2:])), rows)
        gathered = site.reshape(result, (*ids.shape[: len(shape)], *x.shape[len(shape) :]))
        return replace(gathered, integer=x.integer, one_hot=x.one_hot)
    x = number_of(site, x) if x.one_hot else x
    places = _flat_along_axis(site, x.shape, site.constant(1, "indices"))
    return _gather_flat(site, x, places)


def _gather_constant(site: Site, table: Array, ids: Private) -> Operand:
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
    batch_dims = site.attribute("batch_dims", 0)
    if isinstance(tuples, Private):
        return _gather_at_private(site, x, tuples, batch_dims)
    indices = tuples.astype(np.int64)
    if batch_dims:
        grid = np.indices(indices.shape[:batch_dims]).reshape(batch_dims, -1)
        grid = grid.reshape(
            batch_dims, *indices.shape[:batch_dims], *[1] * (indices.ndim - batch_dims)
        )
        grid = np.moveaxis(
            np.broadcast_to(grid, (batch_dims, *indices.shape[:-1], 1))[..., 0], 0, -1
        )
        indices = np.concatenate([grid, indices], axis=-1)
    return _gather_flat(site, x, _flat_of_tuples(site, x.shape, indices))


def _gather_at_private(site: Site, x: Private, tuples: Private, batch_dims: int) -> Operand:
    """Elements or slices at private tuples whose last index alone tells one from another, such as
    the state of a text's last token: a product with rows of zeros with a one."""
    axis = batch_dims + tuples.shape[-1] - 1
    leading, middle, trailing = (
        tuples.shape[:batch_dims],
        tuples.shape[batch_dims:-1],
        x.shape[axis + 1 :],
    )
    if leading != x.shape[:batch_dims] or math.prod(x.shape[batch_dims:axis]) != 1:
        site.refuse(
            "its indices depend on the private input and name places of several axes",
            "Take the places of one axis after the other",
        )
    size, rows = x.shape[axis], math.prod(leading)
    last_index = site.slice_axis(
        tuples, len(tuples.shape) - 1, tuples.shape[-1] - 1, tuples.shape[-1]
    )
    one_hot = one_hot_columns(site, last_index, -size, size)
    one_hot = site.emit(
        op.Add(), site.slice_axis(one_hot, 1, 0, size), site.slice_axis(one_hot, 1, size, 2 * size)
    )
    one_hot = site.reshape(one_hot, (rows, math.prod(middle), size))
    result = site.emit(op.MatMul(), one_hot, site.reshape(x, (rows, size, math.prod(trailing))))
    return replace(site.reshape(result, (*leading, *middle, *trailing)), integer=x.integer)


@operator("Scatter", since=9, restrictions=_CONSTANT)
@operator("ScatterElements", since=11, restrictions=_CONSTANT)
def scatter_elements(site: Site) -> Operand:
    """Replaces elements, or adds to them, multiplies them or takes the larger or smaller; `Scatter`
    is the older name."""
    data = site.operand(0)
    return _scatter_flat(
        site, data, _flat_along_axis(site, data.shape, site.constant(1, "indices"))
    )


@operator("ScatterND", since=11, restrictions=_CONSTANT)
def scatter_nd(site: Site) -> Operand:
    """The same at tuples of indices."""
    data = site.operand(0)
    indices = site.constant(1, "indices").astype(np.int64)
    return _scatter_flat(site, data, _flat_of_tuples(site, data.shape, indices))


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
    return _gather_flat(site, x, _flat_of_tuples(site, x.shape, np.moveaxis(grid, 0, -1)))


@operator("Trilu", since=14, restrictions="k constant")
def trilu(site: Site) -> Operand:
    """The upper or lower triangle of matrices, zero elsewhere."""
    x = site.private(0)
    k = int(np.ravel(site.constant(1, "diagonal"))[0]) if site.has_input(1) else 0
    ones = np.ones(x.shape[-2:])
    return keep_elements(
        site, x, np.triu(ones, k) if site.attribute("upper", 1) else np.tril(ones, k)
    )


def _flat_along_axis(site: Site, shape: tuple[int, ...], indices: Array) -> Array:
    """Flat places of indices that count along one axis."""
    axis = site.axis(site.attribute("axis", 0), len(shape))
    grid = np.indices(indices.shape)
    grid[axis] = np.where(indices < 0, indices + shape[axis], indices)
    return _flat_indices(site, shape, grid)


def _flat_of_tuples(site: Site, shape: tuple[int, ...], indices: Array) -> Array:
    """Flat places of the elements or slices that tuples of indices name."""
    depth = indices.shape[-1]
    sizes = np.asarray(shape[:depth])
    starts = _flat_indices(
        site, shape[:depth], np.moveaxis(np.where(indices < 0, indices + sizes, indices), -1, 0)
    )
    slice_size = math.prod(shape[depth:])
    slice_offsets = np.arange(slice_size).reshape(shape[depth:])
    return np.asarray(
        np.multiply.outer(starts, np.full(slice_offsets.shape, slice_size)) + slice_offsets
    )


def _flat_indices(site: Site, shape: tuple[int, ...], grid: Array) -> Array:
    try:
        return np.asarray(np.ravel_multi_index(tuple(grid), shape))
    except ValueError:
        site.refuse("its indices lie outside the tensor", "Check the model")


def _gather_flat(site: Site, x: Private, places: Array) -> Private:
    flat = site.reshape(x, (math.prod(x.shape),))
    return site.reshape(pick(site, flat, 0, places.ravel().tolist()), places.shape)


def _scatter_flat(site: Site, data_operand: Operand, places: Array) -> Private:
    updates, reduction = as_private(site, site.operand(2)), site.attribute("reduction", "none")
    is_bound = False
    if not isinstance(data_operand, Private) and reduction in _BOUNDS:
        # Exporters take maxima from the least float on, where every place has updates.
        covers_all = len(np.unique(places)) == data_operand.size
        is_bound = covers_all and bool((_BOUNDS[reduction] * real(data_operand) >= BEYOND).all())
        data_operand = np.zeros_like(data_operand) if is_bound else data_operand
    data = as_private(site, data_operand)
    if updates.shape != places.shape:
        site.refuse(f"updates {list(updates.shape)} at {list(places.shape)}", "Check the model")
    flat = site.reshape(data, (math.prod(data.shape),))
    flat_updates = site.reshape(updates, (math.prod(updates.shape),))
    remaining = np.arange(places.size)
    while remaining.size:
        # What hits one place several times comes one after the other.
        targets, first = np.unique(places.ravel()[remaining], return_index=True)
        batch = remaining[first]
        new_values = pick(site, flat_updates, 0, batch.tolist())
        if reduction != "none" and not (is_bound and remaining.size == places.size):
            new_values = _reduce(site, reduction, pick(site, flat, 0, targets.tolist()), new_values)
        sources = np.arange(flat.shape[0])
        sources[targets] = flat.shape[0] + np.arange(len(targets))
        flat = pick(site, site.emit(op.Concat(0), flat, new_values), 0, sources.tolist())
        remaining = np.setdiff1d(remaining, batch)
    return site.reshape(flat, data.shape)


def _reduce(site: Site, reduction: str, data: Private, updates: Private) -> Private:
    match reduction:
        case "add":
            return site.emit(op.Add(), data, updates)
        case "mul":
            return site.emit(op.Mul(), data, updates)
        case "max" | "min":
            return extreme(site, [data, updates], sign=1.0 if reduction == "max" else -1.0)
        case other:
            site.refuse(f"its reduction is {other}", "Use none, add, mul, max or min")
