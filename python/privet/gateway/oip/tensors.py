"""Tensors of the protocol: types by name, elements as raw bytes or as numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.compiler.executor.codec import describe_outputs
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

TEXT = "BYTES"
"""The type of texts."""

MOST_AXES = 32
MOST_ELEMENTS = 1 << 40
"""What a shape may say, axes of length 0 left out; a request has far less."""

MOST_TEXT_BYTES = 256 << 20
"""What all texts of a request may take: each has the room of the longest of its input."""

_KINDS = {"real": REAL, "map": REAL, "integer": "INT64", "boolean": "BOOL", "text": TEXT}


class TextRoom:
    """What the texts of a request may still take, of all its inputs together."""

    def __init__(self) -> None:
        self._remaining = MOST_TEXT_BYTES

    def take(self, name: str, count: int, longest: int) -> None:
        """Takes the room of so many texts. Raises `InputError` if there is not so much."""
        size = np.dtype((np.str_, longest)).itemsize * count
        if size > self._remaining:
            raise InputError(
                f"input {name} has {count} texts of up to {longest} characters: those of a request "
                f"may take {MOST_TEXT_BYTES} bytes, and each takes the room of the longest"
            )
        self._remaining -= size


def from_raw(
    name: str, datatype: str, shape: Sequence[int], raw: bytes, room: TextRoom | None = None
) -> Array:
    """A tensor from its elements in row-major order, little-endian and without gaps; `room` is that
    of its request. Raises `InputError` if there is no such type, the bytes are not those of that
    shape, or texts take too much."""
    if datatype == TEXT:
        return _texts(name, shape, list(_split_texts(name, raw)), room)
    kind, count = _form(name, datatype, shape)
    if len(raw) != count * kind.itemsize:
        raise InputError(
            f"input {name} is {datatype} of shape {list(shape)}, {count * kind.itemsize} bytes; "
            f"{len(raw)} were given"
        )
    return np.frombuffer(raw, kind).reshape(shape)


def from_numbers(
    name: str, datatype: str, shape: Sequence[int], numbers: Any, room: TextRoom | None = None
) -> Array:
    """A tensor from its elements as numbers or texts, flat or in nested lists; `room` is that of
    its request. Raises `InputError` if there is no such type, or something is no number of it,
    their count is not that of the shape, or texts take too much."""
    if datatype == TEXT:
        return _texts(name, shape, np.asarray(numbers, dtype=object).ravel().tolist(), room)
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


def _texts(name: str, shape: Sequence[int], texts: Sequence[Any], room: TextRoom | None) -> Array:
    count = _count(name, shape)
    if count != len(texts):
        raise InputError(
            f"input {name} of shape {list(shape)} has {count} elements; "
            f"{len(texts)} texts were given"
        )
    try:
        plain = [text.decode() if isinstance(text, bytes) else text for text in texts]
    except UnicodeDecodeError as error:
        raise InputError(f"input {name} holds a text that is not UTF-8") from error
    if not all(isinstance(text, str) for text in plain):
        raise InputError(f"input {name} cannot be read as {TEXT}: texts are needed")
    (room or TextRoom()).take(name, count, max(map(len, plain), default=0))
    return np.array(plain, dtype=np.str_).reshape(shape)


def _split_texts(name: str, raw: bytes) -> Iterator[bytes]:
    """Texts that have their lengths in four bytes before them."""
    at = 0
    while at < len(raw):
        end = at + 4 + int.from_bytes(raw[at : at + 4], "little")
        if len(raw) < end or len(raw) < at + 4:
            raise InputError(f"input {name} ends in the middle of a text")
        yield raw[at + 4 : end]
        at = end


def to_raw(array: Array, datatype: str) -> bytes:
    """The elements as the protocol sends them; a text with its length in four bytes before it."""
    if datatype == TEXT:
        texts = [str(text).encode() for text in array.ravel().tolist()]
        return b"".join(len(text).to_bytes(4, "little") + text for text in texts)
    return array.astype(np.bool_ if datatype == "BOOL" else DATATYPES[datatype]).tobytes()


def to_data(array: Array, datatype: str) -> list[Any]:
    """The elements as JSON has them, rounded to the type."""
    if datatype in DATATYPES:
        array = array.astype(DATATYPES[datatype])
    elements: list[Any] = array.ravel().tolist()
    return elements


def output_datatypes(program: Program) -> dict[str, str]:
    """The type of each output, by its name; a map from labels goes as the row of its numbers."""
    return {output.name: _KINDS[output.kind] for output in describe_outputs(program)}


def config_type(datatype: str) -> str:
    """How a model's configuration calls a type: there texts are strings."""
    return "TYPE_STRING" if datatype == "BYTES" else f"TYPE_{datatype}"


def input_datatypes(program: Program) -> dict[str, str]:
    """The type of each input, by its name: reals, or what the program's front takes."""
    kinds = {"real": REAL} if program.front is None else _KINDS
    return {entry.name: kinds.get(entry.kind, REAL) for entry in program.given}


def _form(name: str, datatype: str, shape: Sequence[int]) -> tuple[np.dtype[Any], int]:
    if datatype not in DATATYPES:
        raise InputError(
            f"input {name} has type {datatype}; possible are "
            f"{', '.join(sorted([*DATATYPES, TEXT]))}"
        )
    return np.dtype(DATATYPES[datatype]), _count(name, shape)


def _count(name: str, shape: Sequence[int]) -> int:
    """How many elements a tensor of this shape has."""
    if any(size < 0 for size in shape):
        raise InputError(f"input {name} has shape {list(shape)}: no axis has a negative length")
    if len(shape) > MOST_AXES or math.prod(filter(None, shape)) > MOST_ELEMENTS:
        raise InputError(
            f"input {name} has a shape of {len(shape)} axes that no tensor has: at most "
            f"{MOST_AXES} axes and {MOST_ELEMENTS} elements are possible"
        )
    return math.prod(shape)
