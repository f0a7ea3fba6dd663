"""Experiment 1: scaling factors, their accuracy and what they cost."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from benches.machine import ROOT
from benches.stream.models import Prepared, table
from privet.compiler.compile import compile
from privet.research.stream.scaling import Scaling
from privet.research.stream.survey import scaling_of
from privet.stream.cipher import PAILLIER
from privet.stream.profile import profile

TRAINED = ("breast-mlp", "digits-cnn")
"""Models that are trained on real data, with the samples that training did not see."""

WEIGHT_BITS = {2: 7, 3: 10, 4: 14, 5: 17, 6: 20}
"""Fractional bits that hold so many decimals, as far as a program takes them."""


def report(models: Sequence[Prepared]) -> str:
    """Tables IV and 6 of the paper, for what is trained here, and for all models."""
    rows = []
    for name in TRAINED:
        folder = ROOT / "zoo" / "models"
        found = scaling_of(folder / f"{name}.onnx", folder / f"{name}.npz")
        rows.append([name, *_accuracies(found), f"{100 * found.original:.2f}"])
    head = ["model", *(f"10^{decimals}" for decimals in range(7)), "original"]
    accuracy = table(head, rows)
    costs = []
    for model in models:
        cells = [f"{_linear(model, bits):.3f}" for bits in WEIGHT_BITS.values()]
        costs.append([model.name, *cells])
    cost = table(["model", *(f"10^{it}" for it in WEIGHT_BITS)], costs)
    return (
        "## 1. Scaling factors\n\nAccuracy in % (real data that training did not see; "
        "measured); the "
        f"last is the factor chosen.\n\n{accuracy}\nCPU seconds of all linear stages by factor "
        f"(measured).\n\n{cost}"
    )


def _accuracies(found: Scaling) -> list[str]:
    shown = [f"{100 * it:.2f}" for it in found.accuracies]
    shown[-1] = f"**{shown[-1]}**"
    return shown + ["-"] * (7 - len(shown))


def _linear(model: Prepared, bits: int) -> float:
    compiled = compile(
        onnx.load(model.path), bits=50, weight_scale=bits, input_range=(0, 1), name=model.name
    )
    public, private = compiled.program.to_public_bytes(), compiled.weights.to_private_bytes()
    return sum(it.seconds[1] for it in profile(public, PAILLIER, private) if it.side == "model")
