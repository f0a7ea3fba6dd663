"""The head of a model: the ONNX nodes that the client computes in the clear on what is revealed.

A head is part of the public half. It comes from a server, so nothing in it is trusted: operators
come from a short list, and `check_head` and `privet.compiler.executor.head` bound what they take.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privet.compiler.graph.operations import Array

MAX_NODES = 256
MAX_BYTES, MAX_TOTAL = 1 << 25, 1 << 27
"""Most bytes of a tensor that a head reads or makes, and of all that it makes together."""
MAX_CONSTANTS = 1 << 14
"""Most elements of all its constants together: labels of classes, and single numbers."""

ARITHMETIC = frozenset({"Add", "Sub", "Mul", "Div", "Sum"})
OPERATORS = ARITHMETIC | {
    *("Abs", "ArgMax", "ArgMin", "ArrayFeatureExtractor", "Binarizer", "Cast", "Concat", "Dropout"),
    *("Exp", "Flatten", "Gather", "Greater", "Identity", "LabelEncoder", "Less", "Log"),
    *("LogSoftmax", "Neg", "Normalizer", "Not", "PairwiseCoupling", "Probit", "Reciprocal"),
    *("ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceSum", "Reshape", "Sigmoid", "Sign"),
    *("Slice", "Softmax", "SoftmaxZero", "Squeeze", "Tanh", "TopK", "Transpose", "Unsqueeze"),
    "ZipMap",
}
"""What a client computes of a head; all else is refused before anything runs."""

_KINDS = {"real": "f", "integer": "i", "boolean": "b", "text": "U"}
_LISTS: dict[str, type] = {"strings": str, "int64s": int}
"""What lists whose names end so have as entries; others have numbers and texts."""
_DTYPES = {"real": np.float64, "integer": np.int64, "boolean": np.bool_}


@dataclass(frozen=True)
class HeadNode:
    """An ONNX node: numbers, strings and lists of them are its attributes."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Head:
    """Nodes in order over named tensors: revealed outputs of the program, and `constants`.

    `outputs` names what the user gets, in the model's order; `opset` is that of ai.onnx.
    """

    opset: int
    outputs: tuple[str, ...]
    nodes: tuple[HeadNode, ...]
    constants: Mapping[str, Array]

    def to_document(self) -> dict[str, Any]:
        """The head as JSON has it."""
        return {
            "opset": self.opset,
            "outputs": list(self.outputs),
            "nodes": [vars(node) for node in self.nodes],
            "constants": {
                name: {"kind": kind_of(array), "shape": array.shape, "data": array.ravel().tolist()}
                for name, array in self.constants.items()
            },
        }

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Head:
        """Reads what `to_document` made; raises `ValueError`, `TypeError` or `KeyError`."""
        constants = {name: _constant(entry) for name, entry in document["constants"].items()}
        nodes = tuple(
            HeadNode(
                str(entry["op"]),
                tuple(map(str, entry["inputs"])),
                tuple(map(str, entry["outputs"])),
                dict(entry["attributes"]),
            )
            for entry in document["nodes"]
        )
        outputs = tuple(map(str, document["outputs"]))
        return cls(int(document["opset"]), outputs, nodes, constants)


def kind_of(array: Array) -> str:
    """`real`, `integer`, `boolean` or `text`; `ValueError` for any other type."""
    for kind, letter in _KINDS.items():
        if array.dtype.kind == letter:
            return kind
    raise ValueError(f"a constant of type {array.dtype}")


def plain(array: Array) -> Array:
    """A constant of a model as a head holds it: float64, int64, booleans or strings."""
    if array.dtype.kind in "OS":
        entries = [e.decode() if isinstance(e, bytes) else str(e) for e in array.ravel().tolist()]
        return np.array(entries, dtype=np.str_).reshape(array.shape)
    dtype = {"f": np.float64, "i": np.int64, "u": np.int64}.get(array.dtype.kind)
    return array if dtype is None else array.astype(dtype)


def text_array(texts: Sequence[str]) -> Array:
    """Texts as an array of one axis, in which each takes the room of the longest.

    Raises `ValueError` if that is more than `MAX_BYTES`, or if one is no text.
    """
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("texts among which is something else")
    max_length = max(map(len, texts), default=0)
    if len(texts) * np.dtype((np.str_, max_length)).itemsize > MAX_BYTES:
        raise ValueError(f"{len(texts)} texts of up to {max_length} characters are too large")
    return np.array(texts, dtype=np.str_)


def _constant(entry: Mapping[str, Any]) -> Array:
    kind, shape, data = entry["kind"], tuple(entry["shape"]), entry["data"]
    if not isinstance(data, list) or len(data) > MAX_CONSTANTS or len(shape) > 8:
        raise ValueError("a constant of a head is too large")
    if any(isinstance(element, list) for element in data):
        raise ValueError("a constant of a head with lists as its elements")
    array: Array = text_array(data) if kind == "text" else np.array(data, dtype=_DTYPES[kind])
    if any(type(size) is not int or size < 0 for size in shape) or array.size != math.prod(shape):
        raise ValueError(f"a constant of shape {list(shape)} with {array.size} elements")
    return array.reshape(shape)


def check_head(
    head: Head,
    revealed: Mapping[str, int],
    operators: Collection[str] = OPERATORS,
    title: str = "its head",
) -> Iterator[tuple[str, str]]:
    """Places and problems of a head that reads `revealed`: names, and how many elements each. Its
    nodes may be of `operators` alone; `title` says what it is."""
    if len(head.nodes) > MAX_NODES:
        yield title, f"more than {MAX_NODES} nodes"
    if sum(array.size for array in head.constants.values()) > MAX_CONSTANTS:
        yield title, f"constants of more than {MAX_CONSTANTS} elements"
    if sum(array.nbytes for array in head.constants.values()) > MAX_BYTES:
        yield title, f"constants of more than {MAX_BYTES} bytes, each text as long as the longest"
    if 8 * max(revealed.values()) > MAX_BYTES:
        yield title, f"it reads a tensor of more than {MAX_BYTES // 8} elements"
    names = {*revealed, *head.constants}
    if len(names) < len(revealed) + len(head.constants):
        yield title, "a constant has the name of what it reads"
    for node in head.nodes:
        place = f"node {', '.join(node.outputs)} of {title}"
        if node.op not in operators:
            yield place, f"operator {node.op!r} is not one that clients compute"
        yield from ((place, why) for why in _name_problems(node, names))
        names.update(node.outputs)
    missing = [name for name in head.outputs if name not in names]
    if missing or not head.outputs or len(set(head.outputs)) < len(head.outputs):
        yield title, f"outputs {', '.join(missing) or 'that are missing or the same'}"


def _name_problems(node: HeadNode, names: Collection[str]) -> Iterator[str]:
    if not node.inputs or not node.outputs:
        yield "no inputs or no outputs"
    for name in node.inputs:
        if name and name not in names:
            yield f"reads {name!r} before it is made"
    if set(node.outputs).intersection(names) or len(set(node.outputs)) < len(node.outputs):
        yield "writes what is there already"
    for name, value in node.attributes.items():
        entries = value if isinstance(value, list) else [value]
        kind = _LISTS.get(name.rpartition("_")[2], int | float | str)
        if len(entries) > MAX_CONSTANTS or not all(isinstance(e, kind) for e in entries):
            yield f"attribute {name!r} is too long or has entries of another type"
