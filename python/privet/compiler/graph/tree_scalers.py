"""What comes before trees as part of their tests.

`(x - offset) * scale <= threshold` holds up to some number x, in the single precision of ONNX
Runtime as in reals, as long as scales are positive; and whether a category's column is above a half
is whether a number is that category. So trees compare the numbers as they were given, wherever each
column that they read comes from one of an input (`privet.compiler.graph.tree_columns`), and no row
near a threshold goes another way because of rounding. Missing values go where what an imputer puts
in their place would.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper

from privet.compiler.graph.control_flow import names_read, needed_nodes
from privet.compiler.graph.onnx_model import ML
from privet.compiler.graph.operations import Array
from privet.compiler.graph.order import number_at
from privet.compiler.graph.rewriting import attributes, without_nodes
from privet.compiler.graph.tree_columns import FLOAT, Code, Column, Step, Table, trace

LARGEST = 0x7F7FFFFF
"""The place of the largest finite number."""
BELOW = "nodes_below"
"""Of nodes that compare for equality: numbers above this one are, up to the node's value."""
_TRACKS = "nodes_missing_value_tracks_true"
_LEAF = b"LEAF"
_ENSEMBLES = ("TreeEnsembleClassifier", "TreeEnsembleRegressor")
_TREES = (*_ENSEMBLES, "TreeEnsemble")
_CHANGED = ("modes", "values", "featureids", "truenodeids", "falsenodeids")
_NAN = float("nan")
_COMPARE: dict[bytes, Callable[[Any, Any], Any]] = {
    b"BRANCH_LEQ": np.less_equal,
    b"BRANCH_LT": np.less,
    b"BRANCH_GTE": np.greater_equal,
    b"BRANCH_GT": np.greater,
    b"BRANCH_EQ": np.equal,
    b"BRANCH_NEQ": np.not_equal,
}
_OPPOSITE = {b"BRANCH_GT": b"BRANCH_LEQ", b"BRANCH_GTE": b"BRANCH_LT", b"BRANCH_NEQ": b"BRANCH_EQ"}


