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


THROUGH_ONE_HOT = ("Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")
"""Operators that may stand between an input and the tables that it takes rows of."""


def table_rows(
    nodes: Sequence[onnx.NodeProto], constants: Mapping[str, object], name: str
) -> int | None:
    """The rows of the tables of which the tensor `name` takes some; None if it has other readers.

    `constants` are the tensors of the model that are known.
    """
    counts = set()
    names = {name}
    for node in nodes:
        if not names.intersection(node.input):
            continue
        if node.op_type in THROUGH_ONE_HOT:
            names.update(node.output)
            continue
        table = constants.get(node.input[0])
        looks_up = node.op_type == "Gather" and node.input[1] in names
        if not looks_up or not isinstance(table, np.ndarray) or table.ndim < 1:
            return None
        if any(it.name == "axis" and it.i != 0 for it in node.attribute):
            return None
        counts.add(len(table))
    return counts.pop() if len(counts) == 1 else None
