"""What permuted tensors tell the data provider, measured (`privet study leakage`).

The paper's measure is distance correlation (Szekely, Rizzo and Bakirov, 2007) between a tensor and
the same tensor permuted, which falls as tensors grow (its Table VI). It says nothing of values,
which the permutation does not hide, nor of a peer that lays several requests side by side. So there
are attacks as well: the data provider, who knows its inputs, lines up what it received for many of
them and solves for the weights of the first layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from privet.compiler.compile import Compiled
from privet.compiler.executor import execute
from privet.compiler.executor.reference import random_inputs
from privet.compiler.graph.operations import Array
from privet.errors import Misuse
from privet.research.papers.paper import paper
from privet.stream.cipher import PAILLIER
from privet.stream.stages import Stages

Order = Callable[[int], Array]
"""The element at each place for the request of a number."""

ROWS = 512


def distance_correlation(x: Array, y: Array) -> float:
    """Of two vectors of the same length: 1 if one is a multiple of the other, about 0 if they have
    nothing to do with each other. Takes memory for 512 rows of distances at a time."""
    x, y = (np.asarray(array, dtype=np.float64).ravel() for array in (x, y))
    count = len(x)
    means = [np.array([np.abs(array - value).mean() for value in array]) for array in (x, y)]
    sums = np.zeros(3)
    for start in range(0, count, ROWS):
        a, b = (
            np.abs(array[start : start + ROWS, None] - array)
            - mean[start : start + ROWS, None]
            - mean
            + mean.mean()
            for array, mean in zip((x, y), means, strict=True)
        )
        sums += [(a * b).sum(), (a * a).sum(), (b * b).sum()]
    covariance, *variances = sums / count**2
    if min(variances) <= 0:
        return 0.0
    return float(np.sqrt(max(covariance, 0.0) / np.sqrt(variances[0] * variances[1])))


def by_place(_: Array, received: Array) -> Array:
    """Takes the same place of each request for the same element; `received` is `[requests, n]`."""
    return received


def by_shift(_: Array, received: Array) -> Array:
    """Undoes the cyclic shift by which each request agrees best with the first."""
    first = np.fft.fft(_standard(received[0]))
    aligned = [received[0]]
    for row in received[1:]:
        agreement = np.fft.ifft(np.fft.fft(_standard(row)).conj() * first).real
        aligned.append(np.roll(row, int(np.argmax(agreement))))
    return np.array(aligned)


def by_value(_: Array, received: Array) -> Array:
    """Takes the k-th largest value of each request for the same element."""
    return np.sort(received, axis=1)


ATTACKS: dict[str, Callable[[Array, Array], Array]] = {
    "by place": by_place,
    "by shift": by_shift,
    "by value": by_value,
}
"""Ways to line up repeated queries."""


def recovered(inputs: Array, received: Array, weights: Array, align: str) -> float:
    """How much of the first layer an attacker finds: 1 if all, about 0 if nothing.

    `inputs` are `[requests, m]`, `received` what came for them `[requests, n]`, and `weights` the
    truth `[m, n]`. The attacker lines the requests up, subtracts the first from the others, and
    solves for a matrix; each of its columns then counts by its cosine with the true column that is
    most like it, less what columns of noise would reach.
    """
    aligned = ATTACKS[align](inputs, received).astype(np.float64)
    differences, answers = inputs[1:] - inputs[0], aligned[1:] - aligned[0]
    guess = np.linalg.lstsq(differences, answers, rcond=None)[0]
    noise = np.random.default_rng([7, 7]).standard_normal(guess.shape)
    floor = _likeness(noise, weights)
    return float((_likeness(guess, weights) - floor) / (1 - floor))


def queries(base: Array, count: int, step: float, rng: np.random.Generator) -> Array:
    """Repeated queries: the same input again and again, each time with a small random change."""
    changes = rng.standard_normal((count, base.size)) * step
    changes[0] = 0
    return base.ravel() + changes


def observe(outputs: Array, order: Order) -> Array:
    """What the data provider receives of `outputs` `[requests, n]`."""
    return np.array([row[order(number)] for number, row in enumerate(outputs)])


def fixed(count: int, rng: np.random.Generator) -> Order:
    """A control that leaks: one permutation for all requests."""
    order = rng.permutation(count)
    return lambda _: order


def cyclic(count: int, rng: np.random.Generator) -> Order:
    """A control that leaks: a shift by a random number of places, afresh for each request, as the
    published prototype does."""
    return lambda _: np.roll(np.arange(count), int(rng.integers(count)))


def _standard(row: Array) -> Array:
    centred = row - row.mean()
    return np.asarray(centred / (np.linalg.norm(centred) or 1.0))


def _likeness(guess: Array, truth: Array) -> float:
    unit = [matrix / np.maximum(np.linalg.norm(matrix, axis=0), 1e-12) for matrix in (guess, truth)]
    return float(np.abs(unit[0].T @ unit[1]).max(axis=1).mean())


LONGEST = 1 << 13
"""Longer tensors than the paper's take minutes each."""

