"""Consistency of a public half: every value written once before it is read, every shape right."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from privet.compiler.graph.front import check_front
from privet.compiler.graph.head import check_head
from privet.compiler.graph.operations import OPERATIONS, Array, Shape
from privet.compiler.graph.operations.piecewise import INDEX_BITS
from privet.compiler.graph.shapes import infer_shape
from privet.compiler.program.operations import decode
from privet.compiler.program.public import (
    CALIBRATIONS,
    MAX_BYTES,
    OUTPUT_KINDS,
    Program,
    ProgramOperation,
)
from privet.errors import InvalidProgram, Problem, UnsupportedModel

# As `crates/program/src/check.rs` bounds them: far above any image model, and so low that nothing
# below takes time or memory by what a peer wrote.
MAX_ELEMENTS = 1 << 28
MAX_TOTAL = 1 << 32
MAX_OPERATIONS = 1 << 12
MAX_LINEAR = 1 << 9
MAX_LINES = 1 << 19
MAX_INPUTS = 4 * MAX_OPERATIONS
MAX_ENDS = 1 << 8
MAX_RANK = 8


class _ZeroTensors(dict[str, Array]):
    """Stands in for the private half: zeros of whatever shape the operation declares."""

    def __init__(self, operation: ProgramOperation) -> None:
        attributes = operation.attributes
        super().__init__()
        for part in ("weight", "bias"):
            shape = attributes.get(f"{part}_shape")
            if shape is not None:
                self[attributes[part]] = _zeros(tuple(shape))
        if operation.op == "polynomial":
            self[attributes["coefficients"]] = _zeros((attributes["degree"] + 1,))
            self[attributes["bound"]] = _zeros((1,))
        if operation.op in ("conv2d", "dense") and attributes["bias"] is not None:
            channels = attributes["weight_shape"][0 if operation.op == "conv2d" else 1]
            self[attributes["bias"]] = _zeros((channels,))


def check_program(program: Program) -> None:
    """Raises `InvalidProgram`, which names the place, if the program contradicts itself."""
    for place, problem in _problems(program):
        raise InvalidProgram(f"the program is inconsistent at {place}: {problem}")


def check_size(program: Program) -> None:
    """Sees to it that a program that was compiled here can be read again. Raises `UnsupportedModel`
    if it has more operations, values or bytes than a program may."""
    problems = [f"{problem} ({place})" for place, problem in _limit_problems(program)]
    size = 0 if problems else len(program.to_public_bytes())
    if size > MAX_BYTES:
        problems.append(f"its public half has {size} bytes, more than {MAX_BYTES}")
    if problems:
        instead = "Use smaller inputs, shorter loops or fewer layers, or compile it in parts"
        raise UnsupportedModel([Problem(program.model, "the whole model", problems[0], instead)])


def _limit_problems(program: Program) -> Iterator[tuple[str, str]]:
    """Totals against their limits, before anything is made of the values."""
    operations = program.operations
    input_count = sum(len(operation.inputs) for operation in operations)
    if len(operations) > MAX_OPERATIONS or len(program.values) > 2 * MAX_OPERATIONS:
        yield "operations", f"more than {MAX_OPERATIONS}"
    if input_count > MAX_INPUTS:
        yield "operations", f"more than {MAX_INPUTS} inputs of operations"
    if max(len(program.inputs), len(program.outputs), len(program.state)) > MAX_ENDS:
        yield "inputs, outputs and state", f"more than {MAX_ENDS}"
    for id, value in enumerate(program.values):
        if not _is_within_limits(value.shape):
            yield f"value {id}", f"shape {list(value.shape)} is out of bounds"
    total = sum(math.prod(value.shape) for value in program.values)
    if total > MAX_TOTAL:
        yield "values", f"{total} elements in all, more than {MAX_TOTAL}"
    linear_operations = [entry for entry in operations if "weight_shape" in entry.attributes]
    if len(linear_operations) > MAX_LINEAR:
        yield "operations", f"{len(linear_operations)} have weights, more than {MAX_LINEAR}"
    total = 0
    for operation in linear_operations:
        shape = operation.attributes["weight_shape"]
        if not isinstance(shape, list | tuple) or not _is_within_limits(shape):
            yield f"operation {operation.name}", f"weights of shape {shape!r} are out of bounds"
        total += math.prod(shape)
    if total > MAX_TOTAL:
        yield "weights", f"{total} elements in all, more than {MAX_TOTAL}"
    tables = [entry.attributes.get("index_bits") for entry in operations if entry.op == "piecewise"]
    # Others are refused as what they are, by their operation.
    lines = sum(1 << bits for bits in tables if type(bits) is int and bits in INDEX_BITS)
    if lines > MAX_LINES:
        yield "functions", f"{lines} lines in all, more than {MAX_LINES}"


def _is_within_limits(shape: Sequence[object]) -> bool:
    """Whether a shape's rank and number of elements are within the limits."""
    elements = 1
    for size in shape:
        if type(size) is not int or not 1 <= size <= MAX_ELEMENTS // elements:
            return False
        elements *= size
    return len(shape) <= MAX_RANK


