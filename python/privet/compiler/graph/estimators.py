"""Estimators of scikit-learn that are refused as a whole, known by what skl2onnx writes of them.

Their nodes one by one would say little to who fitted the estimator.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import onnx

from privet.errors import Problem

ROUNDED = "a cast rounds what it reads to integers"
"""Why an operator is refused that reads what a cast cut off, as these estimators' operators do."""


@dataclass(frozen=True)
class _Estimator:
    """`matches` tells a node that nothing else has; problems of `operators` are the estimator's."""

    name: str
    matches: Callable[[onnx.NodeProto], bool]
    operators: Collection[str]
    why: str
    instead: str


_ESTIMATORS = (
    _Estimator(
        "QuantileTransformer",
        lambda node: any(name.startswith("quantiles_neg_rev") for name in node.input),
        ("Cast", "Gather"),
        "its export searches quantiles step by step at private places",
        "Transform at the client before the model, or fit with PowerTransformer or "
        "KBinsDiscretizer(encode='ordinal') in its place",
    ),
    _Estimator(
        "GaussianProcessClassifier",
        lambda node: node.op_type == "Solve",
        ("Solve", "Cast", "ArrayFeatureExtractor"),
        "its export has an operator Solve that ONNX Runtime lacks, too, and probabilities need it",
        "Ask for labels alone (--reveal label), or take SVC",
    ),
)


def group_by_estimator(
    nodes: Sequence[onnx.NodeProto], problems: Sequence[Problem]
) -> list[Problem]:
    """The problems, with one for each such estimator in place of those of its operators."""
    other_problems, estimator_problems = list(problems), []
    for estimator in _ESTIMATORS:
        node = next(filter(estimator.matches, nodes), None)
        if node is not None:
            name = node.name or node.output[0]
            estimator_problems.append(
                Problem(name, estimator.name, estimator.why, estimator.instead)
            )
            other_problems = [
                problem for problem in other_problems if problem.operator not in estimator.operators
            ]
            other_problems = [problem for problem in other_problems if problem.why != ROUNDED]
    return estimator_problems + other_problems
