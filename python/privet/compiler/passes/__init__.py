"""Passes over the typed graph, one per module; each is a pure function from graph to graph.

`simplify` runs those that keep the real function as it is, in the order that lets each find the
most; `fit_polynomials` or `tabulate_functions` replaces smooth functions unless they are to stay,
and on request `approximate_relus` does so with ReLU; `batch` widens the result
to several samples; `lower` turns the real graph into an integer one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from privet.compiler.graph import Graph
from privet.compiler.passes.approximate_relus import approximate_relus
from privet.compiler.passes.batch import batch
from privet.compiler.passes.check_masks import check_masks, has_private_masks, masks_hold
from privet.compiler.passes.check_ranges import check_ranges
from privet.compiler.passes.check_results import check_results
from privet.compiler.passes.fit_polynomials import fit_polynomials
from privet.compiler.passes.fold_affine import fold_affine
from privet.compiler.passes.fold_batchnorm import fold_batchnorm
from privet.compiler.passes.fold_forward import fold_forward
from privet.compiler.passes.join_elementwise import join_elementwise
from privet.compiler.passes.join_relus import join_relus
from privet.compiler.passes.keep_constants import keep_constants
from privet.compiler.passes.keep_saturations import keep_saturations, saturations
from privet.compiler.passes.merge_moves import merge_moves
from privet.compiler.passes.move_truncation import (
    Kind,
    function_scale,
    headroom_of,
    move_truncation,
)
from privet.compiler.passes.normalize_after import normalize_after
from privet.compiler.passes.pool_before_relu import pool_before_relu
from privet.compiler.passes.quantize import quantize
from privet.compiler.passes.select_by_steps import select_by_steps
from privet.compiler.passes.tabulate_functions import tabulate_functions


def simplify(graph: Graph, *, public_functions: bool = False, products: bool = False) -> Graph:
    """The same real function in fewer and cheaper operations.

    With `public_functions` constants in front of smooth functions stay with linear operations, and
    with `products` polynomials are products of values.
    """
    rewrites: list[Callable[[Graph], Graph]] = [
        merge_moves,
        select_by_steps,
        partial(join_elementwise, products=products),
        *([keep_constants] if public_functions else []),
        fold_affine,
        fold_batchnorm,
        fold_affine,
        fold_forward,
        join_relus,
        pool_before_relu,
        normalize_after,
        partial(merge_moves, shared=True),
    ]
    for rewrite in rewrites:
        graph = rewrite(graph)
    return graph


def lower(
    graph: Graph,
    *,
    ring_bits: int,
    scale_bits: int,
    weight_scale: int,
    margin: float,
    headroom: int | None = None,
    each: bool = False,
    narrow: bool = True,
    spare: int = 0,
) -> tuple[Graph, Graph]:
    """The integer graph of a real one whose values all have a magnitude, and before it the real one
    with the same nodes.

    With `each` every value has a scale of its own; with `narrow` rings hold what was measured and
    `spare` bits more, unless `headroom` is given. `headroom` is what `move_truncation` leaves
    above the point; by default, what was measured takes.
    Raises `OverflowRisk` if some value could leave the ring.
    """
    scaled_graph = move_truncation(
        graph,
        ring_bits=ring_bits,
        scale_bits=scale_bits,
        weight_scale=weight_scale,
        headroom=headroom_of(graph) if headroom is None else dict.fromkeys(Kind, headroom),
        each=each,
        narrow=narrow and headroom is None,
        spare=spare,
    )
    check_ranges(scaled_graph, ring_bits=ring_bits, scale_bits=scale_bits, margin=margin)
    return scaled_graph, quantize(scaled_graph)
