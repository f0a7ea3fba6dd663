"""Refuses outputs that have no room in the modulus in which encrypted results are decrypted."""

from __future__ import annotations

import math

from privet.compiler.graph import Graph
from privet.errors import Problem, UnsupportedModel

MOST_RESULT = 128.0
"""Results hold magnitudes up to this, and wrap beyond: `HeadroomBits` of `ckks/internal/params`."""


def check_results(graph: Graph) -> Graph:
    """The graph itself; values need magnitudes. Raises `UnsupportedModel` with every output that
    may wrap."""
    problems = []
    for output in graph.outputs:
        reach = graph.values[output.value].magnitude or 0.0
        if reach > MOST_RESULT:
            why = (
                f"it reaches {reach:.4g}, with the margin of calibration, and an encrypted result "
                f"holds up to {MOST_RESULT:g}"
            )
            instead = (
                f"Divide it by {math.ceil(reach / MOST_RESULT)} or more in the model and multiply "
                "the answers, or choose another suite"
            )
            problems.append(Problem(output.name, "graph output", why, instead))
    if problems:
        raise UnsupportedModel(problems)
    return graph
