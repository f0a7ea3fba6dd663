"""Between a client's reals and a program's integers; needs only the public half."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privet.compiler.executor.head import run_head, softmax
from privet.compiler.graph import ClientStep, Output
from privet.compiler.graph.front import Front, Given
from privet.compiler.graph.head import plain
from privet.compiler.graph.one_hot import one_hot
from privet.compiler.graph.operations import Array, Shape
from privet.compiler.graph.order import places
from privet.compiler.program.public import Program, ProgramInput
from privet.errors import InputError, InvalidProgram

_DTYPES = {"real": np.float64, "integer": np.int64, "boolean": np.bool_, "text": np.str_}
_KINDS = {"real": "fiub", "integer": "iub", "boolean": "b", "text": "U"}
"""Types of numpy that serve for each kind of input."""

Inputs = Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike] | Array
"""Arrays by name or in order; of a model with one input also the array itself."""


def encode_input(program: Program, inputs: Inputs) -> list[Array]:
    """Each input as int64 at its value's scale, in the program's order.

    `inputs` maps names to arrays, or lists the arrays in order, or is the only one; of a program
    with a front they are what `by_front` makes.

    Raises `InputError` if a name, shape or type is wrong, or a number is not finite or beyond the
    magnitude that the program was compiled for.
    """
    names = [entry.name for entry in program.inputs]
    return [
        _encode(program, entry, array)
        for entry, array in zip(program.inputs, ordered(names, inputs), strict=True)
    ]


def by_front(program: Program, user_inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The program's inputs, by name, of what a user gives for some samples, one or several. Raises
    `InputError` if an array has another type or shape than the program says, or steps of the front
    cannot be computed on it."""
    front = program.front
    if front is None:
        return dict(user_inputs)
    if program.batch == 1:
        return run_front(front, user_inputs)
    samples = [
        run_front(front, {name: array[i : i + 1] for name, array in user_inputs.items()})
        for i in range(min(map(len, user_inputs.values())))
    ]
    return {
        name: np.concatenate([sample[name] for sample in samples]) for name in front.steps.outputs
    }


def run_front(front: Front, user_inputs: Mapping[str, Array]) -> dict[str, Array]:
    """What a front makes of one sample, by the names of the program's inputs. Raises what
    `by_front` does."""
    arrays = {
        front_input.name: _as_given_kind(front_input, user_inputs[front_input.name])
        for front_input in front.given
    }
    for entry in front.given:
        if arrays[entry.name].shape != entry.shape:
            raise misfit(entry.name, arrays[entry.name].shape, entry.shape)
    try:
        return run_head(front.steps, arrays, "what the client computes first")
    except InvalidProgram as error:
        raise InputError(str(error)) from error


def _as_given_kind(entry: Given, data: npt.ArrayLike) -> Array:
    """An array as a front takes it: float64, int64, booleans or texts."""
    array = plain(as_array(entry.name, data))
    if array.dtype.kind not in _KINDS[entry.kind]:
        raise InputError(f"input {entry.name} has type {array.dtype}; {entry.kind} is needed")
    return array.astype(_DTYPES[entry.kind])


def ordered(names: Sequence[str], inputs: Inputs) -> list[npt.ArrayLike]:
    """The given arrays in the order of `names`; `InputError` if some are missing or unknown."""
    if isinstance(inputs, Mapping):
        unknown = [name for name in inputs if name not in names]
        missing = [name for name in names if name not in inputs]
        if unknown or missing:
            raise InputError(
                f"the model's inputs are {', '.join(names)}; "
                f"{'unknown: ' if unknown else 'missing: '}{', '.join(unknown or missing)}"
            )
        return [inputs[name] for name in names]
    if isinstance(inputs, str | bytes | os.PathLike):
        raise InputError("a path is no input: read the file, for example by numpy.load")
    if any(hasattr(inputs, attribute) for attribute in ("__array__", "__array_interface__")):
        if len(names) == 1:
            return [np.asarray(inputs)]
        raise InputError(
            f"one array given, the model has {len(names)} inputs, {', '.join(names)}: give a list "
            "of arrays in this order, or a dict by name"
        )
    if len(inputs) != len(names):
        raise InputError(
            f"{len(inputs)} array{'s' * (len(inputs) != 1)} given, the model has {len(names)} "
            f"inputs, {', '.join(names)}: give one array for each; in a file by names, in an .npz"
        )
    return list(inputs)


def as_array(name: str, data: npt.ArrayLike) -> Array:
    """What a user gives for an input, as an array of numbers or of texts. Tables hand out both as
    objects. Raises `InputError` if it is none, such as a list of rows of different lengths."""
    try:
        array = np.asarray(data)
        if array.dtype != object:
            return array
        if all(isinstance(entry, str | bytes) for entry in array.ravel()):
            return plain(array)
        return array.astype(np.float64)
    except (ValueError, TypeError, RuntimeError) as error:
        raise InputError(f"input {name} cannot be read as an array: {error}") from error


def with_sample_axis(array: Array, shape: Shape) -> Array:
    """One sample with the first axis of 1 that `shape` has, if that is all that it lacks."""
    return array[None] if (1, *array.shape) == tuple(shape) else array


def in_order(container: str, names: Sequence[str], inputs: Sequence[str]) -> list[str]:
    """The names of arrays that `container` holds, in the order of the inputs that they are for:
    theirs, those that numpy gives (`arr_0`, ...), or whatever the only one is called. Raises
    `InputError` if they have other names."""
    if set(names) == set(inputs):
        return list(inputs)
    numpy_names = [f"arr_{number}" for number in range(len(inputs))]
    if list(names) == numpy_names or len(names) == len(inputs) == 1:
        return list(names)
    raise InputError(
        f"{container} holds {', '.join(names) or 'nothing'}; the model's inputs are "
        f"{', '.join(inputs)}: give its arrays these names, as numpy.savez(file, NAME=array) does"
    )


