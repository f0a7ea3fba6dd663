"""Figures 1 and 6: what Paillier costs, by the length of the key and by scaling factors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from privet.compiler.compile import compile
from privet.research.papers.paper import Cell, Grid
from privet.research.papers.ppstream.models import PreparedModel, measured_models
from privet.research.papers.workplace import Workplace
from privet.stream.cipher import PAILLIER, Cipher
from privet.stream.profile import profile
from privet.suites.stream import KEY_BITS

SIDE = 28
FACTOR = 10.0**6


def figure_1(at: Workplace) -> Grid:
    compiled = compile(_model(), input_range=(0, 1), bits=50, weight_scale=4)
    public, private = compiled.program.to_public_bytes(), compiled.weights.to_private_bytes()
    rows: dict[str, Sequence[Cell]] = {}
    for bits in KEY_BITS:
        at.report(f"keys of {bits} bits")
        stages = profile(public, Cipher("paillier", bits), private)
        rows[f"{bits} bits"] = [1000 * stage.seconds[1] for stage in stages]
    return Grid(("encrypt", "multiply and add", "decrypt"), rows)


def _model() -> onnx.ModelProto:
    """A tensor times a large factor, and a constant added."""
    shape = [1, SIDE * SIDE]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y")]
    factor = numpy_helper.from_array(np.full(1, FACTOR, np.float32), "factor")
    nodes = [
        helper.make_node("Mul", ["x", "factor"], ["z"]),
        helper.make_node("Add", ["z", "x"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "scaled", ends[:1], ends[1:], [factor])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


WEIGHT_BITS = {2: 7, 3: 10, 4: 14, 5: 17, 6: 20}
"""Fractional bits that hold so many decimals, as far as a program takes them."""


def figure_6(at: Workplace) -> Grid:
    rows: dict[str, Sequence[Cell]] = {}
    for model in measured_models(at):
        at.report(f"{model.name} by scaling factor")
        rows[model.name] = [_linear(model, bits) for bits in WEIGHT_BITS.values()]
    return Grid(tuple(f"10^{bits}" for bits in WEIGHT_BITS), rows)


def _linear(model: PreparedModel, bits: int) -> float:
    compiled = compile(
        onnx.load(model.path), bits=50, weight_scale=bits, input_range=(0, 1), name=model.name
    )
    public, private = compiled.program.to_public_bytes(), compiled.weights.to_private_bytes()
    return sum(
        stage.seconds[1] for stage in profile(public, PAILLIER, private) if stage.side == "model"
    )
