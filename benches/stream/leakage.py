"""Experiment 5: what permuted tensors tell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benches.stream.models import Prepared, table
from privet.research.stream import leakage
from privet.research.stream.leakage import PAPER, attacks, correlations, fresh

DRAWS = 5


def report(models: Sequence[Prepared]) -> str:
    """Table VI on tensors of the models and on random ones, and attacks beside their controls."""
    found: dict[int, list[float]] = {}
    for model in models:
        for row in correlations(model.compiled, [None, None]):
            found.setdefault(row.exponent, []).append(row.correlation)
    rng = np.random.default_rng(0)
    rows = []
    for exponent, paper in PAPER.items():
        order = fresh(1 << exponent)
        drawn = []
        for number in range(DRAWS):
            tensor = rng.standard_normal(1 << exponent)
            drawn.append(leakage.distance_correlation(tensor, tensor[order(number)]))
        of_models = f"{np.mean(found[exponent]):.4f}" if exponent in found else ""
        rows.append([f"2^{exponent}", of_models, f"{np.mean(drawn):.4f}", f"{paper:.4f}"])
    lengths = table(["length", "tensors of the models", "random tensors", "paper"], rows)
    tried = attacks()
    lines = [[name, *(f"{it:.2f}" for it in each.values())] for name, each in tried.items()]
    attacked = table(["order", *leakage.ATTACKS], lines)
    return (
        "## 5. Leakage\n\nDistance correlation before and after permutation (measured). **Weaker: "
        f"values are revealed up to order.**\n\n{lengths}\nWeights of a dense layer that repeated "
        f"queries find (1: all, 0: as by chance; measured).\n\n{attacked}"
    )
