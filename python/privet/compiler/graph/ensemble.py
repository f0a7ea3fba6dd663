"""Decision trees as arrays: read from ONNX's lists of nodes, padded to one public shape.

Trees of one ensemble are padded to the same number of nodes and leaves, so that the shape of none
is public. There are two forms (`privet.compiler.graph.operations.Trees`): complete trees, in which
a leaf above the last level stands in all the places below it, and trees of any shape, in which each
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
MOST_COPIES = 64
"""Nodes that several ways lead to become at most so many times as many as there are in the model,
`DEEPEST` levels deep; fewer further below."""
BLOCK, BLOCK_WEIGHTS = 300, 4096
"""What so many weights of a tree's block of paths cost, in comparisons of nodes."""


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


Path = list[tuple[int, Branch, bool]]
"""The way to a node from the root: each branch's first test, the branch, and whether it is true."""


@dataclass
class Tree:
    """A tree: its tests in order, the place of each branch, and each leaf with its way and place.

    A place is a number that has bit j set if the way goes to false at level j.
    """

    tests: list[Test] = field(default_factory=list)
    branches: list[int] = field(default_factory=list)
    leaves: list[tuple[Leaf, Path, int]] = field(default_factory=list)

    @property
    def depth(self) -> int:
        return max(len(path) for _, path, _ in self.leaves)


def walk(root: object, read_node: Callable[[object], Branch | Leaf]) -> Tree:
    """The tree below `root`; what several ways lead to stands at the end of each.

    Raises `ValueError` if a way leads back, or nodes stand at too many ends.
    """
    tree, visited = Tree(), set()
    stack: list[tuple[object, Path, int]] = [(root, [], 0)]
    copies = 0
    while stack:
        key, path, place = stack.pop()
        copies += len(path) if key in visited else 0
        visited.add(key)
        if len(path) >= len(visited):
            raise ValueError(f"a way leads back to node {key}")
        if copies > MOST_COPIES * DEEPEST * (len(visited) + 1):
            raise ValueError(f"too many ways lead to node {key}")
        node, level_size = read_node(key), 1 << len(path)
        if isinstance(node, Leaf):
            tree.leaves.append((node, path, place))
            continue
        first = len(tree.tests)
        tree.tests.extend(node.tests)
        tree.branches.append(level_size - 1 + place)
        stack.append((node.false, [*path, (first, node, False)], place + level_size))
        stack.append((node.true, [*path, (first, node, True)], place))
    return tree


def ensemble(trees: Sequence[Tree], base: Array) -> Trees:
    """The trees in the cheaper form; targets are those of `base`."""
    depth = max(max(tree.depth for tree in trees), 1)
    nodes, leaves = _padded_sizes(trees)
    blocks = -(-nodes * leaves // BLOCK_WEIGHTS)
    has_single_tests = all(len(tree.tests) == len(tree.branches) for tree in trees)
    if has_single_tests and depth <= DEEPEST and 1 << depth <= nodes + leaves // 4 + blocks * BLOCK:
        return _complete_trees(trees, depth, base)
    return _path_trees(trees, nodes, leaves, base)


def _padded_sizes(trees: Sequence[Tree]) -> tuple[int, int]:
    counts = (max(len(t.tests) for t in trees), max(len(t.leaves) for t in trees))
    nodes, leaves = (-(-max(count, 1) // PADDING) * PADDING for count in counts)
    return nodes, leaves


def _empty_nodes(trees: Sequence[Tree], count: int) -> tuple[Array, Array, Array]:
    """Features, thresholds and strictness of no nodes yet."""
    shape = (len(trees), count)
    return np.full(shape, -1, dtype=np.int64), np.zeros(shape), np.zeros(shape, dtype=bool)


def _set_nodes(
    nodes: Sequence[Array], tree: int, places: Sequence[int], tests: Sequence[Test]
) -> None:
    for array, name in zip(nodes, ("feature", "threshold", "strict"), strict=True):
        array[tree, places] = [getattr(test, name) for test in tests]


def _complete_trees(trees: Sequence[Tree], depth: int, base: Array) -> Trees:
    nodes = _empty_nodes(trees, (1 << depth) - 1)
    values = np.zeros((len(trees), 1 << depth, len(base)))
    for t, tree in enumerate(trees):
        _set_nodes(nodes, t, tree.branches, tree.tests)
        for leaf, path, place in tree.leaves:
            for target, value in leaf.values.items():
                values[t, place :: 1 << len(path), target] += value
    return Trees(*nodes, values, base, depth=depth)


def _path_trees(trees: Sequence[Tree], count: int, leaves: int, base: Array) -> Trees:
    nodes = _empty_nodes(trees, count)
    values = np.zeros((len(trees), leaves, len(base)))
    paths = np.zeros((len(trees), leaves, count), dtype=np.int8)
    offsets = np.ones((len(trees), leaves), dtype=np.int64)  # a leaf that pads is never reached
    for t, tree in enumerate(trees):
        _set_nodes(nodes, t, range(len(tree.tests)), tree.tests)
        for index, (leaf, path, _) in enumerate(tree.leaves):
            offsets[t, index] = sum(is_true for _, _, is_true in path)
            for first, branch, is_true in path:
                for i, test in enumerate(branch.tests):
                    paths[t, index, first + i] += -test.times if is_true else test.times
            for target, value in leaf.values.items():
                values[t, index, target] += value
    return Trees(*nodes, values, base, paths=paths, offsets=offsets)
