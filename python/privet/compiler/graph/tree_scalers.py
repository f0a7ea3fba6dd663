"""Scalers before trees as part of their thresholds.

`(x - offset) * scale <= threshold` holds up to some number x, in the single precision of ONNX
Runtime as in reals, as long as scales are positive. So trees compare the numbers as they were
given, and no row near a threshold goes another way because of rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from privet.compiler.graph.constants import array_of
from privet.compiler.graph.onnx_model import DEFAULT_DOMAINS, ML
from privet.compiler.graph.operations import Array
from privet.compiler.graph.order import number_at

LARGEST = 0x7F7FFFFF
"""The place of the largest finite number."""
_UP_TO, _BELOW = (b"BRANCH_LEQ", b"BRANCH_GT"), (b"BRANCH_LT", b"BRANCH_GTE")
Step = tuple[Callable[[Array, Array], Array], Array]
"""What is done to numbers in single precision, and by which constant: one, or one a column."""
_ARITHMETIC = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}


def fold_scalers(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with trees that read its input where scalers came between, if nothing else reads
    it; itself if there are none."""
    by_name: dict[str, list[int]] = {}
    for index, node in enumerate(model.graph.node):
        if _is_ensemble(node):
            by_name.setdefault(node.input[0], []).append(index)
    if not by_name:
        return model
    chains = _Chains(model.graph)
    changed = model
    for name, places in by_name.items():
        found = chains.to(name, len(places))
        trees = [model.graph.node[index] for index in places]
        if found is None or not all(_may_move(node, found[1]) for node in trees):
            continue
        if changed is model:
            changed = onnx.ModelProto()
            changed.CopyFrom(model)
        for index in places:
            _move_thresholds(changed.graph.node[index], *found)
    return changed


class _Chains:
    """What leads from inputs to trees."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._makers = {name: node for node in graph.node for name in node.output}
        self._reads = [name for node in graph.node for name in node.input]
        self._reads += [output.name for output in graph.output]
        single = onnx.TensorProto.FLOAT
        self._constants = {
            it.name: array_of(it) for it in graph.initializer if it.data_type == single
        }
        self._inputs = {
            entry.name
            for entry in graph.input
            if entry.type.tensor_type.elem_type == single and entry.name not in self._constants
        }

    def to(self, name: str, readers: int) -> tuple[str, list[Step]] | None:
        """The input, or what an Imputer makes of it, from which scalers alone lead to a tensor, and
        what these do; None if something else does, or reads what is on the way."""
        steps: list[Step] = []
        while name in self._makers and not _imputes(self._makers[name]):
            found = self._step(self._makers[name])
            if found is None or self._reads.count(name) != readers:
                return None
            name, more = found
            steps, readers = more + steps, 1
        given = self._makers[name].input[0] if name in self._makers else name
        alone = given in self._inputs and all(self._reads.count(it) == 1 for it in (given, name))
        return (name, steps) if steps and alone else None

    def _step(self, node: onnx.NodeProto) -> tuple[str, list[Step]] | None:
        """What a node reads, and does to each number of it."""
        if node.domain == ML and node.op_type == "Scaler":
            given = _given(node)
            offset, scale = (
                np.array(given.get(key, ()), np.float32) for key in ("offset", "scale")
            )
            return _kept(node.input[0], [(np.subtract, offset), (np.multiply, scale)])
        if node.domain not in DEFAULT_DOMAINS:
            return None
        if node.op_type == "Cast" and _given(node).get("to") == onnx.TensorProto.FLOAT:
            return node.input[0], []
        apply = _ARITHMETIC.get(node.op_type)
        if apply is None or len(node.input) != 2:
            return None
        x, other = node.input
        if node.op_type in ("Add", "Mul") and x in self._constants:
            x, other = other, x
        if other not in self._constants or x in self._constants:
            return None
        return _kept(x, [(apply, self._constants[other])])


def _kept(x: str, steps: Sequence[Step]) -> tuple[str, list[Step]] | None:
    """Steps that keep the order of numbers, column by column."""
    flat = [(apply, constant.ravel()) for apply, constant in steps]
    for (apply, constant), (_, given) in zip(flat, steps, strict=True):
        is_row = constant.size > 0 and given.size == max(given.shape, default=1) == constant.size
        falls = apply in (np.multiply, np.divide) and not (constant > 0).all()
        last = given.ndim == 0 or given.shape[-1] == constant.size
        if not is_row or falls or not last or not np.isfinite(constant).all():
            return None
    return x, flat


def _given(node: onnx.NodeProto) -> dict[str, Any]:
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def _imputes(node: onnx.NodeProto) -> bool:
    """Whether missing values end at a node, which says so when it is read."""
    return node.domain == ML and node.op_type == "Imputer"


def _is_ensemble(node: onnx.NodeProto) -> bool:
    kinds = ("TreeEnsembleClassifier", "TreeEnsembleRegressor")
    return node.domain == ML and node.op_type in kinds and len(node.input) == 1


def _may_move(node: onnx.NodeProto, steps: Sequence[Step]) -> bool:
    """Whether each node of the trees asks on which side of a number another one is."""
    given = _given(node)
    modes, values = given.get("nodes_modes", []), given.get("nodes_values", [])
    features = given.get("nodes_featureids", [])
    known = set(modes) <= {b"LEAF", *_UP_TO, *_BELOW}
    columns = min((len(it) for _, it in steps if len(it) > 1), default=1 << 31)
    fits = len(modes) == len(values) == len(features)
    return known and fits and all(0 <= it < columns for it in features)


def _move_thresholds(node: onnx.NodeProto, name: str, steps: Sequence[Step]) -> None:
    given = _given(node)
    features = np.array(given["nodes_featureids"], np.int64)
    by_node = [(apply, by[features] if len(by) > 1 else by) for apply, by in steps]
    thresholds = np.array(given["nodes_values"], np.float32)
    is_strict = np.array([mode in _BELOW for mode in given["nodes_modes"]])
    moved = _moved(thresholds, is_strict, by_node)
    for attribute in node.attribute:
        if attribute.name == "nodes_values":
            attribute.floats[:] = moved.tolist()
    node.input[0] = name


def _moved(thresholds: Array, is_strict: Array, steps: Sequence[Step]) -> Array:
    """For each test the largest number for which it holds, or where it is strict the next one, by
    halving all finite numbers in their order."""

    def holds(places: Array) -> Array:
        scaled = number_at(places)
        with np.errstate(over="ignore"):
            for apply, constant in steps:
                scaled = apply(scaled, constant)
        return np.where(is_strict, scaled < thresholds, scaled <= thresholds)

    low = np.full(thresholds.shape, -LARGEST - 1, np.int64)
    high = np.full(thresholds.shape, LARGEST, np.int64)
    while (low < high).any():
        middle = (low + high + 1) >> 1
        kept = holds(middle)
        low, high = np.where(kept, middle, low), np.where(kept, high, middle - 1)
    return number_at(np.where(is_strict, low + 1, low))
