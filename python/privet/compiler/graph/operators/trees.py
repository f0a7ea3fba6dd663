"""ai.onnx.ml: ensembles of decision trees."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx

from privet.compiler.graph import operations as op
from privet.compiler.graph.ensemble import Branch, Leaf, Test, Tree, ensemble, walk
from privet.compiler.graph.onnx_model import ML
from privet.compiler.graph.onnx_trees import BASE_SCORES, why_not
from privet.compiler.graph.operations import Array
from privet.compiler.graph.operators.arithmetic import plus_constant
from privet.compiler.graph.operators.reduction import largest_of_rows
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site
from privet.compiler.graph.tree_scalers import BELOW

MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")
"""How a node compares, in the order of `TreeEnsemble`'s numbers."""
LEAF = "LEAF"
MOST_ROWS = 1 << 14
"""Most rows of one sample."""
_NAN = "NaN where nothing else is computed of an input"
CLASSIFIERS = f"post_transform not PROBIT; {_NAN}"
RESTRICTIONS = f"of one target post_transform NONE or PROBIT; {_NAN}"


@operator("TreeEnsembleRegressor", domain=ML, since=1, restrictions=RESTRICTIONS)
def tree_ensemble_regressor(site: Site) -> Operand:
    """Trees as one list of nodes, and of their leaves' weights."""
    targets = site.attribute("n_targets", 1)
    aggregate = site.attribute("aggregate_function", "SUM")
    return _emit(site, _NodeLists(site, "target"), targets, aggregate)


@operator("TreeEnsembleClassifier", domain=ML, since=1, restrictions=CLASSIFIERS)
def tree_ensemble_classifier(site: Site) -> Operand:
    """What could not be taken apart."""
    site.refuse(
        why_not(site.node) or "it could not be taken apart",
        "Export it with raw scores, with a score of each class in every leaf, or with one score "
        "for two classes",
    )


@operator("TreeEnsemble", domain=ML, since=5, restrictions=RESTRICTIONS)
def tree_ensemble(site: Site) -> Operand:
    """Trees as a list of inner nodes and one of leaves."""
    aggregate = ("AVERAGE", "SUM", "MIN", "MAX")[site.attribute("aggregate_function", 1)]
    if site.attribute("post_transform", 0):
        _refuse_transform(site, str(site.attribute("post_transform", 0)))
    return _emit(site, _SplitLists(site), site.attribute("n_targets", 1), aggregate)


def _emit(site: Site, lists: _NodeLists | _SplitLists, targets: int, aggregate: str) -> Operand:
    transform = site.attribute("post_transform", "NONE")
    if transform not in ("NONE", 0):
        _refuse_transform(site, transform)
    base, scores = _numbers(site, "base_values"), _numbers(site, BASE_SCORES)
    if base.size not in (0, targets):
        site.refuse(f"{base.size} base values for {targets} targets", "Check the model")
    trees = lists.trees()
    if base.size:
        base = _counted_base_values(site, base, trees)
    else:
        base = scores if scores.size else np.zeros(targets)
    rows = site.rows()
    if rows.shape[0] > MOST_ROWS:
        site.refuse(
            f"it has {rows.shape[0]} rows at once, more than {MOST_ROWS}",
            "Export it for one row, and compile it for a batch",
        )
    if aggregate in ("MIN", "MAX"):
        return _extreme(site, lists, trees, base, rows, sign=1.0 if aggregate == "MAX" else -1.0)
    forest = replace(ensemble(trees, base), missing=lists.tests.missing)
    if aggregate == "AVERAGE":
        forest.values[:] /= len(trees)
    return site.emit(forest, rows)


def _counted_base_values(site: Site, base: Array, trees: Sequence[Tree]) -> Array:
    """Base values as ONNX Runtime counts those of regressors: where some leaf has the target."""
    leaves = [[leaf.values for leaf, _, _ in tree.leaves] for tree in trees]
    has_full_tree = [
        any(all(t in leaf for leaf in tree) for tree in leaves) for t in range(len(base))
    ]
    has_no_leaf = [not any(t in leaf for tree in leaves for leaf in tree) for t in range(len(base))]
    values = np.where(has_no_leaf, 0.0, base)
    if np.any(values[~np.array(has_full_tree)]):
        site.refuse(
            "a base value counts for those rows alone that end in a leaf of its target",
            "Export leaves that have a weight for each target, even if that is 0",
        )
    return values


