"""ReduceMean, ReduceSum and ArgMax."""

from __future__ import annotations

import math

from privet.compiler.graph.operations import NO_PADDING, ArgMax, AvgPool2d, Transpose
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site


@operator("ReduceMean", restrictions="axes constant")
def reduce_mean(site: Site) -> Operand:
    """Over any axes, given as an attribute or an input."""
    return _reduce(site, mean=True)


@operator("ReduceSum", restrictions="axes constant")
def reduce_sum(site: Site) -> Operand:
    """Over any axes, given as an attribute or an input."""
    return _reduce(site, mean=False)


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
    return site.emit(ArgMax(axis, keepdims, select_last), x)


def _reduce(site: Site, *, mean: bool) -> Private:
    x = site.private(0)
    rank = len(x.shape)
    axes = sorted({site.axis(axis, rank) for axis in site.ints_of("axes", 1) or []})
    if not axes:
        if site.attribute("noop_with_empty_axes", 0):
            return x
        axes = list(range(rank))
    kept = [axis for axis in range(rank) if axis not in axes]
    count = math.prod(x.shape[axis] for axis in axes)
    turned = x
    if kept + axes != list(range(rank)):
        turned = site.emit(Transpose((*kept, *axes)), x)
    rows = math.prod(x.shape) // count
    pool = AvgPool2d(
        kernel=(1, count),
        stride=(1, 1),
        padding=NO_PADDING,
        dilation=(1, 1),
        size=(1, 1),
        factors=(1.0 / count if mean else 1.0,),
    )
    reduced = site.emit(pool, site.reshape(turned, (1, rows, 1, count)))
    if site.attribute("keepdims", 1):
        return site.reshape(reduced, [1 if i in axes else x.shape[i] for i in range(rank)])
    return site.reshape(reduced, [x.shape[axis] for axis in kept])