def misfit(name: str, actual: Shape, expected: Shape) -> InputError:
    """Tells of an input that has shape `actual` where the program takes `expected`."""
    advice = ""
    if len(expected) > 1 and actual == expected[1:]:
        advice = ": give it the axis of samples in front, as array[None] has it"
    elif len(expected) > 1 and actual[1:] == expected[1:]:
        advice = (
            f": this program takes {expected[0]} sample{'s' * (expected[0] != 1)} at once; give so "
            "many, or compile it for more (--batch N, batch=N)"
        )
    return InputError(f"input {name} has shape {list(actual)}, not {list(expected)}{advice}")


def decode_output(program: Program, integers: Sequence[Array]) -> dict[str, Array]:
    """What the user gets, by name: float64, int64 where the model has whole numbers, booleans, and
    what the head of the model makes of them.

    `integers` are the revealed outputs, in the program's order, as signed integers. Of a batch the
    head is computed for each sample by itself.

    Raises `InputError` if their number or shapes are not the program's; `InvalidProgram` if its
    head cannot be computed.
    """
    if len(integers) != len(program.outputs):
        raise InputError(f"{len(integers)} outputs given, the program has {len(program.outputs)}")
    tensors = {}
    for output, array in zip(program.outputs, integers, strict=True):
        value = program.values[output.value]
        if array.shape != value.shape:
            raise InputError(f"output {output.name} is {array.shape}, not {value.shape}")
        if program.head is not None and value.scale == 0:
            tensors[output.name] = array.astype(np.int64)
            continue
        reals = np.ldexp(array.astype(np.float64), -value.scale)
        tensors[output.name] = (
            reals if output.kind == "real" else _whole_numbers(program, reals, output)
        )
    if program.head is None:
        return {**tensors, **by_client(program, tensors)}
    if program.batch == 1:
        return by_client(program, tensors)
    sample_outputs = [
        by_client(program, {name: array[i : i + 1] for name, array in tensors.items()})
        for i in range(program.batch)
    ]
    return {
        name: np.concatenate([outputs[name] for outputs in sample_outputs])
        for name in program.head.outputs
    }


def by_client(program: Program, revealed: Mapping[str, Array]) -> dict[str, Array]:
    """What a client computes of the outputs of one sample, which are reals, or integers if they
    have no fractional bits: a step of each output, and its head. Raises `InvalidProgram` if the
    head of the program cannot be computed."""
    results = {
        output.name: client_step(revealed[output.name], output.client)
        for output in program.outputs
        if output.client is not None
    }
    return results if program.head is None else run_head(program.head, {**revealed, **results})


@dataclass(frozen=True)
class Described:
    """A tensor that the user gets: its kind is `real`, `integer`, `boolean`, `text` or `map`.

    A map's shape is that of its numbers: samples and labels.
    """

    name: str
    kind: str
    shape: Shape


def describe_outputs(program: Program) -> list[Described]:
    """What the user gets, in the model's order. Raises `InvalidProgram` if the head of the program
    cannot be computed."""
    if program.head is None:
        return [
            Described(output.name, output.kind, program.values[output.value].shape)
            for output in program.outputs
        ]
    zeros = [np.zeros(program.values[o.value].shape, np.int64) for o in program.outputs]
    kinds = {"f": "real", "i": "integer", "b": "boolean", "U": "text", "O": "map"}
    outputs = []
    for name, array in decode_output(program, zeros).items():
        shape = array.shape if array.dtype != object else (len(array), len(array[0]))
        outputs.append(Described(name, kinds[array.dtype.kind], shape))
    return outputs


def as_tensor(array: Array) -> Array:
    """An output as numbers or texts alone: maps become rows, in the order of their labels."""
    if array.dtype != object:
        return array
    return np.array([list(entry.values()) for entry in array])


def _whole_numbers(program: Program, reals: Array, output: Output) -> Array:
    """Whole numbers as the model has them: what a mean leaves beside one is cut off, but for what
    may be an error of fixed point."""
    error = min(2.0 ** (3 - program.scale_bits), 0.25)
    numbers: Array = np.trunc(reals + np.copysign(error, reals)).astype(_DTYPES[output.kind])
    return numbers


def client_step(reals: Array, step: ClientStep) -> Array:
    """Softmax or LogSoftmax in the clear."""
    axes = tuple(range(step.axis, reals.ndim)) if step.flatten else (step.axis,)
    return softmax(reals, axes if reals.ndim else (), log=step.op == "log_softmax")


def _encode(program: Program, entry: ProgramInput, data: npt.ArrayLike) -> Array:
    value = program.values[entry.value]
    array = as_array(entry.name, data)
    if array.dtype.kind not in "fiub":
        raise InputError(f"input {entry.name} has type {array.dtype}; real numbers are needed")
    shape = program.input_shape(entry)
    if array.shape != shape:
        raise misfit(entry.name, array.shape, shape)
    if not np.isfinite(array).all() and (np.isinf(array).any() or not entry.missing):
        raise InputError(f"input {entry.name} holds NaN or infinity")
    if entry.order:
        return places(array)
    if entry.one_hot:
        return one_hot(entry.name, array, value.shape[-1]).astype(np.int64)
    reals = array.astype(np.float64)
    largest = float(np.abs(reals).max(initial=0.0))
    if largest > entry.magnitude:
        raise InputError(
            f"input {entry.name} reaches {largest:.6g}, and the program was compiled for "
            f"magnitudes up to {entry.magnitude:.6g}: scale the input, or compile with "
            "calibration inputs or an input range that cover it"
        )
    return np.rint(np.ldexp(reals, value.scale)).astype(np.int64)