def _extreme(
    site: Site,
    lists: _NodeLists | _SplitLists,
    trees: Sequence[Tree],
    base: Array,
    rows: Private,
    *,
    sign: float,
) -> Private:
    """The largest or smallest of what the trees end in, for each target; and the base."""
    count, targets = len(trees), len(base)
    for tree_index, tree in enumerate(trees):
        for leaf_index, (leaf, path, place) in enumerate(tree.leaves):
            if len(leaf.values) < targets:
                site.refuse("a leaf is without a value for each target", "Export it with SUM")
            leaf_values = {
                target * count + tree_index: sign * v for target, v in leaf.values.items()
            }
            tree.leaves[leaf_index] = Leaf(leaf_values), path, place
    forest = replace(ensemble(trees, np.zeros(targets * count)), missing=lists.tests.missing)
    tree_values = site.emit(forest, rows)
    samples = rows.shape[0]
    largest = largest_of_rows(site, site.reshape(tree_values, (samples * targets, count)))
    largest = site.reshape(largest, (samples, targets))
    largest = largest if sign > 0 else site.emit(op.Negate(), largest)
    return plus_constant(site, largest, base) if base.any() else largest


def _refuse_transform(site: Site, transform: str) -> None:
    site.refuse(f"its post_transform is {transform}", "Export it with raw scores")


