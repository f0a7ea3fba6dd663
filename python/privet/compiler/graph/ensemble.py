"""Decision trees as arrays: read from ONNX's lists of nodes, padded to one public shape.

Trees of one ensemble are padded to the same number of nodes and leaves, so that the shape of none is
public. There are two forms (`privet.compiler.graph.operations.Trees`): complete trees, in which a
leaf above the last level stands in all the places below it, and trees of any shape, in which each
leaf knows its way. Whichever is less work is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from privet.compiler.graph.operations import Array, Trees

PADDING = 8
"""Nodes and leaves of trees that are not complete are padded to a multiple of this."""
DEEPEST = 12
"""Most levels of complete trees."""
COMPARISON, WEIGHT = 24.0, 0.5
"""What a comparison of a node costs, and an element of a tree's block of paths, beside a bit."""


@dataclass(frozen=True)
class Test:
    """`x[feature] <= threshold`, or `<` if strict, counted so many times."""

    feature: int
    threshold: float
    strict: bool = False
    times: int = 1


@dataclass(frozen=True)
class Branch:
    """A node that goes to `true` if its tests add up to 1, else to `false`."""

    tests: Sequence[Test]
    true: object
    false: object


@dataclass(frozen=True)
class Leaf:
    """Values by target."""

    values: Mapping[int, float]


@dataclass
class Tree:
    """A tree: its tests in order, and each leaf's way to it from the root.

    A way lists the number of a branch's first test, the branch, and whether it was true.
    """

    tests: list[Test] = field(default_factory=list)
    leaves: list[tuple[Leaf, list[tuple[int, Branch, bool]]]] = field(default_factory=list)

    @property
    def depth(self) -> int:
        return max(len(way) for _, way in self.leaves)


def walk(root: object, node: Callable[[object], Branch | Leaf]) -> Tree:
    """The tree below `root`. Raises `ValueError` if a node is its own ancestor."""
    tree, seen = Tree(), set()
    stack: list[tuple[object, list[tuple[int, Branch, bool]]]] = [(root, [])]
    while stack:
        key, way = stack.pop()
        if key in seen:
            raise ValueError(f"node {key} is reached twice")
        seen.add(key)
        found = node(key)
        if isinstance(found, Leaf):
            tree.leaves.append((found, way))
            continue
        first = len(tree.tests)
        tree.tests.extend(found.tests)
        stack.append((found.false, [*way, (first, found, False)]))
        stack.append((found.true, [*way, (first, found, True)]))
    return tree


def ensemble(trees: Sequence[Tree], base: Array) -> Trees:
    """The trees in the cheaper form; targets are those of `base`."""
    depth = max(max(tree.depth for tree in trees), 1)
    nodes, leaves = _padded(trees)
    simple = all(
        len(branch.tests) == 1 for tree in trees for _, way in tree.leaves for _, branch, _ in way
    )
    complete = (2**depth - 1) * COMPARISON
    if simple and depth <= DEEPEST and complete <= nodes * (COMPARISON + leaves * WEIGHT):
        return _complete(trees, depth, base)
    return _any_shape(trees, nodes, leaves, base)


def _padded(trees: Sequence[Tree]) -> tuple[int, int]:
    largest = (max(len(t.tests) for t in trees), max(len(t.leaves) for t in trees))
    nodes, leaves = (-(-max(count, 1) // PADDING) * PADDING for count in largest)
    return nodes, leaves


def _complete(trees: Sequence[Tree], depth: int, base: Array) -> Trees:
    shape = (len(trees), (1 << depth) - 1)
    feature, threshold = np.full(shape, -1, dtype=np.int64), np.zeros(shape)
    strict = np.zeros(shape, dtype=bool)
    values = np.zeros((len(trees), 1 << depth, len(base)))
    for t, tree in enumerate(trees):
        for leaf, way in tree.leaves:
            place = 0
            for level, (_, branch, is_true) in enumerate(way):
                (test,) = branch.tests
                at = (1 << level) - 1 + place
                feature[t, at], threshold[t, at] = test.feature, test.threshold
                strict[t, at] = test.strict
                place |= 0 if is_true else 1 << level
            for target, value in leaf.values.items():
                values[t, place :: 1 << len(way), target] += value
    return Trees(feature, threshold, strict, values, base, depth=depth)


def _any_shape(trees: Sequence[Tree], nodes: int, leaves: int, base: Array) -> Trees:
    shape = (len(trees), nodes)
    feature, threshold = np.full(shape, -1, dtype=np.int64), np.zeros(shape)
    strict = np.zeros(shape, dtype=bool)
    values = np.zeros((len(trees), leaves, len(base)))
    paths = np.zeros((len(trees), leaves, nodes), dtype=np.int8)
    offsets = np.ones((len(trees), leaves), dtype=np.int64)  # a leaf that pads is never reached
    for t, tree in enumerate(trees):
        for at, test in enumerate(tree.tests):
            feature[t, at], threshold[t, at] = test.feature, test.threshold
            strict[t, at] = test.strict
        for at, (leaf, way) in enumerate(tree.leaves):
            offsets[t, at] = sum(is_true for _, _, is_true in way)
            for first, branch, is_true in way:
                for i, test in enumerate(branch.tests):
                    paths[t, at, first + i] += -test.times if is_true else test.times
            for target, value in leaf.values.items():
                values[t, at, target] += value
    return Trees(feature, threshold, strict, values, base, paths=paths, offsets=offsets)
