"""Between a client's reals and a program's integers; needs only the public half."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from privet.compiler.graph import ClientStep
from privet.compiler.graph.operations import Array
from privet.compiler.graph.order import places
from privet.compiler.program.public import Program, ProgramInput
from privet.errors import InputError

Inputs = Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike]


def encode_input(program: Program, inputs: Inputs) -> list[Array]:
    """Each input as int64 at its value's scale, in the program's order.

    `inputs` maps names to arrays, or lists the arrays in order.

    # Errors
    `InputError` if a name, shape or type is wrong, or a number is not finite or beyond the
    magnitude that the program was compiled for.
    """
    return [
        _encode(program, entry, array)
        for entry, array in zip(program.inputs, ordered(program, inputs), strict=True)
    ]


def ordered(program: Program, inputs: Inputs) -> list[npt.ArrayLike]:
    """The given arrays in the program's order; `InputError` if some are missing or unknown."""
    names = [entry.name for entry in program.inputs]
    if isinstance(inputs, Mapping):
        unknown = [name for name in inputs if name not in names]
        missing = [name for name in names if name not in inputs]
        if unknown or missing:
            raise InputError(
                f"the model's inputs are {', '.join(names)}; "
                f"{'unknown: ' if unknown else 'missing: '}{', '.join(unknown or missing)}"
            )
        return [inputs[name] for name in names]
    if len(inputs) != len(names):
        raise InputError(f"{len(inputs)} inputs given, the model has {len(names)}")
    return list(inputs)


def decode_output(program: Program, integers: Sequence[Array]) -> dict[str, Array]:
    """The outputs as reals (float64) by name, the client's own step done.

    `integers` are the revealed outputs, in the program's order, as signed integers.

    # Errors
    `InputError` if their number or shapes are not the program's.
    """
    if len(integers) != len(program.outputs):
        raise InputError(f"{len(integers)} outputs given, the program has {len(program.outputs)}")
    decoded = {}
    for output, array in zip(program.outputs, integers, strict=True):
        value = program.values[output.value]
        if array.shape != value.shape:
            raise InputError(f"output {output.name} is {array.shape}, not {value.shape}")
        reals = np.ldexp(array.astype(np.float64), -value.scale)
        decoded[output.name] = reals if output.client is None else client_step(reals, output.client)
    return decoded


def client_step(reals: Array, step: ClientStep) -> Array:
    """Softmax or LogSoftmax in the clear."""
    axes = tuple(range(step.axis, reals.ndim)) if step.flatten else (step.axis,)
    if reals.ndim == 0:
        axes = ()
    shifted = reals - reals.max(axis=axes, keepdims=True)
    exponentials = np.exp(shifted)
    total = exponentials.sum(axis=axes, keepdims=True)
    result = shifted - np.log(total) if step.op == "log_softmax" else exponentials / total
    return np.asarray(result)


def _encode(program: Program, entry: ProgramInput, given: npt.ArrayLike) -> Array:
    value = program.values[entry.value]
    array = np.asarray(given)
    if array.dtype.kind not in "fiu":
        raise InputError(f"input {entry.name} has type {array.dtype}; real numbers are needed")
    if array.shape != value.shape:
        raise InputError(
            f"input {entry.name} has shape {list(array.shape)}, not {list(value.shape)}"
        )
    if not np.isfinite(array).all():
        raise InputError(f"input {entry.name} holds NaN or infinity")
    if entry.order:
        return places(array)
    reals = array.astype(np.float64)
    largest = float(np.abs(reals).max(initial=0.0))
    if largest > entry.magnitude:
        raise InputError(
            f"input {entry.name} reaches {largest:.6g}, and the program was compiled for "
            f"magnitudes up to {entry.magnitude:.6g}: scale the input, or compile with "
            "calibration inputs or an input range that cover it"
        )
    return np.rint(np.ldexp(reals, value.scale)).astype(np.int64)
