"""Refuses a graph in which some value could leave its ring as measured, and says what to do.

After a truncation that is the narrower ring in which suites keep the value (`ring_widths`).
"""

from __future__ import annotations

import math

import numpy as np

from privet.compiler.graph import Graph, Node, Value
from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Array
from privet.compiler.passes.ring_widths import ring_widths
from privet.errors import OverflowRisk

GUARD_BITS = 2
"""Every integer stays below `2^(ring_bits - GUARD_BITS)`."""
WEIGHT_BITS_AT_MOST = 28
RING_BITS = range(16, 51)
SCALE_BITS = range(4, 21)
"""The widths and scales that a program may have."""


def check_ranges(graph: Graph, *, ring_bits: int, scale_bits: int, margin: float) -> Graph:
    """The graph itself, if every value, weight and bias fits. Raises `OverflowRisk`, which names
    the layer whose value needs the most bits."""
    producers = graph.producers()
    widths = ring_widths(graph, ring_bits)
    worst: tuple[int, int] | None = None
    for id, value in graph.values.items():
        magnitude, scale = _magnitude_and_scale(value)
        # However small the values are, their scale itself must fit.
        bits = max(bits_for(magnitude, scale), scale + 1) + ring_bits - widths[id]
        if bits > ring_bits and (worst is None or bits > worst[0]):
            worst = bits, id
    if worst is not None:
        bits, id = worst
        raise _overflow_risk(graph, producers.get(id), id, bits, ring_bits, scale_bits, margin)
    for output in graph.outputs:
        magnitude, scale = _magnitude_and_scale(graph.values[output.value])
        if 0 < magnitude < math.ldexp(margin, -scale - 1):
            raise OverflowRisk(
                f"output {output.name}: values up to {magnitude / margin:.4g} are all zero at "
                f"scale {scale}. Compile with a larger --scale, or rescale the model's weights",
                layer=output.name,
                magnitude=magnitude,
                bits_needed=ring_bits,
            )
    for node in graph.nodes:
        _check_constants(graph, node, ring_bits, scale_bits)
    return graph


def bits_for(magnitude: float, scale: int) -> int:
    """Ring bits for reals up to `magnitude` at this scale, guard bits included."""
    return max(math.frexp(magnitude)[1] + scale, 0) + GUARD_BITS


def _magnitude_and_scale(value: Value) -> tuple[float, int]:
    assert value.magnitude is not None, "ranges are measured before this pass"
    assert value.scale is not None, "move_truncation runs before this pass"
    return value.magnitude, value.scale


def _overflow_risk(
    graph: Graph,
    node: Node | None,
    id: int,
    bits: int,
    ring_bits: int,
    scale_bits: int,
    margin: float,
) -> OverflowRisk:
    value = graph.values[id]
    magnitude, scale = _magnitude_and_scale(value)
    layer = node.name if node else value.name
    operator = type(node.operation).__name__ if node else "input"
    # A value that stands at a multiple of the base scale gains that multiple per bit given up.
    lower_scale = scale_bits - math.ceil((bits - ring_bits) / max(scale // scale_bits, 1))
    options = ["with calibration inputs closer to the real ones"]
    if lower_scale in SCALE_BITS:
        options.insert(0, f"with --scale {lower_scale} or less")
    if bits in RING_BITS:
        options.insert(0, f"with --bits {bits} or more")
    return OverflowRisk(
        f"layer {layer} ({operator}): values up to {magnitude:.4g} (measured "
        f"{magnitude / margin:.4g}, margin {margin:g}) need {bits} bits at scale {scale}, and the "
        f"ring has {ring_bits}. "
        f"Compile {', '.join(options[:-1])}{', or ' if options[1:] else ''}{options[-1]}",
        layer=layer,
        magnitude=magnitude,
        bits_needed=bits,
    )


def _check_constants(graph: Graph, node: Node, ring_bits: int, scale_bits: int) -> None:
    _, scale = _magnitude_and_scale(graph.values[node.output])
    _, input_scale = _magnitude_and_scale(graph.values[node.inputs[0]])
    weight: Array | None = None
    bias: Array | None = None
    match node.operation:
        case op.Conv2d() | op.Dense() as layer:
            weight, bias = layer.weight, layer.bias
        case op.Scale() as layer:
            weight = layer.weight
        case op.AddConstant() as layer:
            bias = layer.bias
        case op.Polynomial(coefficients=coefficients):
            bias, scale = coefficients, op.COEFFICIENT_BITS
    guarded_bits = ring_bits - GUARD_BITS
    if weight is not None:
        limit = min(WEIGHT_BITS_AT_MOST, guarded_bits // 4 * 4)
        _check_constant_bits(node, "weights", weight, scale - input_scale, limit, scale_bits)
    if bias is not None:
        _check_constant_bits(node, "biases", bias, scale, guarded_bits, scale_bits)


def _check_constant_bits(
    node: Node, part: str, constants: Array, scale: int, limit: int, scale_bits: int
) -> None:
    magnitude = float(np.abs(constants).max(initial=0.0))
    if part == "weights" and 0 < magnitude < math.ldexp(1.0, -scale - 1):
        raise OverflowRisk(
            f"layer {node.name}: {part} up to {magnitude:.4g} are all zero at scale {scale}. "
            "Compile with a larger --scale, or rescale the model's weights",
            layer=node.name,
            magnitude=magnitude,
            bits_needed=limit + GUARD_BITS,
        )
    bits = math.frexp(magnitude)[1] + scale if magnitude else 0
    if bits > limit:
        raise OverflowRisk(
            f"layer {node.name}: {part} up to {magnitude:.4g} need {bits} bits at scale {scale}, "
            f"and at most {limit} are possible. Compile with more --bits, with a --scale below "
            f"{scale_bits}, or rescale the model's weights",
            layer=node.name,
            magnitude=magnitude,
            bits_needed=bits + GUARD_BITS,
        )
