"""Slice, Split and Gather: parts of a tensor at public places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privet.compiler.graph.operations import Concat, Slice
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site


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
    whole = [(0, size, 1) for size in x.shape]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        whole[axis] = slice(start, end, step).indices(x.shape[axis])
        if not len(range(*whole[axis])):
            site.refuse("it keeps no element", "Check the model")
    return _slice(site, x, whole)


@operator("Split", restrictions="sizes constant")
def split(site: Site) -> tuple[Operand, ...]:
    """Into equal or given parts."""
    x = site.private(0)
    axis = site.axis(site.attribute("axis", 0), len(x.shape))
    size, count = x.shape[axis], site.outputs
    sizes = site.ints_of("split", 1)
    if sizes is None:
        part = -(-size // count)
        sizes = [part] * (count - 1) + [size - part * (count - 1)]
    if len(sizes) != count or sum(sizes) != size or min(sizes) < 1:
        site.refuse(f"it splits {size} elements into {sizes}", "Check the model's shapes")
    ends = np.cumsum(sizes)
    parts = []
    for end, part in zip(ends, sizes, strict=True):
        whole = [(0, size, 1) for size in x.shape]
        whole[axis] = (int(end) - part, int(end), 1)
        parts.append(_slice(site, x, whole))
    return tuple(parts)


@operator("Gather", restrictions="indices constant")
def gather(site: Site) -> Operand:
    """Any elements along an axis, in any order."""
    x = site.private(0)
    indices = site.constant(1, "indices").astype(np.int64)
    axis = site.axis(site.attribute("axis", 0), len(x.shape))
    size = x.shape[axis]
    flat = np.where(indices < 0, indices + size, indices).reshape(-1)
    if not len(flat) or flat.min() < 0 or flat.max() >= size:
        site.refuse("its indices lie outside the tensor", "Check the model")
    picked = pick(site, x, axis, flat.tolist())
    return site.reshape(picked, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


def pick(site: Site, x: Private, axis: int, indices: Sequence[int]) -> Private:
    """The elements at `indices` of an axis: a slice for each run of equal steps."""
    parts: list[Private] = []
    first = 0
    while first < len(indices):
        last = first + 1
        step = indices[last] - indices[first] if last < len(indices) else 1
        while step and last < len(indices) and indices[last] - indices[last - 1] == step:
            last += 1
        if not 0 <= indices[first] < x.shape[axis]:
            site.refuse(f"index {indices[first]} of {x.shape[axis]}", "Check the model")
        whole = [(0, size, 1) for size in x.shape]
        end = indices[last - 1] + (1 if step >= 0 else -1)
        whole[axis] = (indices[first], end, step or 1)
        parts.append(_slice(site, x, whole))
        first = last
    return parts[0] if len(parts) == 1 else site.emit(Concat(axis), *parts)


def _slice(site: Site, x: Private, bounds: list[tuple[int, int, int]]) -> Private:
    if all(bound == (0, size, 1) for bound, size in zip(bounds, x.shape, strict=True)):
        return x
    starts, ends, steps = zip(*bounds, strict=True)
    return site.emit(Slice(tuple(starts), tuple(ends), tuple(steps)), x)
