"""Experiment 1: what scaling factors cost."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from privet.compiler.compile import compile
from privet.research.papers.paper import Cell, Grid
from privet.research.papers.ppstream.models import Prepared, chosen
from privet.research.papers.workplace import Workplace
from privet.stream.cipher import PAILLIER
from privet.stream.profile import profile

WEIGHT_BITS = {2: 7, 3: 10, 4: 14, 5: 17, 6: 20}
"""Fractional bits that hold so many decimals, as far as a program takes them."""


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
