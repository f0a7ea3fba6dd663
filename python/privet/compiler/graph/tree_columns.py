"""Which column of an input each column of a tensor comes from, and what is done to it on the way.

Tables go through scalers, imputers and encoders of whole numbers, are cut and joined. Each such
node treats every column by itself, in single precision as ONNX Runtime does. Whatever else makes a
tensor, such as a product of several columns, ends the way back to inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx

from privet.compiler.graph.constants import array_of
from privet.compiler.graph.input_shapes import WHOLE
from privet.compiler.graph.onnx_model import DEFAULT_DOMAINS, ML
from privet.compiler.graph.operations import Array
from privet.compiler.graph.rewriting import attributes

FLOAT = onnx.TensorProto.FLOAT
_INTEGERS = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)
MOST_COLUMNS = 1 << 14
"""Most columns of a table that is followed."""
MOST_WHOLE = 1 << 24
"""Single precision tells whole numbers below this apart."""

Apply = Callable[[Array, Array], Array]
Step = tuple[Apply, float]
"""What is done to numbers in single precision, and by which constant."""


def fill(x: Array, replacement: Array) -> Array:
    """`x`, and `by` where it is missing."""
    return np.where(np.isnan(x), replacement, x)


def binarize(x: Array, bound: Array) -> Array:
    """1 above a bound, else 0, also of what is missing."""
    return np.where(x > bound, np.float32(1), np.float32(0))


def truncate(x: Array, _: Array) -> Array:
    """The number without its fraction."""
    return np.asarray(np.trunc(x))


ARITHMETIC: dict[str, Apply] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
}


@dataclass(frozen=True)
class Code:
    """What an encoder gives for its keys, and for all other numbers."""

    keys: tuple[int, ...]
    values: tuple[float, ...]
    default: float

    @property
    def keeps_order(self) -> bool:
        """Whether the keys that any comparison of values tells from other numbers are next to one
        another, whatever it compares with."""
        order = np.argsort(self.keys)
        keys, values = np.array(self.keys)[order], np.array(self.values)[order]
        increments = np.diff(values)
        default_is_extreme = self.default <= values.min() or self.default >= values.max()
        is_sorted = (increments >= 0).all() or (increments <= 0).all()
        return bool((np.diff(keys) == 1).all() and is_sorted and default_is_extreme)


@dataclass(frozen=True)
class Column:
    """Column `place` of the input `source`, after `steps` that keep the order of numbers; if it is
    a number's `code`, `code_steps` has the steps behind."""

    source: str
    place: int
    steps: tuple[Step, ...] = ()
    code: Code | None = None
    code_steps: tuple[Step, ...] = ()

    def then(self, *steps: Step) -> Column:
        """The column after further steps."""
        if self.code is None:
            return replace(self, steps=(*self.steps, *steps))
        return replace(self, code_steps=(*self.code_steps, *steps))


@dataclass(frozen=True)
class Table:
    """A tensor by its columns; `kind` is its element type. Where each column of another table
    became several, on an axis of their own, `nested` is how many."""

    columns: tuple[Column, ...]
    kind: int
    nested: int = 0

    @property
    def one_axis(self) -> bool:
        """Whether the last axis has all columns."""
        return self.nested in (0, len(self.columns))


def trace(graph: onnx.GraphProto) -> dict[str, Table]:
    """The tensors of a graph that are known by their columns, inputs among them."""
    return _Trace(graph).tables