def fold_scalers(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with trees that read its inputs where other nodes came between, if nothing but
    trees reads these inputs; itself if there are none."""
    if not any(_is_ensemble(node) for node in model.graph.node):
        return model
    tables = trace(model.graph)
    ensembles: dict[int, _FoldedEnsemble] = {}
    for index, node in enumerate(model.graph.node):
        table = tables.get(node.input[0]) if _is_ensemble(node) else None
        if (
            table is not None
            and not table.nested
            and (folded := _FoldedEnsemble.of(node, table, tables))
        ):
            ensembles[index] = folded
    while any(not ensemble.is_plain for ensemble in ensembles.values()):
        copy, internal = _with_ensembles(model, ensembles, tables)
        outside_reads = _read_elsewhere(copy, internal)
        remaining = {
            index: ensemble
            for index, ensemble in ensembles.items()
            if outside_reads.isdisjoint(ensemble.places)
        }
        if len(remaining) == len(ensembles):
            return copy
        ensembles = remaining
    return model


def _is_ensemble(node: onnx.NodeProto) -> bool:
    return node.domain == ML and node.op_type in _ENSEMBLES and len(node.input) == 1


def _with_ensembles(
    model: onnx.ModelProto, ensembles: Mapping[int, _FoldedEnsemble], tables: Mapping[str, Table]
) -> tuple[onnx.ModelProto, set[str]]:
    """The model with these ensembles in place of its own, and what they and nodes that gather
    their columns make."""
    copy = without_nodes(model)
    rows = _Rows(copy.graph, tables)
    internal: set[str] = set()
    for index, node in enumerate(model.graph.node):
        if index in ensembles:
            node = ensembles[index].node(rows)
            internal.update(node.output)
        copy.graph.node.append(node)
    return copy, internal | rows.tensors


def _read_elsewhere(model: onnx.ModelProto, internal: set[str]) -> set[str]:
    """Outputs, and what nodes read that neither are trees nor make what is in `internal`."""
    outputs = [output.name for output in model.graph.output]
    nodes, _ = needed_nodes(model.graph.node, outputs)
    other_nodes = (
        node for node in nodes if internal.isdisjoint(node.output) and node.op_type not in _TREES
    )
    return {*outputs, *(name for node in other_nodes for name in names_read(node))}


class _Rows:
    """Rows of columns of inputs, joined by nodes that are added to a graph; each is made once."""

    def __init__(self, graph: onnx.GraphProto, tables: Mapping[str, Table]) -> None:
        self.graph, self.tables = graph, tables
        self.tensors: set[str] = set()

    def of(self, places: Mapping[str, Sequence[int]]) -> str:
        """The tensor that has these columns of inputs side by side."""
        parts = [self._part(source, columns) for source, columns in places.items()]
        return parts[0] if len(parts) == 1 else self._add("Concat", parts, axis=1)

    def _part(self, source: str, places: Sequence[int]) -> str:
        name = source
        if self.tables[source].kind != FLOAT:
            name = self._add("Cast", [source], to=FLOAT)
        if len(places) == len(self.tables[source].columns):
            return name
        indices = f"columns {' '.join(map(str, places))}"
        if all(initializer.name != indices for initializer in self.graph.initializer):
            tensor = onnx.numpy_helper.from_array(np.array(places, np.int64), indices)
            self.graph.initializer.append(tensor)
        return self._add("Gather", [name, indices], axis=1)

    def _add(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        name = f"{op} of {'; '.join(inputs)}"
        if name not in self.tensors:
            self.graph.node.append(helper.make_node(op, inputs, [name], name, **attributes))
            self.tensors.add(name)
        return name


@dataclass(frozen=True)
class _Test:
    """Whether what `steps` make of a number is up to `upper_bound`, or below it if `strict`, and
    with `lower_bound` not below that; or whether it is not, unless `inside`. `missing` is the
    answer of NaN.
    """

    steps: tuple[Step, ...]
    upper_bound: float
    strict: bool
    inside: bool
    missing: bool
    lower_bound: float | None = None


class _FoldedEnsemble:
    """An ensemble whose tests are of columns of inputs: at `places`, in this order."""

    def __init__(
        self, node: onnx.NodeProto, table: Table, tests: Mapping[int, _Test], *, tracks: bool
    ) -> None:
        self._node, self._table, self._tests, self._tracks = node, table, tests, tracks
        columns_by_source: dict[str, set[int]] = defaultdict(set)
        for column in table.columns:
            columns_by_source[column.source].add(column.place)
        self.places = {source: sorted(columns) for source, columns in columns_by_source.items()}

    @classmethod
    def of(
        cls, node: onnx.NodeProto, table: Table, tables: Mapping[str, Table]
    ) -> _FoldedEnsemble | None:
        """None if some node's test cannot be one of a column of an input."""
        attrs = attributes(node)
        lists = [attrs.get(f"nodes_{key}", []) for key in ("modes", "values", "featureids")]
        lists.append(attrs.get(_TRACKS) or [0] * len(lists[0]))
        if len({len(entries) for entries in lists}) > 1:
            return None
        tests = {}
        for index, (mode, value, feature, tracks_true) in enumerate(zip(*lists, strict=True)):
            if mode == _LEAF:
                continue
            if mode not in _COMPARE or not 0 <= feature < len(table.columns):
                return None
            tests[index] = _folded_test(table.columns[feature], mode, value, bool(tracks_true))
        floats = [column for column in table.columns if tables[column.source].kind == FLOAT]
        fills_missing = any(
            column.code is not None or not np.isnan(_apply_steps(column.steps, _NAN))
            for column in floats
        )
        return cls(node, table, tests, tracks=fills_missing or _TRACKS in attrs)

    @property
    def is_plain(self) -> bool:
        """Whether it reads an input as it is."""
        return self._node.input[0] in self.places

    def node(self, rows: _Rows) -> onnx.NodeProto:
        """The ensemble on the tensor that has its places side by side."""
        if self.is_plain:
            return self._node
        ensemble = deepcopy(self._node)
        ensemble.input[0] = rows.of(self.places)
        test_attributes = self._test_attributes()
        other_attributes = [a for a in self._node.attribute if a.name not in test_attributes]
        del ensemble.attribute[:]
        ensemble.attribute.extend(
            [*other_attributes, *(helper.make_attribute(*item) for item in test_attributes.items())]
        )
        return ensemble

    def _test_attributes(self) -> dict[str, list[Any]]:
        """The attributes that tell the tests."""
        attrs = attributes(self._node)
        lists: dict[str, list[Any]] = {key: list(attrs[f"nodes_{key}"]) for key in _CHANGED}
        ids = [(source, place) for source, columns in self.places.items() for place in columns]
        feature_index = {id: index for index, id in enumerate(ids)}
        tracks, lower_values = [0] * len(lists["modes"]), [0.0] * len(lists["modes"])
        tests = self._tests.values()
        upper_bounds = _largest_numbers(
            [(test.steps, test.upper_bound, test.strict) for test in tests]
        )
        lower_bounds = _largest_numbers(
            [(test.steps, test.lower_bound or 0.0, True) for test in tests]
        )
        for (index, test), upper, lower in zip(
            self._tests.items(), upper_bounds, lower_bounds, strict=True
        ):
            column = self._table.columns[lists["featureids"][index]]
            lists["featureids"][index] = feature_index[column.source, column.place]
            lists["values"][index], lower_values[index] = float(upper), float(lower)
            tracks[index] = int(test.missing)
            if test.lower_bound is None:
                lists["modes"][index] = b"BRANCH_LEQ" if test.inside else b"BRANCH_GT"
                continue
            lists["modes"][index] = b"BRANCH_EQ"
            if not test.inside:  # what is missing never equals anything, so the ways are exchanged
                children = lists["truenodeids"], lists["falsenodeids"]
                children[0][index], children[1][index] = children[1][index], children[0][index]
                tracks[index] = int(not test.missing)
        result = {f"nodes_{key}": values for key, values in lists.items()} | {BELOW: lower_values}
        return result | {_TRACKS: tracks} if self._tracks else result


def _apply_steps(steps: Sequence[Step], x: float | Array) -> Array:
    """What steps make of a number in single precision."""
    value = np.asarray(x, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for apply, constant in steps:
            value = np.asarray(apply(value, np.asarray(constant, np.float32)), np.float32)
    return value


def _folded_test(column: Column, mode: bytes, value: float, tracks_true: bool) -> _Test:
    """The test of a column of an input that says what one of a tree's feature does."""
    compare, threshold = _COMPARE[mode], np.float32(value)
    missing = _apply_steps(column.steps, _NAN)
    if column.code is not None:
        return _encoded_test(
            column, column.code, lambda x: bool(compare(x, threshold)), float(missing)
        )
    at_missing = bool(compare(missing, threshold)) or (tracks_true and bool(np.isnan(missing)))
    base_mode = _OPPOSITE.get(mode, mode)
    lower_bound = float(threshold) if base_mode == b"BRANCH_EQ" else None
    strict = base_mode == b"BRANCH_LT"
    return _Test(column.steps, float(threshold), strict, base_mode == mode, at_missing, lower_bound)


def _encoded_test(
    column: Column, code: Code, holds: Callable[[Array], bool], missing: float
) -> _Test:
    """The same of what an encoder makes of a column: whether a number is one of the keys for which
    another thing holds than for other numbers, which are next to one another.

    Also where there is none it is a test of two sides: thresholds tell nothing public.
    """
    default_holds = holds(_apply_steps(column.code_steps, code.default))
    keys = [
        key
        for key, value in zip(code.keys, code.values, strict=True)
        if holds(_apply_steps(column.code_steps, value)) != default_holds
    ]
    first_key, last_key = (min(keys), max(keys)) if keys else (code.keys[0], code.keys[0])
    assert not keys or last_key - first_key < len(keys), "codes keep the order of their keys"
    at_missing = default_holds != (bool(keys) and first_key <= missing <= last_key)
    return _Test(
        column.steps, float(last_key), not keys, not default_holds, at_missing, float(first_key)
    )


def _largest_numbers(tests: Sequence[tuple[tuple[Step, ...], float, bool]]) -> Array:
    """For each steps, bound and strictness the largest number that steps keep up to the bound, or
    below it."""
    groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for index, (steps, _, _) in enumerate(tests):
        groups[tuple(apply for apply, _ in steps)].append(index)
    largest = np.zeros(len(tests), np.float32)
    for functions, places in groups.items():
        constants = np.array(
            [[constant for _, constant in tests[index][0]] for index in places], np.float32
        )
        bounds = np.array([tests[index][1] for index in places], np.float32)
        strict = np.array([tests[index][2] for index in places])
        largest[places] = _bisected(list(zip(functions, constants.T, strict=True)), bounds, strict)
    return largest


def _bisected(steps: Sequence[tuple[Any, Array]], bounds: Array, strict: Array) -> Array:
    """The same by halving all finite numbers in their order; minus infinity where none is."""

    def holds(places: Array) -> Array:
        values = number_at(places)
        with np.errstate(over="ignore"):
            for apply, constant in steps:
                values = apply(values, constant)
        return np.where(strict, values < bounds, values <= bounds)

    low = np.full(bounds.shape, -LARGEST - 1, np.int64)
    high = np.full(bounds.shape, LARGEST, np.int64)
    while (low < high).any():
        middle = (low + high + 1) >> 1
        is_within = holds(middle)
        low, high = np.where(is_within, middle, low), np.where(is_within, high, middle - 1)
    return number_at(low)