class _NodeTests:
    """The tests of nodes; where `tracks` is given, with what a missing value decides at them.

    A missing value is behind all others, as no value is for which a test holds; and in a second
    copy of the features it is before all others, so that every test holds.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self.features = site.private(0).shape[-1]
        self.tracks_true = _ints(site, "nodes_missing_value_tracks_true")
        self.tracks_missing = bool(self.tracks_true)
        self.missing = site.missing
        """Whether a missing value goes where nodes send it, and needs no copy that is not there."""

    def of(
        self,
        index: int,
        mode: str,
        feature: int,
        value: float,
        members: Sequence[float] = (),
        lower_bound: float | None = None,
    ) -> tuple[list[Test], bool]:
        """Tests that add up to 1 if a node is true, or with False if it is not; with `lower_bound`,
        all numbers above that one and up to the value are equal to it."""
        missing = bool(self.tracks_missing and self.tracks_true[index])
        match mode:
            case "LEQ" | "GT":
                holds = mode == "LEQ"
                return [Test(self._copy(feature, missing == holds), value)], holds
            case "LT" | "GTE":
                holds = mode == "LT"
                return [Test(self._copy(feature, missing == holds), value, strict=True)], holds
            case "EQ":
                return self._equal(feature, value, missing, lower_bound), True
            case "NEQ":  # what is missing is not equal, either
                return self._equal(feature, value, False), False
            case "MEMBER":
                first, *others = members
                tests = self._equal(feature, first, missing)
                for member in others:
                    tests += self._equal(feature, member, False)
                return tests, True
        self.site.refuse(f"a node compares by {mode}", "Check the model")

    def _copy(self, feature: int, sorts_first: bool) -> int:
        self.missing &= self.tracks_missing or not sorts_first
        return feature + self.features if self.tracks_missing and sorts_first else feature

    def _equal(
        self, feature: int, value: float, missing: bool, lower_bound: float | None = None
    ) -> list[Test]:
        """Up to the value, and not below it, or not up to `lower_bound`."""
        strict = lower_bound is None
        lower_test = Test(
            feature, value if lower_bound is None else lower_bound, strict=strict, times=-1
        )
        return [Test(self._copy(feature, missing), value), lower_test]


def _branch(tests: tuple[list[Test], bool], true_child: object, false_child: object) -> Branch:
    branch_tests, holds = tests
    return (
        Branch(branch_tests, true_child, false_child)
        if holds
        else Branch(branch_tests, false_child, true_child)
    )


class _NodeLists:
    """The lists of TreeEnsembleRegressor; names of those of leaves begin with `leaf`."""

    def __init__(self, site: Site, leaf: str) -> None:
        self.site, self.tests = site, _NodeTests(site)
        self.values, self.lower_bounds = _numbers(site, "nodes_values"), _numbers(site, BELOW)
        modes: list[bytes] = site.attribute("nodes_modes", [])
        self.modes = [mode.decode() for mode in modes]
        keys = zip(_ints(site, "nodes_treeids"), _ints(site, "nodes_nodeids"), strict=True)
        self.index_by_key = {key: index for index, key in enumerate(keys)}
        self.features = _ints(site, "nodes_featureids")
        self.true_ids, self.false_ids = (
            _ints(site, f"nodes_{branch}nodeids") for branch in ("true", "false")
        )
        self.weights: dict[tuple[int, int], dict[int, float]] = defaultdict(dict)
        entries = zip(
            _ints(site, f"{leaf}_treeids"),
            _ints(site, f"{leaf}_nodeids"),
            _ints(site, f"{leaf}_ids"),
            _numbers(site, f"{leaf}_weights").tolist(),
            strict=True,
        )
        for tree, node, target, weight in entries:
            leaf_weights = self.weights[tree, node]
            leaf_weights[target] = leaf_weights.get(target, 0.0) + weight

    def trees(self) -> list[Tree]:
        children = {
            (tree, child)
            for (tree, _), index in self.index_by_key.items()
            if self.modes[index] != LEAF
            for child in (self.true_ids[index], self.false_ids[index])
        }
        roots = [key for key in self.index_by_key if key not in children]
        trees = _walk_all(self.site, roots, self._node)
        if sum(len(tree.branches) + len(tree.leaves) for tree in trees) < len(self.index_by_key):
            self.site.refuse("its nodes are no trees", "Check the model")
        return trees

    def _node(self, key: Any) -> Branch | Leaf:
        if key not in self.index_by_key:
            self.site.refuse(f"tree {key[0]} has no node {key[1]}", "Check the model")
        tree, index = key[0], self.index_by_key[key]
        mode = self.modes[index].removeprefix("BRANCH_")
        if mode == LEAF:
            return Leaf(self.weights.get(key, {}))
        value = float(self.values[index])
        lower_bound = float(self.lower_bounds[index]) if self.lower_bounds.size else None
        tests = self.tests.of(index, mode, self.features[index], value, lower_bound=lower_bound)
        return _branch(tests, (tree, self.true_ids[index]), (tree, self.false_ids[index]))


class _SplitLists:
    """The lists of TreeEnsemble."""

    def __init__(self, site: Site) -> None:
        self.site, self.tests = site, _NodeTests(site)
        self.features, self.splits = _ints(site, "nodes_featureids"), _numbers(site, "nodes_splits")
        self.modes = [MODES[mode] for mode in _numbers(site, "nodes_modes").astype(np.int64)]
        self.branches = [
            [_ints(site, f"nodes_{branch}{kind}s") for kind in ("nodeid", "leaf")]
            for branch in ("true", "false")
        ]
        self.targets, self.weights = _ints(site, "leaf_targetids"), _numbers(site, "leaf_weights")
        members = _numbers(site, "membership_values").tolist()
        self.members: dict[int, list[float]] = {}
        for index, mode in enumerate(self.modes):
            if mode == "MEMBER":
                end = next(i for i, member in enumerate(members) if math.isnan(member))
                self.members[index], members = members[:end], members[end + 1 :]

    def trees(self) -> list[Tree]:
        roots = [self._root(root) for root in _ints(self.site, "tree_roots")]
        return _walk_all(self.site, roots, self._node)

    def _root(self, root: int) -> object:
        """A tree of one leaf is a node both of whose ways lead to it."""
        (true, is_leaf), (false, _) = ([ids[root] for ids in branch] for branch in self.branches)
        return (True, true) if is_leaf and true == false else (False, root)

    def _node(self, key: Any) -> Branch | Leaf:
        is_leaf, index = key
        if is_leaf:
            return Leaf({self.targets[index]: float(self.weights[index])})
        split, members = float(self.splits[index]), self.members.get(index, [])
        tests = self.tests.of(index, self.modes[index], self.features[index], split, members)
        true, false = ((bool(leaf[index]), ids[index]) for ids, leaf in self.branches)
        return _branch(tests, true, false)


def _walk_all(
    site: Site, roots: Sequence[object], read_node: Callable[[Any], Branch | Leaf]
) -> list[Tree]:
    if not roots:
        site.refuse("it has no tree", "Check the model")
    return [walk(root, read_node) for root in roots]


def _ints(site: Site, name: str) -> list[int]:
    return site.ints(name) or []


def _numbers(site: Site, name: str) -> Array:
    """A list of numbers: floats, or a tensor that may have doubles."""
    numbers = site.attribute(name, None) or site.attribute(f"{name}_as_tensor", None)
    if isinstance(numbers, onnx.TensorProto):
        return np.asarray(onnx.numpy_helper.to_array(numbers), dtype=np.float64).ravel()
    return np.asarray(numbers or (), dtype=np.float64)