class _Trace:
    def __init__(self, graph: onnx.GraphProto) -> None:
        self.constants = {tensor.name: array_of(tensor) for tensor in graph.initializer}
        self.tables: dict[str, Table] = {}
        for entry in graph.input:
            kind, dims = entry.type.tensor_type.elem_type, entry.type.tensor_type.shape.dim
            is_table = len(dims) == 2 and 0 < dims[1].dim_value <= MOST_COLUMNS
            if is_table and (kind == FLOAT or kind in WHOLE) and entry.name not in self.constants:
                columns = (Column(entry.name, place) for place in range(dims[1].dim_value))
                self.tables[entry.name] = Table(tuple(columns), kind)
        for node in graph.node:
            self._trace_node(node)

    def _trace_node(self, node: onnx.NodeProto) -> None:
        attrs = attributes(node)
        if node.op_type == "Constant" and "value" in attrs:
            self.constants[node.output[0]] = array_of(attrs["value"])
        domain = "" if node.domain in DEFAULT_DOMAINS else node.domain
        tracer = _NODES.get((domain, node.op_type))
        tables = tracer(self, node, attrs) if tracer is not None else None
        for name, table in zip(node.output, tables or (), strict=False):
            if len(table.columns) <= MOST_COLUMNS:
                self.tables[name] = table

    def table(self, name: str, *, nested: bool = False) -> Table | None:
        """What is known of a tensor of two axes, or also of a nested one."""
        table = self.tables.get(name)
        return table if table is not None and (nested or not table.nested) else None

    def floats(self, name: str) -> Table | None:
        """The same of numbers in single precision."""
        table = self.table(name)
        return table if table is not None and table.kind == FLOAT else None


Attrs = dict[str, Any]
Tables = Sequence[Table] | None


def _apply_steps(table: Table, steps: Sequence[tuple[Apply, Array]]) -> Tables:
    """Steps on all columns, by one constant each or one for all of them; None unless they keep the
    order of numbers."""
    count = len(table.columns)
    rows = []
    for apply, constant in steps:
        row = constant.astype(np.float32).ravel()
        may_decrease = apply in (np.multiply, np.divide) and not (row > 0).all()
        if row.size not in (1, count) or may_decrease or not np.isfinite(row).all():
            return None
        rows.append([(apply, float(x)) for x in np.broadcast_to(row, count)])
    columns = [column.then(*(row[i] for row in rows)) for i, column in enumerate(table.columns)]
    return [replace(table, columns=tuple(columns), kind=FLOAT)]


def _identity(trace: _Trace, node: onnx.NodeProto, attrs: Attrs) -> Tables:
    table = trace.table(node.input[0])
    return None if table is None else [table]


def _scaler(trace: _Trace, node: onnx.NodeProto, attrs: Attrs) -> Tables:
    table = trace.table(node.input[0])
    offset, scale = (np.array(attrs.get(key, ()), np.float32) for key in ("offset", "scale"))
    if table is None or not offset.size or not scale.size:
        return None
    return _apply_steps(table, [(np.subtract, offset), (np.multiply, scale)])


def _imputer(trace: _Trace, node: onnx.NodeProto, attrs: Attrs) -> Tables:
    table, replaced_value = trace.floats(node.input[0]), attrs.get("replaced_value_float", 0.0)
    if table is None or np.isfinite(replaced_value):
        return None
    if np.isinf(replaced_value):
        return [table]  # what is given is finite
    return _apply_steps(
        table, [(fill, np.array(attrs.get("imputed_value_floats", ()), np.float32))]
    )


def _binarizer(trace: _Trace, node: onnx.NodeProto, attrs: Attrs) -> Tables:
    table = trace.floats(node.input[0])
    return (
        None
        if table is None
        else _apply_steps(table, [(binarize, np.array(attrs.get("threshold", 0.0)))])
    )


def _cast(trace: _Trace, node: onnx.NodeProto, attrs: Attrs) -> Tables:
    table, target_type = trace.table(node.input[0], nested=True), attrs.get("to")
    if table is None or target_type not in (FLOAT, *_INTEGERS):
        return None
    if table.kind == FLOAT and target_type in _INTEGERS:
        columns = tuple(column.then((truncate, 0.0)) for column in table.columns)
        return [replace(table, columns=columns, kind=target_type)]
    return [replace(table, kind=target_type)]


