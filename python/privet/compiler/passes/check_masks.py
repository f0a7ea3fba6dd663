"""Refuses masks that do not lower elements far enough for a softmax to leave them out."""

from __future__ import annotations

from privet.compiler.graph import Graph
from privet.compiler.graph.operations import MASKED, AddConstant, MaxPool2d, Reshape
from privet.errors import Problem, UnsupportedModel

NOTHING = 16.0
"""The exponential function of less than minus this is 0 at every scale."""


def check_masks(graph: Graph) -> Graph:
    """The graph itself; values need magnitudes.

    # Errors
    `UnsupportedModel` with every mask in front of which values are too large.
    """
    producers = graph.producers()
    problems = []
    for node in graph.nodes:
        if not isinstance(node.operation, MaxPool2d):
            continue
        before = producers.get(node.inputs[0])
        if before is not None and isinstance(before.operation, Reshape):
            before = producers.get(before.inputs[0])
        if before is None or not isinstance(before.operation, AddConstant):
            continue
        reach = graph.values[before.inputs[0]].magnitude or 0.0
        if (before.operation.bias == -MASKED).any() and 2.0 * reach + NOTHING > MASKED:
            most = (MASKED - NOTHING) / 2.0
            why = f"what it masks reaches {reach:.4g}, and at most {most:g} is possible"
            instead = "Give calibration inputs, or scale the scores as attention does"
            problems.append(Problem(node.name, "Softmax", why, instead))
    if problems:
        raise UnsupportedModel(problems)
    return graph
