"""Between single samples and the batch that a program takes at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from privet.compiler.executor.codec import (
    Inputs,
    as_array,
    by_front,
    describe_outputs,
    misfit,
    ordered,
)
from privet.compiler.graph.operations import Array
from privet.compiler.program.public import Program
from privet.errors import InputError


def fill(program: Program, inputs: Inputs) -> tuple[dict[str, Array], int]:
    """Inputs by name as the program takes them, and how many samples were given.

    What the model's front makes of what a user gives is computed here; the rest is as `pad` does.

    Raises those of `pad`; `InputError` if the front cannot be computed.
    """
    arrays, count = pad(program, inputs)
    return by_front(program, arrays), count


def pad(program: Program, inputs: Inputs) -> tuple[dict[str, Array], int]:
    """What a user gives, by name, for as many samples as the program takes, and how many were
    given.

    Up to `program.batch` samples lie along the first axis of each input; the last one again takes
    the place of those that are missing. A program for one sample gets the inputs as they are.

    Raises `InputError` if the inputs hold different numbers of samples, none, or too many, or a
    sample has another shape.
    """
    arrays = by_name(program, inputs)
    if program.batch == 1:
        return arrays, 1
    for entry in program.given:
        if arrays[entry.name].shape[1:] != entry.shape[1:]:
            raise misfit(entry.name, arrays[entry.name].shape, entry.shape)
    counts = {len(array) if array.ndim else 0 for array in arrays.values()}
    if len(counts) != 1:
        raise InputError("the inputs hold different numbers of samples along their first axis")
    (count,) = counts
    if not 1 <= count <= program.batch:
        raise InputError(f"{count} samples given; the program takes 1 to {program.batch} at once")
    rows = np.minimum(np.arange(program.batch), count - 1)
    return {name: array[rows] for name, array in arrays.items()}, count


def by_name(program: Program, inputs: Inputs) -> dict[str, Array]:
    """What a user gives, by the names of the model's inputs. Raises `InputError` if some are
    missing or unknown, or are no arrays."""
    names = [entry.name for entry in program.given]
    pairs = zip(names, ordered(names, inputs), strict=True)
    return {name: as_array(name, array) for name, array in pairs}


def portions(program: Program, inputs: Inputs) -> list[dict[str, Array]]:
    """Cuts inputs that hold any number of samples into those of one inference each, in order.

    A program for one sample takes several, too, if its inputs and outputs begin with an axis of 1.

    Raises `InputError` if the inputs hold different numbers of samples, or none; other misfits are
    found by `fill` and `encode_input`.
    """
    shapes = [entry.shape for entry in program.given]
    inputs_by_name = by_name(program, inputs)
    arrays = list(inputs_by_name.values())
    is_single = all(array.shape == shape for array, shape in zip(arrays, shapes, strict=True))
    if is_single or not is_stacked(program) or any(array.ndim == 0 for array in arrays):
        return [inputs_by_name]
    counts = {len(array) for array in arrays}
    if len(counts) != 1:
        raise InputError("the inputs hold different numbers of samples along their first axis")
    (count,) = counts
    if count == 0:
        raise InputError("the inputs hold no samples")
    return [
        {name: array[start : start + program.batch] for name, array in inputs_by_name.items()}
        for start in range(0, count, program.batch)
    ]


def is_stacked(program: Program) -> bool:
    """Whether samples lie along the first axis of every input and output."""
    shapes = [entry.shape for entry in program.given]
    shapes += [output.shape for output in describe_outputs(program)]
    return all(shape[:1] == (program.batch,) for shape in shapes)


def split(inputs: Mapping[str, Array], count: int) -> list[dict[str, Array]]:
    """The first `count` samples of stacked inputs, each with its batch axis of 1."""
    return [{name: array[i : i + 1] for name, array in inputs.items()} for i in range(count)]


def trim(program: Program, arrays: Sequence[Array], count: int) -> list[Array]:
    """Outputs of `fill`'s inputs without those of the samples that were not given."""
    return [array[:count] if program.batch > 1 else array for array in arrays]
