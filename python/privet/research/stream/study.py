"""`privet study leakage`: what the tensors of a model that the data provider sees tell it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privet.compile import Compiled
from privet.errors import Misuse
from privet.executor import execute
from privet.executor.reference import random_inputs
from privet.graph.operations import Array
from privet.research.stream import leakage
from privet.stream.cipher import PAILLIER
from privet.stream.stages import Stages

PAPER = {
    5: 0.2898,
    6: 0.1767,
    7: 0.1232,
    8: 0.1087,
    9: 0.0783,
    10: 0.0566,
    11: 0.0405,
    12: 0.0289,
    13: 0.0200,
}
"""Table VI: distance correlation by the exponent of the tensors' length."""

LONGEST = 1 << 13
"""Longer tensors than the paper's take minutes each."""

STEP = 0.01
"""How much a repeated query changes, as a fraction of the input's spread."""


@dataclass(frozen=True)
class Row:
    """A line of Table VI: tensors of about `2^exponent` elements, how many, and their mean distance
    correlation, here and in the paper."""

    exponent: int
    tensors: int
    correlation: float
    paper: float | None


def correlations(compiled: Compiled, samples: Sequence[list[Array] | None]) -> list[Row]:
    """Distance correlations of every tensor that is permuted, for each sample (None: a random
    one), with orders as the protocol draws them."""
    stages = Stages(compiled.program.to_public_bytes(), PAILLIER)
    kept = {
        it.source: index
        for index, it in enumerate(stages.rounds)
        if not it.output and int(np.prod(it.shape)) <= LONGEST
    }
    found: dict[int, list[float]] = {}

    def see(value: int, array: Array) -> None:
        if value in kept and array.size > 1:
            # A window's members may repeat; what is compared is the first of each element.
            order, _ = stages.arrange(kept[value])
            flat = array.ravel().astype(np.float64)
            places = list(dict.fromkeys(order.tolist()))
            exponent = round(float(np.log2(len(places))))
            value_before = flat[np.sort(places)]
            found.setdefault(exponent, []).append(
                leakage.distance_correlation(value_before, flat[places])
            )

    for seed, sample in enumerate(samples):
        inputs = random_inputs(compiled.program, None, seed) if sample is None else sample
        execute(compiled.program, compiled.weights, inputs, observe=see)
    return [
        Row(key, len(it), float(np.mean(it)), PAPER.get(key)) for key, it in sorted(found.items())
    ]


def attacks(inputs: int = 24, outputs: int = 64, seed: int = 0) -> dict[str, dict[str, float]]:
    """What each attack finds of a dense layer of random weights, by how tensors are arranged.

    The attacker repeats a query with small changes, 8 times as often as it has unknowns in a
    column. Fresh orders come from the protocol's own source.
    """
    if inputs < 2 or outputs < 4:
        raise Misuse("the attacked layer needs at least 2 inputs and 4 outputs")
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((inputs, outputs)) / np.sqrt(inputs)
    bias = rng.standard_normal(outputs)
    asked = leakage.queries(rng.standard_normal(inputs), 8 * inputs, STEP, rng)
    answers = asked @ weights + bias
    arrangements = {
        "fresh permutation": fresh(outputs),
        "fixed permutation": leakage.fixed(outputs, rng),
        "cyclic shift": leakage.cyclic(outputs, rng),
    }
    return {
        name: {
            attack: leakage.recovered(asked, leakage.observe(answers, order), weights, attack)
            for attack in leakage.ATTACKS
        }
        for name, order in arrangements.items()
    }


def fresh(count: int) -> leakage.Order:
    """Orders of `count` elements as the protocol draws them, by a program with one such round."""
    stages = Stages(_program(count), PAILLIER)
    return lambda _: stages.arrange(0)[0]


def _program(count: int) -> bytes:
    """The public half of a model that is a ReLU of so many numbers."""
    from onnx import TensorProto, helper

    from privet.compile import compile

    shape = [1, count]
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Neg", ["r"], ["y"])],
        "orders",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return compile(model, input_range=(-1, 1)).program.to_public_bytes()
