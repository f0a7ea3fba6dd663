"""The order of floating-point numbers as integers, and the inputs of which nothing else is read.

Trees compare their features with thresholds and do nothing else with them. So a client may give the
place of a number in the order of all float32, which is its bits read as sign and magnitude: the
comparison is then exact for every number, whatever its size, and needs no scale and no bound.
"""

from __future__ import annotations

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.graph import Graph
from privet.compiler.graph.operations import Array

PLACE_BITS = 31
"""Places of finite numbers and of infinity are below `2^31 - 2^22` in magnitude."""

INFINITY, MISSING = 0x7F800000, 0x7FFFFFFF
"""The places of infinity, and of a missing value."""


def places(reals: Array) -> Array:
    """The place of each number, rounded to float32, in their order; equal numbers share one.

    NaN, a missing value, is behind all others.
    """
    bits = reals.astype(np.float32).view(np.int32).astype(np.int64)
    return np.where(np.isnan(reals), MISSING, np.where(bits < 0, -(bits & MISSING), bits))


def number_at(place: Array) -> Array:
    """The float32 of a place, up to those of infinity."""
    signs = np.where(place < 0, 1 << 31, 0)
    return (np.abs(place) | signs).astype(np.uint32).view(np.float32)


MOVING = (op.Broadcast, op.Concat, op.Reshape, op.Slice, op.Transpose)


def compared_values(graph: Graph) -> set[int]:
    """Inputs that nothing but trees reads, perhaps rearranged and joined, and what that makes of
    them. Without trees there are none: an input that nothing reads is like any other."""
    if not any(isinstance(node.operation, op.Trees) for node in graph.nodes):
        return set()
    move_nodes = [node for node in graph.nodes if isinstance(node.operation, MOVING)]
    other_values = {output.value for output in graph.outputs}
    for node in graph.nodes:
        if not isinstance(node.operation, MOVING):
            other_values.add(node.output)
            other_values.update(() if isinstance(node.operation, op.Trees) else node.inputs)
    size = -1
    while size < len(other_values):  # what one side of a join may not be, the other may not, either
        size = len(other_values)
        for node in (*reversed(move_nodes), *move_nodes):
            if other_values.intersection((*node.inputs, node.output)):
                other_values.update((*node.inputs, node.output))
    compared_ids = {entry.value for entry in graph.inputs if not entry.one_hot} - other_values
    for node in move_nodes:
        if compared_ids.intersection(node.inputs):
            compared_ids.add(node.output)
    return compared_ids


def may_be_missing(graph: Graph) -> set[int]:
    """Those of `compared_values` of which any number may be NaN."""
    trees = [node.operation for node in graph.nodes if isinstance(node.operation, op.Trees)]
    return compared_values(graph) if all(tree.missing for tree in trees) else set()


def only_compares(graph: Graph) -> bool:
    """Whether the graph is trees on places of its inputs: no value can leave its range."""
    all_compare = all(isinstance(node.operation, (*MOVING, op.Trees)) for node in graph.nodes)
    return all_compare and {entry.value for entry in graph.inputs} <= compared_values(graph)