def _arithmetic(trace: _Trace, node: onnx.NodeProto, attrs: Attrs) -> Tables:
    x, other = node.input
    if node.op_type in ("Add", "Mul") and x in trace.constants:
        x, other = other, x
    table, constant = trace.floats(x), trace.constants.get(other)
    if table is None or constant is None or constant.dtype != np.float32:
        return None
    is_row = constant.ndim <= 2 and constant.size == max(constant.shape, default=1)
    is_last_axis = constant.ndim == 0 or constant.shape[-1] == constant.size
    if not is_row or not is_last_axis:
        return None
    return _apply_steps(table, [(ARITHMETIC[node.op_type], constant)])


def _clip(trace: _Trace, node: onnx.NodeProto, attrs: Attrs) -> Tables:
    table = trace.floats(node.input[0])
    bounds = [np.array(attrs[key]) if key in attrs else None for key in ("min", "max")]
    for index, name in enumerate(node.input[1:3]):
        if name:
            if name not in trace.constants:
                return None
            bounds[index] = trace.constants[name]
    steps = [
        (apply, bound)
        for apply, bound in zip((np.maximum, np.minimum), bounds, strict=True)
        if bound is not None
    ]
    return None if table is None else _apply_steps(table, steps)


def _encoder(trace: _Trace, node: onnx.NodeProto, attrs: Attrs) -> Tables:
    """OneHotEncoder: for each category 1 where the number is that."""
    table, categories = trace.table(node.input[0]), attrs.get("cats_int64s", [])
    if table is None or not categories:
        return None
    codes = [Code((int(key),), (1.0,), 0.0) for key in categories]
    if table.kind == FLOAT:
        table = replace(
            table, columns=tuple(column.then((truncate, 0.0)) for column in table.columns)
        )
    return _encoded(table, codes, nested=len(codes))


def _labels(trace: _Trace, node: onnx.NodeProto, attrs: Attrs) -> Tables:
    """LabelEncoder from whole numbers to numbers."""
    table, keys = trace.table(node.input[0]), attrs.get("keys_int64s", [])
    if table is None or table.kind == FLOAT or len(set(keys)) < len(keys) or not keys:
        return None
    for suffix, default, kind in (("int64s", -1, onnx.TensorProto.INT64), ("floats", 0.0, FLOAT)):
        values = attrs.get(f"values_{suffix}", [])
        if len(values) == len(keys):
            default_value = attrs.get(f"default_{suffix[:-1]}", default)
            code = Code(tuple(map(int, keys)), tuple(map(float, values)), float(default_value))
            encoded = _encoded(table, [code])
            return encoded and [replace(encoded[0], kind=kind)]
    return None


def _encoded(table: Table, codes: Sequence[Code], *, nested: int = 0) -> Tables:
    if any(column.code is not None for column in table.columns):
        return None
    if not all(code.keeps_order for code in codes):
        return None
    if any(abs(key) >= MOST_WHOLE for code in codes for key in code.keys):
        return None
    columns = tuple(replace(column, code=code) for column in table.columns for code in codes)
    return [Table(columns, FLOAT, nested=nested)]


def _reshape(trace: _Trace, node: onnx.NodeProto, attrs: Attrs) -> Tables:
    """To rows again: `[-1, columns]`, or that with -1 at the other end."""
    table, shape = trace.table(node.input[0], nested=True), trace.constants.get(node.input[1])
    if table is None or shape is None:
        return None
    target_shape = [int(size) for size in shape.ravel()]
    is_rows = target_shape[:1] in ([0], [-1]) and target_shape[1:] == [len(table.columns)]
    return [replace(table, nested=0)] if is_rows or target_shape == [0, -1] else None


def _flatten(trace: _Trace, node: onnx.NodeProto, attrs: Attrs) -> Tables:
    table = trace.table(node.input[0], nested=True)
    return None if table is None or attrs.get("axis", 1) != 1 else [replace(table, nested=0)]


