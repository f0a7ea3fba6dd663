"""Refuses a graph in which some value could leave the ring, and says what to do."""

from __future__ import annotations

import math

import numpy as np

from privet.errors import OverflowRisk
from privet.graph import Graph, Node
from privet.graph import operations as op

GUARD_BITS = 2
"""Every integer stays below `2^(ring_bits - GUARD_BITS)`."""
WEIGHT_BITS_AT_MOST = 28


def check_ranges(graph: Graph, *, ring_bits: int, scale_bits: int, margin: float) -> Graph:
    """The graph itself, if every value, weight and bias fits.

    # Errors
    `OverflowRisk`, which names the layer whose value needs the most bits.
    """
    producers = graph.producers()
    worst: tuple[int, int] | None = None
    for id, value in graph.values.items():
        assert value.magnitude is not None and value.scale is not None
        needed = bits_for(value.magnitude, value.scale)
        if needed > ring_bits and (worst is None or needed > worst[0]):
            worst = needed, id
    if worst is not None:
        needed, id = worst
        raise _risk(graph, producers.get(id), id, needed, ring_bits, scale_bits, margin)
    for node in graph.nodes:
        _check_constants(graph, node, ring_bits, scale_bits)
    return graph


def bits_for(magnitude: float, scale: int) -> int:
    """Ring bits for reals up to `magnitude` at this scale, guard bits included."""
    return max(math.frexp(magnitude)[1] + scale, 0) + GUARD_BITS


def _risk(
    graph: Graph,
    node: Node | None,
    id: int,
    needed: int,
    ring_bits: int,
    scale_bits: int,
    margin: float,
) -> OverflowRisk:
    value = graph.values[id]
    magnitude, scale = value.magnitude, value.scale
    assert magnitude is not None and scale is not None
    layer = node.name if node else value.name
    kind = type(node.operation).__name__ if node else "input"
    # A value that stands at a multiple of the base scale gains that multiple per bit given up.
    less = scale_bits - math.ceil((needed - ring_bits) / max(scale // scale_bits, 1))
    return OverflowRisk(
        f"layer {layer} ({kind}): values up to {magnitude:.4g} (measured {magnitude / margin:.4g}, "
        f"margin {margin:g}) need {needed} bits at scale {scale}, and the ring has {ring_bits}. "
        f"Compile with --bits {needed} or more, with --scale {max(less, 1)} or less, or with "
        "calibration inputs closer to the real ones",
        layer=layer,
        magnitude=magnitude,
        bits_needed=needed,
    )


def _check_constants(graph: Graph, node: Node, ring_bits: int, scale_bits: int) -> None:
    scale = graph.values[node.output].scale
    assert scale is not None
    match node.operation:
        case op.Conv2d(weight=weight, bias=bias) | op.Dense(weight=weight, bias=bias):
            pass
        case op.Scale(weight=weight):
            bias = None
        case op.AddConstant(bias=bias):
            weight = None
        case _:
            return
    if weight is not None:
        limit = min(WEIGHT_BITS_AT_MOST, (ring_bits - GUARD_BITS) // 4 * 4)
        rise = scale - (graph.values[node.inputs[0]].scale or 0)
        _check(node, "weights", float(np.abs(weight).max()), rise, limit, scale_bits)
    if bias is not None:
        _check(node, "biases", float(np.abs(bias).max()), scale, ring_bits - GUARD_BITS, scale_bits)


def _check(
    node: Node, what: str, magnitude: float, scale: int, limit: int, scale_bits: int
) -> None:
    if not math.isfinite(magnitude):
        needed = 64
    else:
        needed = math.frexp(magnitude)[1] + scale + 1 if magnitude else 0
    if needed > limit:
        raise OverflowRisk(
            f"layer {node.name}: {what} up to {magnitude:.4g} need {needed} bits at scale {scale}, "
            f"and at most {limit} are possible. Compile with more --bits, with a --scale below "
            f"{scale_bits}, or rescale the model's weights",
            layer=node.name,
            magnitude=magnitude,
            bits_needed=needed + GUARD_BITS,
        )
