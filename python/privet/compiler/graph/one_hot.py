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
    """The most rows of the tables of which the tensor `name` takes some; None if it has other
    readers.

    `constants` are the tensors of the model that are known.
    """
    counts: list[int] = []
    found = _look_ups(nodes, constants, {name}, counts)
    return max(counts) if found and counts else None


def _look_ups(
    nodes: Sequence[onnx.NodeProto],
    constants: Mapping[str, object],
    names: set[str],
    counts: list[int],
) -> bool:
    """Whether nodes, and those of bodies that see the same names, do nothing with tensors in
    `names` but move them and take rows of tables, whose numbers of rows go to `counts`."""
    for node in nodes:
        bodies = [it.g for it in node.attribute if it.HasField("g")]
        if not all(_look_ups(body.node, constants, names, counts) for body in bodies):
            return False
        if not names.intersection(node.input):
            continue
        if node.input[0] in names and not names.intersection(node.input[1:]):
            if node.op_type in MOVES:
                names.update(node.output)
                continue
            if node.op_type in MEASURES:
                continue
        table = constants.get(node.input[0])
        looks_up = node.op_type == "Gather" and node.input[1] in names
        if not looks_up or not isinstance(table, np.ndarray) or table.ndim < 1:
            return False
        if any(it.name == "axis" and it.i != 0 for it in node.attribute):
            return False
        counts.append(len(table))
    return True
