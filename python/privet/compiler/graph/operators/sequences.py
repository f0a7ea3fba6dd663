"""Sequences of tensors, whose lengths are known while the model is read."""

from __future__ import annotations

import numpy as np

from privet.compiler.graph.operators.rearrangement import as_private
from privet.compiler.graph.operators.selection import parts
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site, TensorList


@operator("SequenceEmpty", since=11)
def sequence_empty(_: Site) -> TensorList:
    """No tensors."""
    return TensorList(())


@operator("SequenceConstruct", since=11)
def sequence_construct(site: Site) -> TensorList:
    """Of private tensors and constants."""
    return TensorList(tuple(site.operands()))


@operator("SequenceInsert", since=11, restrictions="position constant")
def sequence_insert(site: Site) -> TensorList:
    """Before a position, or at the end."""
    items = site.sequence(0)
    position = _position(site, 2, len(items)) if site.has_input(2) else len(items)
    return TensorList((*items[:position], site.operand(1), *items[position:]))


@operator("SequenceErase", since=11, restrictions="position constant")
def sequence_erase(site: Site) -> TensorList:
    """At a position, or at the end."""
    items = site.sequence(0)
    at = _position(site, 1, len(items)) if site.has_input(1) else len(items) - 1
    return TensorList((*items[:at], *items[at + 1 :]))


@operator("SequenceAt", since=11, restrictions="position constant")
def sequence_at(site: Site) -> Operand:
    """The tensor at a position."""
    items = site.sequence(0)
    return items[_position(site, 1, len(items))]


@operator("SequenceLength", since=11)
def sequence_length(site: Site) -> Operand:
    """A constant."""
    return np.asarray(len(site.sequence(0)), np.int64)


@operator("SplitToSequence", since=11, restrictions="sizes constant")
def split_to_sequence(site: Site) -> TensorList:
    """Into parts of given sizes, or single slices of an axis."""
    x = site.private(0)
    axis = site.axis(site.attribute("axis", 0), len(x.shape))
    size = x.shape[axis]
    lengths = site.constant(1, "sizes") if site.has_input(1) else np.asarray(1)
    if lengths.ndim:
        sizes = [int(length) for length in lengths]
    else:
        full_count, rest = divmod(size, int(lengths))
        sizes = [int(lengths)] * full_count + [rest] * bool(rest)
    sections = parts(site, x, axis, sizes)
    if site.has_input(1) or site.attribute("keepdims", 1):
        return TensorList(sections)
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return TensorList(tuple(site.reshape(part, shape) for part in sections))


@operator("ConcatFromSequence", since=11)
def concat_from_sequence(site: Site) -> Operand:
    """Along an axis, or stacked along a new one."""
    items, stacks = site.sequence(0), bool(site.attribute("new_axis", 0))
    if not items:
        site.refuse("its sequence is empty", "Check the model")
    axis = site.axis(site.attribute("axis", 0), len(items[0].shape) + stacks)
    constants = [item for item in items if not isinstance(item, Private)]
    if len(constants) == len(items):
        return np.stack(constants, axis) if stacks else np.concatenate(constants, axis)
    source = next(item for item in items if isinstance(item, Private))
    private = [as_private(site, item, source) for item in items]
    if stacks:
        shapes = [(*item.shape[:axis], 1, *item.shape[axis:]) for item in items]
        private = [site.reshape(x, shape) for x, shape in zip(private, shapes, strict=True)]
    return site.concat(axis, private)


def _position(site: Site, index: int, count: int) -> int:
    position = int(site.constant(index, "position").ravel()[0])
    if not -count <= position <= count:
        site.refuse(f"position {position} of {count} tensors", "Check the model")
    return position % count if position < 0 else position
