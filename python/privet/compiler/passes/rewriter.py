"""The frame that passes share: walk a graph in order and build the next one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from privet.compiler.graph import Graph, GraphBuilder, Node, Value
from privet.compiler.graph.operations import Operation


def rewritten(graph: Graph, rewrite: Callable[[Rewriter, Node], int | None]) -> Graph:
    """The graph with every node as `rewrite` makes it, which is given the graph being rebuilt."""
    rewriter = Rewriter(graph)
    return rewriter.walk(partial(rewrite, rewriter))


class Rewriter:
    """A graph being rebuilt. `new` maps the old graph's values to the new one's.

    A pass gives `walk` a function that maps one old node to the id of its new value, by adding
    other nodes, or to None: then the node stays. What becomes unused disappears when the new graph
    is built.
    """

    def __init__(self, graph: Graph) -> None:
        self.old = graph
        self.builder = GraphBuilder(graph.name, graph.head)
        self.new: dict[int, int] = {}
        self._uses = graph.uses()
        self._old_of: dict[int, int] = {}
        self._nodes: dict[int, Node] = {}

    def walk(
        self, rewrite: Callable[[Node], int | None], map_output: Callable[[int], int] | None = None
    ) -> Graph:
        """Rebuilds every node by `rewrite` and returns the new graph.

        `map_output` maps the old graph's values that are outputs, if `new` does not.
        """
        map_output = map_output or self.new.__getitem__
        for entry in self.old.inputs:
            value = self.old.values[entry.value]
            self.new[entry.value] = self.builder.input(entry, value)
            self._old_of[self.new[entry.value]] = entry.value
        for node in self.old.nodes:
            new_id = rewrite(node)
            self.new[node.output] = self.copy(node) if new_id is None else new_id
            self._old_of[self.new[node.output]] = node.output
        for output in self.old.outputs:
            self.builder.output(output.name, map_output(output.value), output.client, output.kind)
        return self.builder.build()

    def copy(self, node: Node) -> int:
        return self.add(node, node.operation, *(self.new[id] for id in node.inputs))

    def add(self, node: Node, operation: Operation, *inputs: int, name: str | None = None) -> int:
        """An operation on new values that makes what `node` made; named as it by default."""
        like = self.old.values[node.output]
        return self.add_new(name or node.name, operation, *inputs, like=like)

    def add_new(
        self, name: str, operation: Operation, *inputs: int, like: Value | None = None
    ) -> int:
        """An operation on new values that the old graph has no counterpart of."""
        new_id = self.builder.add(operation, inputs, node=name, like=like)
        self._nodes[new_id] = Node(operation, name, inputs, new_id)
        return new_id

    def source(self, new: int) -> Node | None:
        """The new node that makes a new value, if nothing but the current node reads it."""
        old = self._old_of.get(new)
        node = self._nodes.get(new)
        if node is None or (old is not None and self._uses[old] != 1):
            return None
        return node
