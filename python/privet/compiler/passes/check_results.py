"""Refuses outputs that have no room in the modulus in which encrypted results are decrypted."""

from __future__ import annotations

import math

from privet.compiler.graph import Graph
from privet.errors import Problem, UnsupportedModel

MOST_RESULT = 128.0
"""Results hold magnitudes up to this, and may wrap beyond: `most_result` of a plan of suite `ckks`,
which a test compares."""


def check_results(graph: Graph, *, margin: float) -> Graph:
    """The graph itself; values need magnitudes. Raises `UnsupportedModel` with every output that
    wraps on calibration inputs.

    What wraps are coefficients, which mix a ciphertext's numbers and are mostly smaller than the
    largest of these, and a client is told of a result that has wrapped. So the `margin` is left to
    them.
    """
    problems = []
    for output in graph.outputs:
        magnitude = (graph.values[output.value].magnitude or 0.0) / margin
        if magnitude > MOST_RESULT:
            why = (
                f"it reaches {magnitude:.4g} on calibration inputs, and an encrypted result holds "
                f"up to {MOST_RESULT:g}"
            )
            instead = (
                f"Divide it by {math.ceil(magnitude / MOST_RESULT)} or more in the model and "
                "multiply the answers, or choose another suite"
            )
            problems.append(Problem(output.name, "graph output", why, instead))
    if problems:
        raise UnsupportedModel(problems)
    return graph
