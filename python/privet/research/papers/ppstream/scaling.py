"""Experiment 1: scaling factors, the accuracy that they leave and what they cost."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from privet.compiler.compile import compile
from privet.research.papers.paper import Cell, Grid
from privet.research.papers.ppstream.models import Prepared, chosen
from privet.research.papers.workplace import Workplace
from privet.research.stream.survey import scaling_of
from privet.stream.cipher import PAILLIER
from privet.stream.profile import profile

TRAINED = {"Breast": "breast-mlp", "digits (CNN)": "digits-cnn"}
"""Models of the zoo that are trained, each with samples that training did not see."""

WEIGHT_BITS = {2: 7, 3: 10, 4: 14, 5: 17, 6: 20}
"""Fractional bits that hold so many decimals, as far as a program takes them."""


def table_5(at: Workplace) -> Grid:
    rows: dict[str, list[Cell]] = {}
    for title, name in TRAINED.items():
        at.say(name)
        found = scaling_of(at.trained(f"{name}.onnx"), at.trained(f"{name}.npz"))
        cells: list[Cell] = [100 * it for it in found.accuracies]
        rows[title] = [*cells, *[None] * (7 - len(cells)), 100 * found.original]
    return Grid((*(f"10^{decimals}" for decimals in range(7)), "original"), rows)


def figure_6(at: Workplace) -> Grid:
    rows: dict[str, Sequence[Cell]] = {}
    for model in chosen(at):
        at.say(f"{model.name} by scaling factor")
        rows[model.name] = [_linear(model, bits) for bits in WEIGHT_BITS.values()]
    return Grid(tuple(f"10^{it}" for it in WEIGHT_BITS), rows)


def _linear(model: Prepared, bits: int) -> float:
    compiled = compile(
        onnx.load(model.path), bits=50, weight_scale=bits, input_range=(0, 1), name=model.name
    )
    public, private = compiled.program.to_public_bytes(), compiled.weights.to_private_bytes()
    return sum(it.seconds[1] for it in profile(public, PAILLIER, private) if it.side == "model")
