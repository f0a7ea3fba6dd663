"""Inputs that are rows of a table, such as the tokens of a text.

A model looks a private token up in a table of weights by `Gather`. The client gives the token as
zeros and a one, and the look-up is a product with the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from privet.compiler.graph.operations import Array
from privet.errors import InputError

if TYPE_CHECKING:
    import onnx


def one_hot(name: str, ids: Array, count: int) -> Array:
    """Booleans `[.., count]`, true at the place of each of `ids` `[..]`.

    # Errors
    `InputError` if `ids`, of the input `name`, are not whole numbers from 0 to `count - 1`.
    """
    whole = np.rint(ids).astype(np.int64)
    if (whole != ids).any() or whole.min(initial=0) < 0 or whole.max(initial=0) >= count:
        raise InputError(f"input {name} takes whole numbers from 0 to {count - 1}, rows of a table")
    return np.equal(whole[..., None], np.arange(count))


MOVES = frozenset(
    {
        *("Cast", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze"),
        *("Transpose", "Unsqueeze"),
    }
)
"""Operators that may stand between an input and the tables that it takes rows of."""
MEASURES = frozenset({"Shape", "Size"})
"""Operators that may read such an input, too: what they give is known."""


def table_rows(
    nodes: Sequence[onnx.NodeProto], constants: Mapping[str, object], name: str
) -> int | None:
    """The most rows of the tables of which the tensor `name` takes some; None if of none.

    `constants` are the tensors of the model that are known.
    """
    return max(_look_ups(nodes, constants, {name}), default=None)


def _look_ups(
    nodes: Sequence[onnx.NodeProto], constants: Mapping[str, object], names: set[str]
) -> Iterator[int]:
    """Numbers of rows of the tables that tensors in `names`, or what is moved of them, look up in
    nodes and in those of bodies that see the same names."""
    for node in nodes:
        for body in (it.g for it in node.attribute if it.HasField("g")):
            yield from _look_ups(body.node, constants, names)
        if not names.intersection(node.input):
            continue
        if node.op_type in MOVES and node.input[0] in names:
            names.update(node.output)
        table = constants.get(node.input[0])
        looks_up = node.op_type == "Gather" and node.input[1] in names
        looks_up = looks_up and all(it.name != "axis" or it.i == 0 for it in node.attribute)
        if looks_up and isinstance(table, np.ndarray) and table.ndim > 0:
            yield len(table)