def _concat(trace: _Trace, node: onnx.NodeProto, attrs: Attrs) -> Tables:
    tables = [trace.table(name) for name in node.input]
    sources = [table for table in tables if table is not None]
    one_kind = len({table.kind for table in sources}) == 1
    if len(sources) < len(tables) or not one_kind or attrs.get("axis", 1) not in (-1, 1):
        return None
    return [
        replace(sources[0], columns=tuple(column for table in sources for column in table.columns))
    ]


def _selected_columns(table: Table | None, places: Sequence[int]) -> Tables:
    count = len(table.columns) if table is not None and table.one_axis else 0
    if table is None or not places or not all(-count <= place < count for place in places):
        return None
    columns = tuple(table.columns[place] for place in places)
    return [replace(table, columns=columns, nested=len(columns) if table.nested else 0)]


def _extractor(trace: _Trace, node: onnx.NodeProto, attrs: Attrs) -> Tables:
    """ArrayFeatureExtractor, and Gather of columns."""
    table, places = trace.table(node.input[0], nested=True), trace.constants.get(node.input[1])
    if table is None or places is None:
        return None
    last_axes = (-1, 2 if table.nested else 1)
    if node.op_type == "Gather" and (places.ndim != 1 or attrs.get("axis", 0) not in last_axes):
        return None
    return _selected_columns(table, [int(place) for place in places.ravel()])


def _slice(trace: _Trace, node: onnx.NodeProto, attrs: Attrs) -> Tables:
    table = trace.table(node.input[0])
    lists: list[list[int]] = []
    parameters: tuple[tuple[str, list[int] | None], ...]
    parameters = (("starts", None), ("ends", None), ("axes", None), ("steps", [1]))
    for index, (key, default) in enumerate(parameters):
        name = node.input[index + 1] if index + 1 < len(node.input) else ""
        values = trace.constants.get(name) if name else attrs.get(key, default)
        if values is None:
            return None
        lists.append([int(x) for x in np.ravel(values)])
    starts, ends, axes, steps = lists
    if table is None or len(starts) != 1 or axes not in ([1], [-1]):
        return None
    return _selected_columns(table, range(len(table.columns))[slice(starts[0], ends[0], steps[0])])


def _split(trace: _Trace, node: onnx.NodeProto, attrs: Attrs) -> Tables:
    table = trace.table(node.input[0])
    if table is None or attrs.get("axis", 0) not in (-1, 1):
        return None
    sizes = attrs.get("split")
    if len(node.input) > 1:
        sizes = trace.constants.get(node.input[1])
    count, parts = len(table.columns), len(node.output)
    if sizes is None:
        part = -(-count // parts)
        sizes = [part] * (parts - 1) + [count - part * (parts - 1)]
    if len(sizes) != parts or sum(sizes) != count or min(sizes) < 1:
        return None
    return [
        replace(table, columns=table.columns[int(end) - int(size) : int(end)])
        for end, size in zip(np.cumsum(sizes), sizes, strict=True)
    ]


_NODES: dict[tuple[str, str], Callable[[_Trace, onnx.NodeProto, Attrs], Tables]] = {
    (ML, "Scaler"): _scaler,
    (ML, "Imputer"): _imputer,
    (ML, "Binarizer"): _binarizer,
    (ML, "OneHotEncoder"): _encoder,
    (ML, "LabelEncoder"): _labels,
    (ML, "ArrayFeatureExtractor"): _extractor,
    (ML, "FeatureVectorizer"): _concat,
    ("", "Identity"): _identity,
    ("", "Cast"): _cast,
    ("", "Add"): _arithmetic,
    ("", "Sub"): _arithmetic,
    ("", "Mul"): _arithmetic,
    ("", "Div"): _arithmetic,
    ("", "Clip"): _clip,
    ("", "Reshape"): _reshape,
    ("", "Flatten"): _flatten,
    ("", "Concat"): _concat,
    ("", "Gather"): _extractor,
    ("", "Slice"): _slice,
    ("", "Split"): _split,
}
