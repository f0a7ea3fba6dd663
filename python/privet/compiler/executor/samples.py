"""Between single samples and the batch that a program takes at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from privet.compiler.executor.codec import Inputs, describe_outputs, ordered
from privet.compiler.graph.operations import Array
from privet.compiler.program.public import Program
from privet.errors import InputError


def fill(program: Program, inputs: Inputs) -> tuple[dict[str, Array], int]:
    """Inputs by name as the program takes them, and how many samples were given.

    Up to `program.batch` samples lie along the first axis of each input; zeros take the place of
    those that are missing. A program for one sample gets the inputs as they are.

    # Errors
    `InputError` if the inputs hold different numbers of samples, none, or too many.
    """
    names = [entry.name for entry in program.inputs]
    arrays = [np.asarray(array) for array in ordered(program, inputs)]
    if program.batch == 1:
        return dict(zip(names, arrays, strict=True)), 1
    counts = {len(array) if array.ndim else 0 for array in arrays}
    if len(counts) != 1:
        raise InputError("the inputs hold different numbers of samples along their first axis")
    (count,) = counts
    if not 1 <= count <= program.batch:
        raise InputError(f"{count} samples given; the program takes 1 to {program.batch} at once")
    missing = program.batch - count
    padded = [
        np.concatenate([array, np.zeros((missing, *array.shape[1:]), array.dtype)])
        for array in arrays
    ]
    return dict(zip(names, padded, strict=True)), count


def portions(program: Program, inputs: Inputs) -> list[dict[str, Array]]:
    """Cuts inputs that hold any number of samples into those of one inference each, in order.

    A program for one sample takes several, too, if its inputs and outputs begin with an axis of 1.

    # Errors
    `InputError` if the inputs hold different numbers of samples, or none; other misfits are found
    by `fill` and `encode_input`.
    """
    names = [entry.name for entry in program.inputs]
    shapes = [program.input_shape(entry) for entry in program.inputs]
    arrays = [np.asarray(array) for array in ordered(program, inputs)]
    given = dict(zip(names, arrays, strict=True))
    fits = all(array.shape == shape for array, shape in zip(arrays, shapes, strict=True))
    outputs = [output.shape for output in describe_outputs(program)]
    stacks = all(shape[:1] == (program.batch,) for shape in [*shapes, *outputs])
    if fits or not stacks or any(array.ndim == 0 for array in arrays):
        return [given]
    counts = {len(array) for array in arrays}
    if len(counts) != 1:
        raise InputError("the inputs hold different numbers of samples along their first axis")
    (count,) = counts
    if count == 0:
        raise InputError("the inputs hold no samples")
    return [
        {name: array[first : first + program.batch] for name, array in given.items()}
        for first in range(0, count, program.batch)
    ]


def split(inputs: Mapping[str, Array], count: int) -> list[dict[str, Array]]:
    """The first `count` samples of stacked inputs, each with its batch axis of 1."""
    return [{name: array[i : i + 1] for name, array in inputs.items()} for i in range(count)]


def trim(program: Program, arrays: Sequence[Array], count: int) -> list[Array]:
    """Outputs of `fill`'s inputs without those of the samples that were not given."""
    return [array[:count] if program.batch > 1 else array for array in arrays]
