"""What the fronts of models compute at the client besides what heads do: preprocessing of tables.

Functions take the arrays that a node reads, and its attributes; ONNX Runtime's results are theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privet.compiler.graph.operations import Array

Attributes = Mapping[str, Any]


def scaler(x: Array, attributes: Attributes) -> Array:
    """`(x - offset) * scale`, one of each or one for each column."""
    offset, scale = (
        np.array(attributes.get(name, default), np.float64)
        for name, default in (("offset", [0.0]), ("scale", [1.0]))
    )
    return np.asarray((x.astype(np.float64) - offset) * scale)


def imputer(x: Array, attributes: Attributes) -> Array:
    """A number in place of each missing one: NaN, in attributes a text, or what stands for it."""
    whole = attributes.get("imputed_value_int64s")
    fresh = np.array(attributes.get("imputed_value_floats", whole or [0.0]))
    missing = float(attributes.get("replaced_value_int64" if whole else "replaced_value_float", 0))
    gone = np.isnan(x) if np.isnan(missing) else x == missing
    return np.where(gone, fresh.astype(x.dtype), x)


def one_hot_encoder(x: Array, attributes: Attributes) -> Array:
    """A last axis for the categories, with a one at that of each element.

    Raises `ValueError` on an element that is none of them where the model has no row of zeros.
    """
    texts = attributes.get("cats_strings")
    categories = np.array(texts if texts else attributes.get("cats_int64s", []))
    entries = x if x.dtype.kind == "U" or texts else x.astype(np.int64)
    found = entries[..., None] == categories
    if not attributes.get("zeros", 1) and not found.any(axis=-1).all():
        strange = entries[~found.any(axis=-1)].ravel()[0]
        raise ValueError(f"{strange.item()!r} is none of its categories")
    return np.asarray(found, np.float64)


def feature_vectorizer(operands: Sequence[Array]) -> Array:
    """Columns of all operands, one after the other, as reals."""
    rows = [x if x.ndim > 1 else x.reshape(1, -1) for x in operands]
    return np.concatenate(rows, axis=1).astype(np.float64)


def split(x: Array, axis: int, sizes: Sequence[int], parts: int) -> list[Array]:
    """Parts along an axis, of these sizes or else as equal as can be, the last one the smallest."""
    length = x.shape[axis]
    if not sizes:
        each = -(-length // parts)
        sizes = [min(each, length - i * each) for i in range(parts)]
    if sum(sizes) != length or min(sizes) < 0 or len(sizes) != parts:
        raise ValueError(f"parts of {list(sizes)} do not fit {length}")
    return np.split(x, np.cumsum(sizes)[:-1].tolist(), axis=axis)
