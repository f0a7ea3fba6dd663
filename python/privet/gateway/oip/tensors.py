"""Tensors of the protocol: types by name, elements as raw bytes or as numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.compiler.program import Program
from privet.errors import InputError

Array = npt.NDArray[np.generic]

DATATYPES = {
    "FP16": "<f2",
    "FP32": "<f4",
    "FP64": "<f8",
    "INT8": "<i1",
    "INT16": "<i2",
    "INT32": "<i4",
    "INT64": "<i8",
    "UINT8": "<u1",
    "UINT16": "<u2",
    "UINT32": "<u4",
    "UINT64": "<u8",
}
"""Types that inputs may have, little-endian; they are all read as real numbers."""

REAL = "FP32"
"""The type of inputs and outputs that are real numbers, as models declare it."""

INDEX = "INT64"
"""The type of outputs that are positions."""


def from_raw(name: str, datatype: str, shape: Sequence[int], raw: bytes) -> Array:
    """A tensor from its elements in row-major order, little-endian and without gaps.

    # Errors
    `InputError` if there is no such type, or the bytes are not those of that shape.
    """
    kind, count = _form(name, datatype, shape)
    if len(raw) != count * kind.itemsize:
        raise InputError(
            f"input {name} is {datatype} of shape {list(shape)}, {count * kind.itemsize} bytes; "
            f"{len(raw)} were given"
        )
    return np.frombuffer(raw, kind).reshape(shape)


def from_numbers(name: str, datatype: str, shape: Sequence[int], numbers: Any) -> Array:
    """A tensor from its elements as numbers, flat or in nested lists.

    # Errors
    `InputError` if there is no such type, or something is no number of it, or their count is not
    that of the shape.
    """
    kind, count = _form(name, datatype, shape)
    try:
        array = np.asarray(numbers)
        if array.dtype.kind not in ("fiu" if kind.kind == "f" else "iu") and array.size:
            raise ValueError(f"{array.dtype} is no {datatype}")
        if kind.kind != "f" and array.size:
            limits = np.iinfo(kind)
            if array.min() < limits.min or array.max() > limits.max:
                raise ValueError(f"it goes from {limits.min} to {limits.max}")
        with np.errstate(over="raise"):
            array = array.astype(kind)
    except (ValueError, TypeError, OverflowError, FloatingPointError) as error:
        raise InputError(f"input {name} cannot be read as {datatype}: {error}") from error
    if array.size != count:
        raise InputError(
            f"input {name} of shape {list(shape)} has {count} elements; {array.size} were given"
        )
    return array.reshape(shape)


def to_raw(array: Array, datatype: str) -> bytes:
    """The elements as the protocol sends them."""
    return array.astype(DATATYPES[datatype]).tobytes()


def output_datatypes(program: Program) -> dict[str, str]:
    """The type of each output, by its name."""
    made_by = {operation.output: operation for operation in program.operations}
    types = {}
    for output in program.outputs:
        operation = made_by.get(output.value)
        while operation is not None and operation.op == "reshape":
            operation = made_by.get(operation.inputs[0])
        is_index = operation is not None and operation.op == "argmax"
        types[output.name] = INDEX if is_index else REAL
    return types


def _form(name: str, datatype: str, shape: Sequence[int]) -> tuple[np.dtype[Any], int]:
    if datatype not in DATATYPES:
        raise InputError(
            f"input {name} has type {datatype}; possible are {', '.join(sorted(DATATYPES))}"
        )
    if any(size < 0 for size in shape):
        raise InputError(f"input {name} has shape {list(shape)}: no axis has a negative length")
    return np.dtype(DATATYPES[datatype]), math.prod(shape)