def _problems(program: Program) -> Iterator[tuple[str, str]]:
    yield from _limit_problems(program)
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
        if not 0 <= value.scale < program.ring_bits:
            yield f"value {id}", f"scale {value.scale}"
    written_ids: set[int] = set()
    for entry in program.inputs:
        if not (math.isfinite(entry.magnitude) and entry.magnitude > 0):
            yield f"input {entry.name}", f"magnitude {entry.magnitude}"
        yield from _write_problems(program, written_ids, entry.value, f"input {entry.name}")
    for state in program.state:
        yield from _write_problems(program, written_ids, state.input, f"state {state.name}")
    for operation in program.operations:
        place = f"operation {operation.name} ({operation.op})"
        missing = [id for id in operation.inputs if id not in written_ids]
        if missing or not operation.inputs:
            yield place, f"reads value {missing} before it is written"
        yield from _write_problems(program, written_ids, operation.output, place)
        yield from ((place, problem) for problem in _operation_problems(program, operation))
    for output in program.outputs:
        if output.value not in written_ids:
            yield f"output {output.name}", f"value {output.value} is never written"
        elif output.kind not in OUTPUT_KINDS:
            yield f"output {output.name}", f"a kind {output.kind!r}"
        elif output.client is not None:
            rank = len(program.values[output.value].shape)
            if not 0 <= output.client.axis < max(rank, 1):
                yield f"output {output.name}", f"axis {output.client.axis} of {rank} axes"
    for state in program.state:
        if not {state.input, state.output} <= written_ids:
            yield f"state {state.name}", f"value {state.output} is never written"
        elif program.values[state.input] != program.values[state.output]:
            yield f"state {state.name}", "leaves another shape or scale than it begins with"
    if program.head is not None and written_ids.issuperset(o.value for o in program.outputs):
        sizes = {o.name: math.prod(program.values[o.value].shape) for o in program.outputs}
        yield from check_head(program.head, sizes)
    if program.front is not None:
        yield from check_front(program.front, tuple(entry.name for entry in program.inputs))
    yield from _batch_problems(program)


def _batch_problems(program: Program) -> Iterator[tuple[str, str]]:
    """Every input and output of several samples has them along its first axis."""
    named_values = [(entry.name, entry.value) for entry in program.inputs]
    named_values += [(output.name, output.value) for output in program.outputs]
    for entry in program.front.given if program.front is not None else ():
        if program.batch > 1 and entry.shape[:1] != (1,):
            yield entry.name, f"shape {list(entry.shape)} of one sample"
    for name, id in named_values:
        is_checked = program.batch > 1 and 0 <= id < len(program.values)
        if is_checked and program.values[id].shape[:1] != (program.batch,):
            yield name, f"shape {list(program.values[id].shape)} for a batch of {program.batch}"


def _write_problems(
    program: Program, written_ids: set[int], id: int, place: str
) -> Iterator[tuple[str, str]]:
    if id in written_ids or not 0 <= id < len(program.values):
        yield place, f"writes value {id}, which is taken or does not exist"
    written_ids.add(id)


def _operation_problems(program: Program, operation: ProgramOperation) -> Iterator[str]:
    input_shapes = [program.values[id].shape for id in operation.inputs]
    declared_shape = program.values[operation.output].shape
    operation_type = OPERATIONS.get(operation.op)
    if operation_type is not None and len(input_shapes) != (
        operation_type.arity or len(input_shapes)
    ):
        yield f"{len(input_shapes)} inputs"
        return
    try:
        decoded_operation = decode(
            operation.op, operation.attributes, declared_shape, _ZeroTensors(operation)
        )
        inferred_shape = infer_shape(decoded_operation, input_shapes)
    except (KeyError, TypeError, ValueError, IndexError, ZeroDivisionError) as error:
        yield str(error)
        return
    if inferred_shape != declared_shape:
        yield f"gives {list(inferred_shape)}, not {list(declared_shape)}"


def _zeros(shape: Shape) -> Array:
    return np.broadcast_to(np.int64(0), shape)
