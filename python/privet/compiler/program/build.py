"""From the integer graph to a program, and back for the executor."""

from __future__ import annotations

import math
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from privet.compiler.graph import Graph, Input, Node, Output, Value
from privet.compiler.graph.front import Front
from privet.compiler.graph.operations import LINEAR, Array
from privet.compiler.program.operations import decode, encode
from privet.compiler.program.public import (
    Program,
    ProgramInput,
    ProgramOperation,
    ProgramState,
    ProgramValue,
)
from privet.compiler.program.weights import Weights
from privet.errors import InvalidProgram

MAGNITUDE_BITS = 4
STATE_PREFIX = "left in "
"""What the outputs of a program's graph that are state are called, before the name of the state."""
WEIGHT_BITS_STEP = 4
"""`weight_bits` is rounded up to a multiple of this, to say less about the weights."""


def build_program(
    graph: Graph,
    *,
    ring_bits: int,
    scale_bits: int,
    batch: int = 1,
    calibration: str = "random",
    front: Front | None = None,
) -> tuple[Program, Weights]:
    """The two halves of an integer graph whose values have scales and magnitudes."""
    ids = {id: position for position, id in enumerate(graph.values)}
    tensors: dict[str, Array] = {}
    operations = []
    largest = 0
    for position, node in enumerate(graph.nodes):
        name, attributes, private_tensors = encode(node.operation, str(position))
        if isinstance(node.operation, LINEAR):
            largest = max(largest, int(np.abs(node.operation.weight).max()))
        tensors |= private_tensors
        inputs = tuple(ids[id] for id in node.inputs)
        operations.append(ProgramOperation(name, node.name, inputs, ids[node.output], attributes))
    weights = Weights(tensors)
    state_outputs = {entry.state for entry in graph.inputs}
    weight_bits_steps = -(-largest.bit_length() // WEIGHT_BITS_STEP)
    program = Program(
        model=graph.name,
        ring_bits=ring_bits,
        scale_bits=scale_bits,
        weight_bits=max(weight_bits_steps, 1) * WEIGHT_BITS_STEP,
        weights_commitment=weights.commitment,
        inputs=tuple(
            ProgramInput(
                e.name,
                ids[e.value],
                _magnitude(graph.values[e.value], ring_bits),
                e.order,
                e.missing,
                e.one_hot,
            )
            for e in graph.given
        ),
        outputs=tuple(
            replace(o, value=ids[o.value]) for o in graph.outputs if o.name not in state_outputs
        ),
        values=tuple(ProgramValue(v.shape, _scale(v)) for v in graph.values.values()),
        operations=tuple(operations),
        batch=batch,
        calibration=calibration,
        head=graph.head,
        front=front,
        state=tuple(
            ProgramState(name, ids[before], ids[after])
            for name, (before, after) in graph.state.items()
        ),
    )
    return program, weights


def integer_graph(program: Program, weights: Weights) -> Graph:
    """The integer graph that a program and its private half stand for. Raises `InvalidProgram` if
    the halves do not belong together, or the program is inconsistent."""
    if weights.commitment != program.weights_commitment:
        raise InvalidProgram(
            "these weights belong to another program: compile the model again, or use the two "
            "files saved together"
        )
    nodes = []
    for o in program.operations:
        try:
            shape = program.values[o.output].shape
            operation = decode(o.op, o.attributes, shape, weights.tensors)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise InvalidProgram(f"operation {o.name} ({o.op}): {error!r}") from error
        nodes.append(Node(operation, o.name, o.inputs, o.output))
    values = {id: Value(v.shape, str(id), scale=v.scale) for id, v in enumerate(program.values)}
    return Graph(
        name=program.model,
        inputs=(
            *(Input(e.name, e.value, e.order, e.missing, e.one_hot) for e in program.inputs),
            *(Input(e.name, e.input, state=STATE_PREFIX + e.name) for e in program.state),
        ),
        outputs=(
            *program.outputs,
            *(Output(STATE_PREFIX + e.name, e.output) for e in program.state),
        ),
        values=MappingProxyType(values),
        nodes=tuple(nodes),
        head=program.head,
    )


def _scale(value: Value) -> int:
    assert value.scale is not None
    return value.scale


def _magnitude(value: Value, ring_bits: int) -> float:
    """The bound on an input: rounded up to a few bits, to say less about the calibration data."""
    assert value.magnitude is not None
    mantissa, exponent = math.frexp(value.magnitude or 1.0)
    steps = math.ceil(math.ldexp(mantissa, MAGNITUDE_BITS))
    largest = math.ldexp(1.0, ring_bits - 2 - _scale(value))
    return min(math.ldexp(steps, exponent - MAGNITUDE_BITS), largest)
