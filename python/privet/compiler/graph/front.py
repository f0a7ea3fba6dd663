"""The front of a model: the ONNX nodes that the client computes in the clear on its own input.

A front is part of the public half, with all constants that its nodes read: whoever serves the model
chose to publish them. What it makes are the program's inputs, which stay private. Like a head it
comes from a server, so that nothing in it is trusted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from privet.compiler.graph.head import ARITHMETIC, Head, check_head
from privet.compiler.graph.operations import Shape

KINDS = ("real", "integer", "boolean", "text")
"""What the elements of a tensor are that a user gives."""
MAX_GIVEN = 1 << 22
"""Most elements of a tensor that a user gives."""

ENCODERS = frozenset(
    {
        *("Binarizer", "FeatureVectorizer", "Imputer", "LabelEncoder", "Normalizer"),
        *("OneHotEncoder", "Scaler"),
    }
)
MOVES = frozenset(
    {
        *("ArrayFeatureExtractor", "Cast", "Concat", "Dropout", "Flatten", "Gather", "Identity"),
        *("Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"),
    }
)
FUNCTIONS = frozenset(
    {
        *("Abs", "Clip", "Equal", "Exp", "Floor", "Greater", "IsNaN", "Less", "Log", "Max", "Min"),
        *("Neg", "Not", "Pow", "Reciprocal", "Sign", "Sqrt", "Where"),
    }
)
FRONT = ENCODERS | MOVES | FUNCTIONS | ARITHMETIC
"""What a client computes of a front; all else is private, or refused before anything runs."""


@dataclass(frozen=True)
class Given:
    """A tensor that a user gives."""

    name: str
    kind: str
    shape: Shape


@dataclass(frozen=True, eq=False)
class Front:
    """`steps` make the program's inputs, in order, of what users give for one sample."""

    given: tuple[Given, ...]
    steps: Head

    def to_document(self) -> dict[str, Any]:
        """The front as JSON has it."""
        entries = [
            {"name": entry.name, "kind": entry.kind, "shape": list(entry.shape)}
            for entry in self.given
        ]
        return {"given": entries, "steps": self.steps.to_document()}

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Front:
        """Reads what `to_document` made; raises `ValueError`, `TypeError` or `KeyError`."""
        entries = tuple(
            Given(str(entry["name"]), str(entry["kind"]), tuple(map(int, entry["shape"])))
            for entry in document["given"]
        )
        return cls(entries, Head.parse(document["steps"]))

    def examples(self, name: str) -> list[Any]:
        """The texts or whole numbers that steps know of an input, in order: categories and keys."""
        tensors, examples = {name}, dict[Any, None]()
        for node in self.steps.nodes:
            if not tensors.intersection(node.inputs):
                continue
            if node.op in MOVES:
                tensors.update(node.outputs)
            for key, values in node.attributes.items():
                if key in ("cats_strings", "cats_int64s", "keys_strings", "keys_int64s"):
                    examples |= dict.fromkeys(values)
        return list(examples)


def check_front(front: Front, inputs: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Places and problems of a front that is to make a program's `inputs`."""
    sizes = {}
    for entry in front.given:
        sizes[entry.name] = math.prod(entry.shape)
        if entry.kind not in KINDS:
            yield f"input {entry.name}", f"a kind {entry.kind!r}"
        if len(entry.shape) > 8 or min(entry.shape, default=1) < 1 or sizes[entry.name] > MAX_GIVEN:
            yield f"input {entry.name}", f"shape {list(entry.shape)} is out of bounds"
    if not sizes or len(sizes) < len(front.given):
        yield "its front", "inputs that are missing or the same"
        return
    yield from check_head(front.steps, sizes, FRONT, "its front")
    if front.steps.outputs != inputs:
        yield "its front", f"it makes {', '.join(front.steps.outputs)}, not the program's inputs"
