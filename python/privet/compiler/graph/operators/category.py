"""ai.onnx.ml: OneHotEncoder and LabelEncoder on private numbers: which of the known ones each is.

A number is compared with both sides of each known one: half the least distance of two, or a half,
away from it. So what a suite rounds makes no difference; numbers are meant to be known or whole.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import onnx

from privet.compiler.graph import operations as op
from privet.compiler.graph.onnx_model import ML
from privet.compiler.graph.operations import Array
from privet.compiler.graph.operators.arithmetic import plus_constant
from privet.compiler.graph.operators.comparison import is_nonnegative
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site

_NUMBERS = "of private numbers that are whole or known; texts at the client"
_TEXTS = "Let clients compute it (--client-side), or let the model begin behind it"


@operator("OneHotEncoder", domain=ML, since=1, restrictions=_NUMBERS)
def one_hot_encoder(site: Site) -> Operand:
    """A 1 at the place of the number among the categories, all 0 if it is not there."""
    categories = np.asarray(site.ints("cats_int64s") or [], dtype=np.float64)
    if not categories.size:
        site.refuse("its categories are texts", _TEXTS)
    x = site.private(0)
    one_hot = site.reshape(_matches(site, x, categories), (*x.shape, len(categories)))
    return replace(one_hot, whole=True)


@operator("LabelEncoder", domain=ML, since=1, restrictions=_NUMBERS)
def label_encoder(site: Site) -> Operand:
    """The value of each key, and the default of other numbers."""
    keys, values = (_table(site, column) for column in ("keys", "values"))
    if keys.dtype.kind not in "fi" or values.dtype.kind not in "fi" or len(keys) != len(values):
        site.refuse("it maps texts", _TEXTS)
    is_integer = values.dtype.kind == "i"
    default = float(
        site.attribute("default_int64" if is_integer else "default_float", -1.0 * is_integer)
    )
    is_number = ~np.isnan(keys.astype(np.float64))  # no private number is NaN
    keys, values = keys[is_number].astype(np.float64), values[is_number].astype(np.float64)
    x = site.private(0)
    weight = (values - default)[:, None]
    encoded = site.emit(op.Dense(weight, np.array([default])), _matches(site, x, keys))
    return replace(site.reshape(encoded, x.shape), whole=is_integer)


def _matches(site: Site, x: Private, numbers: Array) -> Private:
    """`[count, K]`: 1 for each element where it is a number of K."""
    gaps = np.diff(np.sort(numbers))
    half_gap = min(0.5, *(gaps / 2)) if gaps.size else 0.5
    if half_gap <= 0:
        site.refuse("it lists a number twice", "Check the model")
    count = math.prod(x.shape)
    column = replace(site.reshape(x, (count, 1)), integer=False)
    sides = [
        is_nonnegative(site, plus_constant(site, column, (side - numbers)[None]))
        for side in (half_gap, -half_gap)
    ]
    return site.emit(op.Sub(), *sides)


def _table(site: Site, column: str) -> Array:
    for kind, dtype in (("int64s", np.int64), ("floats", np.float64)):
        values = site.attribute(f"{column}_{kind}", None)
        if values is not None:
            return np.asarray(values, dtype=dtype)
    tensor = site.attribute(f"{column}_tensor", None)
    if isinstance(tensor, onnx.TensorProto):
        return onnx.numpy_helper.to_array(tensor).ravel()
    return np.array(["text"])
