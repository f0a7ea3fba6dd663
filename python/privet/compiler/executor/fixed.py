"""Runs a program on integers in the clear, bit for bit as the file format defines it.

The three operations that a suite may compute with small errors go through `Arithmetic`, so that a
simulation of a private run shares everything else with the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from privet.compiler.executor.codec import Inputs, decode_output, encode_input
from privet.compiler.graph import Graph, Node
from privet.compiler.graph.operations import Arithmetic, Array, Truncate
from privet.compiler.passes.check_ranges import GUARD_BITS
from privet.compiler.program.build import integer_graph
from privet.compiler.program.public import Program
from privet.compiler.program.weights import Weights
from privet.errors import OverflowRisk

Observe = Callable[[int, Array], None]
"""Is called with a value, by number, and its integers."""


@dataclass(frozen=True)
class Execution:
    """What a run gave.

    `integers` are the outputs as the suites reveal them, in the program's order; `outputs` are
    the reals that the client ends with, by name; `magnitudes[id]` is the largest absolute integer
    that value `id` reached. `state` is what the program leaves to its next inference.
    """

    integers: tuple[Array, ...]
    outputs: dict[str, Array]
    magnitudes: tuple[int, ...]
    state: tuple[Array, ...] = ()


def execute(
    program: Program,
    weights: Weights,
    inputs: Inputs,
    arithmetic: Arithmetic | None = None,
    observe: Observe | None = None,
    state: Sequence[Array] | None = None,
) -> Execution:
    """Runs a program on real inputs, given by name or in order; `observe` sees every value.

    `state` is what the inference before left; without it, this is the first.

    Raises `InputError` on wrong inputs, `InvalidProgram` if the halves do not match, `OverflowRisk`
    if a value leaves the range that the ring guarantees.
    """
    graph = integer_graph(program, weights)
    magnitudes = [0] * len(program.values)
    input_integers = encode_input(program, inputs)
    arithmetic = arithmetic or Arithmetic()
    if state is None:
        state = [np.zeros(program.values[entry.input].shape, np.int64) for entry in program.state]
    values = [*input_integers, *state]
    results = _run(graph, values, program.ring_bits, magnitudes, arithmetic, observe)
    integers, next_state = results[: len(program.outputs)], results[len(program.outputs) :]
    return Execution(
        integers=tuple(integers),
        outputs=decode_output(program, integers),
        magnitudes=tuple(magnitudes),
        state=tuple(next_state),
    )


def run_integers(
    graph: Graph, inputs: Sequence[Array], ring_bits: int, observe: Observe
) -> list[Array]:
    """The outputs of an integer graph; `observe` sees every value that an operation makes. Raises
    `OverflowRisk` if a value leaves the range that the ring guarantees."""
    magnitudes = [0] * (max(graph.values) + 1)
    return _run(graph, inputs, ring_bits, magnitudes, Arithmetic(), observe)


def _run(
    graph: Graph,
    inputs: Sequence[Array],
    ring_bits: int,
    magnitudes: list[int],
    arithmetic: Arithmetic,
    observe: Observe | None,
) -> list[Array]:
    arrays = {entry.value: array for entry, array in zip(graph.inputs, inputs, strict=True)}
    for entry in graph.inputs:
        layer = f"input {entry.name}"
        magnitudes[entry.value] = _check(arrays[entry.value], ring_bits, layer)

    def compute(node: Node, operands: list[Array]) -> Array:
        try:
            context = graph.context(node, ring_bits, arithmetic)
            result = np.asarray(node.operation.fixed(operands, context))
        except OverflowError as error:
            raise _overflow(node.name, str(error), ring_bits, 63) from error
        width = node.operation.width if isinstance(node.operation, Truncate) else None
        magnitudes[node.output] = _check(result, width or ring_bits, node.name)
        if observe is not None:
            observe(node.output, result)
        return result

    return graph.evaluate(arrays, compute)


def _check(array: Array, ring_bits: int, layer: str) -> int:
    """The largest magnitude in a value, refused if the ring does not guarantee it."""
    largest = max(abs(int(array.max())), abs(int(array.min())))
    if largest >= 1 << (ring_bits - GUARD_BITS):
        raise _overflow(layer, str(largest), ring_bits, largest.bit_length() + GUARD_BITS)
    return largest


def _overflow(layer: str, magnitude: str, ring_bits: int, bits_needed: int) -> OverflowRisk:
    return OverflowRisk(
        f"{layer}: reached {magnitude} in a ring of {ring_bits} bits, where values stay below "
        f"2^{ring_bits - GUARD_BITS}. Compile with calibration inputs like this one",
        layer=layer,
        magnitude=float("nan"),
        bits_needed=bits_needed,
    )
