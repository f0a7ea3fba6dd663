"""The ring that suites `gmw` and `fss` keep each value in.

A truncation drops the low bits of shares, so that its result lies in a ring that is narrower by as
many bits, until a step needs the wide one. The parties' planner follows the same rule
(`crates/suites/src/sharing/plan.rs`), and a test holds the two together; where a suite is wider
than this, it holds more.
"""

from __future__ import annotations

from privet.compiler.graph import Graph
from privet.compiler.graph import operations as op


def ring_widths(graph: Graph, ring_bits: int) -> dict[int, int]:
    """Bits of the ring that each value of an integer graph is made in."""
    current_widths = dict.fromkeys(graph.values, ring_bits)
    width_of = dict(current_widths)
    for node in graph.nodes:
        widths = {current_widths[id] for id in node.inputs}
        drops_bits = isinstance(node.operation, op.Truncate) and node.operation.bits > 0
        if node.operation.reads_ring or drops_bits or len(widths) > 1:
            current_widths.update(dict.fromkeys(node.inputs, ring_bits))
        width = ring_bits if node.operation.makes_ring else current_widths[node.inputs[0]]
        if isinstance(node.operation, op.Truncate):
            width -= node.operation.bits
            width = min(width, node.operation.width or width)
        current_widths[node.output] = width_of[node.output] = width
    return width_of
