"""Consistency of a public half: every value written once before it is read, every shape right."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from privet.errors import InvalidProgram
from privet.graph.operations import Array, Shape
from privet.graph.shapes import infer_shape
from privet.program.operations import decode
from privet.program.public import CALIBRATIONS, Program, ProgramOperation

_ARITY = {"add": 2, "sub": 2, "mul": 2}


class _NoTensors(dict[str, Array]):
    """Stands in for the private half: zeros of whatever shape the operation declares."""

    def __init__(self, operation: ProgramOperation) -> None:
        attributes = operation.attributes
        super().__init__()
        for kind in ("weight", "bias"):
            shape = attributes.get(f"{kind}_shape")
            if shape is not None:
                self[attributes[kind]] = _zeros(tuple(shape))
        if operation.op == "polynomial":
            self[attributes["coefficients"]] = _zeros((attributes["degree"] + 1,))
            self[attributes["bound"]] = _zeros((1,))
        if operation.op in ("conv2d", "dense") and attributes["bias"] is not None:
            columns = attributes["weight_shape"][0 if operation.op == "conv2d" else 1]
            self[attributes["bias"]] = _zeros((columns,))


def check_program(program: Program) -> None:
    """Raises `InvalidProgram`, which names the place, if the program contradicts itself."""
    for place, problem in _problems(program):
        raise InvalidProgram(f"the program is inconsistent at {place}: {problem}")


def _problems(program: Program) -> Iterator[tuple[str, str]]:
    if not 8 <= program.ring_bits <= 64 or not 0 <= program.scale_bits < program.ring_bits:
        yield "its header", f"ring of {program.ring_bits} bits, scale {program.scale_bits}"
    if len(program.weights_commitment) != 64:
        yield "its header", "the commitment to the weights is no SHA-256"
    if not program.inputs or not program.outputs:
        yield "its header", "a program needs at least one input and one output"
    if program.calibration not in CALIBRATIONS:
        yield "its header", f"a calibration {program.calibration!r}"
    if program.batch < 1:
        yield "its header", f"a batch of {program.batch}"
    for id, value in enumerate(program.values):
        if any(size < 1 for size in value.shape) or not 0 <= value.scale < program.ring_bits:
            yield f"value {id}", f"shape {list(value.shape)}, scale {value.scale}"
    written: set[int] = set()
    for entry in program.inputs:
        if not (math.isfinite(entry.magnitude) and entry.magnitude > 0):
            yield f"input {entry.name}", f"magnitude {entry.magnitude}"
        yield from _write(program, written, entry.value, f"input {entry.name}")
    for operation in program.operations:
        place = f"operation {operation.name} ({operation.op})"
        missing = [id for id in operation.inputs if id not in written]
        if missing or not operation.inputs:
            yield place, f"reads value {missing} before it is written"
        yield from _write(program, written, operation.output, place)
        yield from ((place, problem) for problem in _operation(program, operation))
    for output in program.outputs:
        if output.value not in written:
            yield f"output {output.name}", f"value {output.value} is never written"
        elif output.client is not None:
            rank = len(program.values[output.value].shape)
            if not 0 <= output.client.axis < max(rank, 1):
                yield f"output {output.name}", f"axis {output.client.axis} of {rank} axes"
    yield from _batch(program)


def _batch(program: Program) -> Iterator[tuple[str, str]]:
    """Every input and output of several samples has them along its first axis."""
    ends = [(entry.name, entry.value) for entry in program.inputs]
    ends += [(output.name, output.value) for output in program.outputs]
    for name, id in ends:
        known = program.batch > 1 and 0 <= id < len(program.values)
        if known and program.values[id].shape[:1] != (program.batch,):
            yield name, f"shape {list(program.values[id].shape)} for a batch of {program.batch}"


def _write(program: Program, written: set[int], id: int, place: str) -> Iterator[tuple[str, str]]:
    if id in written or not 0 <= id < len(program.values):
        yield place, f"writes value {id}, which is taken or does not exist"
    written.add(id)


def _operation(program: Program, operation: ProgramOperation) -> Iterator[str]:
    inputs = [program.values[id].shape for id in operation.inputs]
    declared = program.values[operation.output].shape
    if operation.op != "concat" and len(inputs) != _ARITY.get(operation.op, 1):
        yield f"{len(inputs)} inputs"
        return
    try:
        decoded = decode(operation.op, operation.attributes, declared, _NoTensors(operation))
        inferred = infer_shape(decoded, inputs)
    except (KeyError, TypeError, ValueError, IndexError, ZeroDivisionError) as error:
        yield str(error)
        return
    if inferred != declared:
        yield f"gives {list(inferred)}, not {list(declared)}"


def _zeros(shape: Shape) -> Array:
    return np.broadcast_to(np.int64(0), shape)