STEP = 0.01
"""How much a repeated query changes, as a fraction of the input's spread."""


@dataclass(frozen=True)
class LeakageRow:
    """A line of Table VI: tensors of about `2^exponent` elements, how many, and their mean distance
    correlation, here and in the paper."""

    exponent: int
    tensors: int
    correlation: float
    paper: float | None


def correlations(compiled: Compiled, samples: Sequence[list[Array] | None]) -> list[LeakageRow]:
    """Distance correlations of every tensor that is permuted, for each sample (None: a random
    one), with orders as the protocol draws them."""
    stages = Stages(compiled.program.to_public_bytes(), PAILLIER)
    stage_of = {
        exchange.source: index
        for index, exchange in enumerate(stages.rounds)
        if not exchange.output and int(np.prod(exchange.shape)) <= LONGEST
    }
    dcors: dict[int, list[float]] = {}

    def see(value: int, array: Array) -> None:
        if value in stage_of and array.size > 1:
            # A window's members may repeat; what is compared is the first of each element.
            order, _ = stages.arrange(stage_of[value])
            flat = array.ravel().astype(np.float64)
            places = list(dict.fromkeys(order.tolist()))
            exponent = round(float(np.log2(len(places))))
            value_before = flat[np.sort(places)]
            dcors.setdefault(exponent, []).append(distance_correlation(value_before, flat[places]))

    for seed, sample in enumerate(samples):
        inputs = random_inputs(compiled.program, None, seed) if sample is None else sample
        execute(compiled.program, compiled.weights, inputs, observe=see)
    return [
        LeakageRow(key, len(values), float(np.mean(values)), published(key))
        for key, values in sorted(dcors.items())
    ]


def published(exponent: int) -> float | None:
    """The paper's figure for tensors of that length, if it has one."""
    cell = paper("ppstream").item("table-6").printed.cell(f"2^{exponent}", "distance correlation")
    return None if cell is None else float(cell)


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
    probes = queries(rng.standard_normal(inputs), 8 * inputs, STEP, rng)
    answers = probes @ weights + bias
    arrangements = {
        "fresh permutation": fresh(outputs),
        "fixed permutation": fixed(outputs, rng),
        "cyclic shift": cyclic(outputs, rng),
    }
    return {
        name: {
            attack: recovered(probes, observe(answers, order), weights, attack)
            for attack in ATTACKS
        }
        for name, order in arrangements.items()
    }


def fresh(count: int) -> Order:
    """Orders of `count` elements as the protocol draws them, by a program with one such round."""
    stages = Stages(_program(count), PAILLIER)
    return lambda _: stages.arrange(0)[0]


def _program(count: int) -> bytes:
    """The public half of a model that is a ReLU of so many numbers."""
    from onnx import TensorProto, helper

    from privet.compiler.compile import compile

    shape = [1, count]
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Neg", ["r"], ["y"])],
        "orders",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return compile(model, input_range=(-1, 1)).program.to_public_bytes()
