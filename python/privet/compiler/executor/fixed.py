"""Runs a program on integers in the clear, bit for bit as the file format defines it.

The three operations that a suite may compute with small errors go through `Arithmetic`, so that a
simulation of a private run shares everything else with the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from privet.compiler.executor import kernels, trees
from privet.compiler.executor.codec import Inputs, decode_output, encode_input
from privet.compiler.executor.exact import exact_linear, exact_matmul, exact_product, row_sum
from privet.compiler.executor.function import function_values
from privet.compiler.executor.movement import moved
from privet.compiler.executor.piecewise import piecewise_values
from privet.compiler.executor.polynomial import polynomial_values
from privet.compiler.executor.real import argmax, factor_shape
from privet.compiler.graph import Graph, Node
from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Array
from privet.compiler.passes.check_ranges import GUARD_BITS
from privet.compiler.program.build import integer_graph
from privet.compiler.program.public import Program
from privet.compiler.program.weights import Weights
from privet.errors import OverflowRisk

Observe = Callable[[int, Array], None]
"""Hears of a value, by number, and its integers."""


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


class Arithmetic:
    """What the format defines: products as they are, and the floor of a division."""

    def linear(self, product: Array) -> Array:
        """What becomes of the exact result of a linear operation."""
        return product

    def truncate(self, x: Array, bits: int) -> Array:
        """`x` without its low bits."""
        return x >> bits

    def relu(self, x: Array) -> Array:
        """`max(x, 0)`."""
        return np.maximum(x, 0)


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

    # Errors
    `InputError` on wrong inputs, `InvalidProgram` if the halves do not match, `OverflowRisk` if a
    value leaves the range that the ring guarantees.
    """
    graph = integer_graph(program, weights)
    magnitudes = [0] * len(program.values)
    encoded = encode_input(program, inputs)
    arithmetic = arithmetic or Arithmetic()
    if state is None:
        state = [np.zeros(program.values[it.input].shape, np.int64) for it in program.state]
    given = [*encoded, *state]
    ends = _run(graph, given, program.ring_bits, magnitudes, arithmetic, observe)
    integers, left = ends[: len(program.outputs)], ends[len(program.outputs) :]
    return Execution(
        integers=tuple(integers),
        outputs=decode_output(program, integers),
        magnitudes=tuple(magnitudes),
        state=tuple(left),
    )


def run_integers(
    graph: Graph, inputs: Sequence[Array], ring_bits: int, observe: Observe
) -> list[Array]:
    """The outputs of an integer graph; `observe` sees every value that an operation makes.

    # Errors
    `OverflowRisk` if a value leaves the range that the ring guarantees.
    """
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
    left = graph.uses()
    held: dict[int, Array] = {}
    for entry, array in zip(graph.inputs, inputs, strict=True):
        held[entry.value] = array
        magnitudes[entry.value] = _check(array, ring_bits, f"input {entry.name}")
    for node in graph.nodes:
        operands = [held[id] for id in node.inputs]
        try:
            result = np.asarray(_compute(node, operands, graph, arithmetic, ring_bits))
        except OverflowError as error:
            raise _overflow(node.name, str(error), ring_bits, 63) from error
        held[node.output] = result
        narrow = node.operation.width if isinstance(node.operation, op.Truncate) else None
        magnitudes[node.output] = _check(result, narrow or ring_bits, node.name)
        if observe is not None:
            observe(node.output, result)
        for id in node.inputs:
            left[id] -= 1
            if not left[id]:
                held.pop(id, None)
    return [held[output.value] for output in graph.outputs]


def _compute(
    node: Node, operands: Sequence[Array], graph: Graph, arithmetic: Arithmetic, ring_bits: int
) -> Array:
    x, shape = operands[0], graph.values[node.output].shape
    match node.operation:
        case op.Conv2d(weight=weight, bias=bias) as conv:
            size = (shape[2], shape[3])
            reals = weight.astype(np.float64)
            out = exact_linear(
                x, row_sum(weight, 0), lambda part: kernels.conv2d(part, reals, conv, size)
            )
            out = arithmetic.linear(out)
            return out if bias is None else out + bias[:, None, None]
        case op.Dense(weight=weight, bias=bias):
            out = exact_linear(x, row_sum(weight, 1), lambda part: kernels.dense(part, weight))
            out = arithmetic.linear(out)
            return out if bias is None else out + bias
        case op.Scale(weight=weight):
            if int(np.abs(x).max()) * int(np.abs(weight).max()) >= 1 << 63:
                raise OverflowError("a product beyond 63 bits")
            return arithmetic.linear(x * weight)
        case op.AddConstant(bias=bias):
            return x + bias
        case op.Add():
            return x + operands[1]
        case op.Sub():
            return x - operands[1]
        case op.Mul():
            return exact_product(x, operands[1])
        case op.MatMul():
            return exact_matmul(x, operands[1])
        case op.Polynomial() as polynomial:
            scale = graph.values[node.output].scale
            assert scale is not None
            return polynomial_values(x, polynomial, scale)
        case op.Elementwise(function=function):
            before, after = (graph.values[id].scale for id in (node.inputs[0], node.output))
            assert before is not None
            assert after is not None
            return function_values(x, function, before, after, ring_bits)
        case op.Piecewise() as piecewise:
            before, after = (graph.values[id].scale for id in (node.inputs[0], node.output))
            assert before is not None
            assert after is not None
            return piecewise_values(x, piecewise, before, after, ring_bits)
        case op.Negate():
            return -x
        case op.ShiftLeft(bits=bits):
            if int(np.abs(x).max()) << bits >= 1 << 63:
                raise OverflowError("a shift beyond 63 bits")
            return x << bits
        case op.Truncate(bits=bits):
            return arithmetic.truncate(x, bits)
        case op.Relu():
            return arithmetic.relu(x)
        case op.Step():
            return np.asarray(x >= 0, dtype=np.int64)
        case op.Leaves(depth=depth):
            return trees.leaves(x >= 0, depth).astype(np.int64)
        case op.MaxPool2d() as pool:
            return kernels.max_pool2d(x, pool)
        case op.AvgPool2d(factors=factors) as pool:
            largest = int(max(map(abs, factors))) * pool.kernel[0] * pool.kernel[1]
            if int(np.abs(x).max()) * largest >= 1 << 63:
                raise OverflowError("a sum beyond 63 bits")
            by = np.asarray(factors, dtype=np.int64).reshape(factor_shape(pool))
            return kernels.sum_pool2d(x, pool) * by
        case op.ArgMax() as choice:
            return argmax(x, choice).astype(np.int64)
        case other:
            return moved(other, operands, shape)


def _check(array: Array, ring_bits: int, place: str) -> int:
    """The largest magnitude in a value, refused if the ring does not guarantee it."""
    largest = max(abs(int(array.max())), abs(int(array.min())))
    if largest >= 1 << (ring_bits - GUARD_BITS):
        raise _overflow(place, str(largest), ring_bits, largest.bit_length() + GUARD_BITS)
    return largest


def _overflow(place: str, reached: str, ring_bits: int, bits_needed: int) -> OverflowRisk:
    return OverflowRisk(
        f"{place}: reached {reached} in a ring of {ring_bits} bits, where values stay below "
        f"2^{ring_bits - GUARD_BITS}. Compile with calibration inputs like this one",
        layer=place,
        magnitude=float("nan"),
        bits_needed=bits_needed,
    )
