"""Inputs that are rows of a table, such as the tokens of a text.

A model looks a private token up in a table of weights by `Gather`. The client gives the token as
zeros and a one, and the look-up is a product with the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from privet.compiler.graph.operations import Array
from privet.errors import InputError

if TYPE_CHECKING:
    import onnx


def one_hot(name: str, ids: Array, count: int) -> Array:
    """Booleans `[.., count]`, true at the place of each of `ids` `[..]`. Raises `InputError` if
    `ids`, of the input `name`, are not whole numbers from 0 to `count - 1`."""
    indices = np.rint(ids).astype(np.int64)
    if (indices != ids).any() or indices.min(initial=0) < 0 or indices.max(initial=0) >= count:
        raise InputError(f"input {name} takes whole numbers from 0 to {count - 1}, rows of a table")
    return np.equal(indices[..., None], np.arange(count))


MOVES = frozenset(
    {
        *("Cast", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze"),
        *("Transpose", "Unsqueeze"),
    }
)
"""Operators that may stand between an input and the tables that it takes rows of."""
MEASURES = frozenset({"Shape", "Size"})
"""Operators that may read such an input, too: what they give is known."""


SELECTS = frozenset({"Gather", "Slice", "Split"})
"""Those of them that may move a part alone."""


def table_rows(
    nodes: Sequence[onnx.NodeProto], constants: Mapping[str, object], name: str
) -> int | None:
    """The most rows of the tables of which the tensor `name` takes some; None if of none, or where
    a part is looked up and others may be numbers.

    `constants` are the tensors of the model that are known.
    """
    readers = _Readers(constants, {name})
    readers.visit(nodes)
    if readers.is_computed and readers.is_apart:
        return None
    return max(readers.rows, default=None)


class _Readers:
    """What reads tensors in `names`, or what is moved of them."""

    def __init__(self, constants: Mapping[str, object], names: set[str]) -> None:
        self._constants, self._names = constants, names
        self.rows: list[int] = []
        self.is_computed = self.is_apart = False

    def visit(self, nodes: Sequence[onnx.NodeProto]) -> None:
        """Through nodes, and those of bodies that see the same names."""
        for node in nodes:
            for body in (attr.g for attr in node.attribute if attr.HasField("g")):
                self.visit(body.node)
            if not self._names.intersection(node.input):
                continue
            table = self._constants.get(node.input[0])
            looks_up = node.op_type == "Gather" and node.input[1] in self._names
            looks_up = looks_up and all(
                attr.name != "axis" or attr.i == 0 for attr in node.attribute
            )
            if looks_up and isinstance(table, np.ndarray) and table.ndim > 0:
                self.rows.append(len(table))
            elif node.op_type in MOVES and node.input[0] in self._names:
                self._names.update(node.output)
                self.is_apart |= node.op_type in SELECTS
            else:
                self.is_computed |= node.op_type not in MEASURES
