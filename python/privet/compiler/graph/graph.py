"""The typed graph: values with static shapes, nodes that make them, and its builder.

A graph is never changed. A pass reads one and builds another with `GraphBuilder`, which infers
each value's shape from the operation that makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Self, TypeVar

from privet.compiler.graph.head import Head
from privet.compiler.graph.operations import Arithmetic, Context, Operation, Shape
from privet.compiler.graph.shapes import infer_shape

TensorT = TypeVar("TensorT")


@dataclass(frozen=True)
class Value:
    """A tensor: its static shape, its ONNX name, and what the passes learn about it.

    `magnitude` bounds the real values (measured range times margin); `scale` is the power of two
    that the integers are scaled by. Both are None until the pass that sets them has run. `fine` is
    how many more fractional bits than others it keeps when it is truncated.
    """

    shape: Shape
    name: str
    magnitude: float | None = None
    scale: int | None = None
    fine: int = 0


@dataclass(frozen=True)
class Node:
    """An operation, the values it reads and the one it writes; `name` is the ONNX node's."""

    operation: Operation
    name: str
    inputs: tuple[int, ...]
    output: int


@dataclass(frozen=True)
class Input:
    """A tensor that the client gives; with `order` the places of its numbers in their order.

    With `missing` any of these may be missing. The pass `move_truncation` decides on both
    (`privet.compiler.graph.order`). With `one_hot` it gives whole numbers, each of which becomes a
    last axis that is 1 at its place and 0 elsewhere. With `whole` the model says that its numbers
    are whole, or truth values.

    With `state` nobody gives it: it is what the output of that name was in the inference before,
    and zero at first (`privet.compiler.graph.state`).
    """

    name: str
    value: int
    order: bool = False
    missing: bool = False
    one_hot: bool = False
    state: str | None = None
    whole: bool = False


@dataclass(frozen=True)
class ClientStep:
    """What the client does in the clear on its own result: `softmax` or `log_softmax`.

    `flatten` is the meaning before opset 13: all axes from `axis` on are normalised together.
    """

    op: str
    axis: int
    flatten: bool = False


@dataclass(frozen=True)
class Output:
    """A tensor that the client learns, or that is the `state` of an input.

    Its `kind` in the model is `real`, `integer` or `boolean`.
    """

    name: str
    value: int
    client: ClientStep | None = None
    kind: str = "real"


@dataclass(frozen=True)
class Graph:
    """Nodes in execution order over numbered values, each written once.

    `head` is what the client computes in the clear on the outputs, if there is more than that.
    """

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    values: Mapping[int, Value]
    nodes: tuple[Node, ...]
    head: Head | None = None

    def input_shape(self, entry: Input) -> Shape:
        """The shape of what the client gives for an input."""
        shape = self.values[entry.value].shape
        return shape[:-1] if entry.one_hot else shape

    @property
    def given(self) -> tuple[Input, ...]:
        """What the client gives: all inputs but state."""
        return tuple(entry for entry in self.inputs if entry.state is None)

    @property
    def state(self) -> dict[str, tuple[int, int]]:
        """The values that each tensor of state has before and after an inference, by name."""
        output_values = {output.name: output.value for output in self.outputs}
        return {
            entry.name: (entry.value, output_values[entry.state])
            for entry in self.inputs
            if entry.state is not None
        }

    def uses(self) -> dict[int, int]:
        """How often each value is read, outputs of the graph included."""
        counts = dict.fromkeys(self.values, 0)
        for node in self.nodes:
            for value in node.inputs:
                counts[value] += 1
        for output in self.outputs:
            counts[output.value] += 1
        return counts

    def evaluate(
        self, given: Mapping[int, TensorT], compute: Callable[[Node, list[TensorT]], TensorT]
    ) -> list[TensorT]:
        """What the outputs hold, where values of `given` are known and `compute` makes the others;
        each is dropped after its last use."""
        remaining_uses, results = self.uses(), dict(given)
        for node in self.nodes:
            results[node.output] = compute(node, [results[id] for id in node.inputs])
            for id in node.inputs:
                remaining_uses[id] -= 1
                if not remaining_uses[id]:
                    results.pop(id, None)
        return [results[output.value] for output in self.outputs]

    def producers(self) -> dict[int, Node]:
        """The node that writes each value; graph inputs have none."""
        return {node.output: node for node in self.nodes}

    def context(self, node: Node, ring_bits: int, arithmetic: Arithmetic | None = None) -> Context:
        """What the operation of a node of an integer graph has to know of its place."""
        input_shapes = tuple(self.values[id].shape for id in node.inputs)
        first, output = self.values[node.inputs[0]], self.values[node.output]
        repeats = len(set(node.inputs)) == 1
        return Context(
            input_shapes,
            output.shape,
            first.scale,
            output.scale,
            ring_bits,
            repeats,
            arithmetic or Arithmetic(),
        )

    def with_values(self, change: Callable[[int, Value], Value]) -> Self:
        """The same graph with `change(id, value)` in place of each value."""
        values = {id: change(id, value) for id, value in self.values.items()}
        return replace(self, values=MappingProxyType(values))


class GraphBuilder:
    """Builds a graph node by node; values are numbered in the order they are made."""

    def __init__(self, name: str, head: Head | None = None) -> None:
        self.head = head
        self.missing = True
        """Whether every node so far is right where a number of an input is NaN."""
        self._name = name
        self._inputs: list[Input] = []
        self._outputs: list[Output] = []
        self._values: list[Value] = []
        self._nodes: list[Node] = []

    def input(self, entry: Input, value: Value) -> int:
        """Adds a graph input like `entry` and returns its value's id."""
        self._values.append(value)
        self._inputs.append(replace(entry, value=len(self._values) - 1))
        return len(self._values) - 1

    def add(
        self,
        operation: Operation,
        inputs: Sequence[int],
        *,
        node: str,
        like: Value | None = None,
    ) -> int:
        """Adds a node and returns the id of its value.

        `node` is the layer's name for people, and the value's too unless `like` passes on another
        value's name, magnitude and scale. Raises `ValueError` if the shapes do not fit.
        """
        shape = infer_shape(operation, [self._values[id].shape for id in inputs])
        value = replace(like, shape=shape) if like else Value(shape, node)
        self._values.append(value)
        self._nodes.append(Node(operation, node, tuple(inputs), len(self._values) - 1))
        return len(self._values) - 1

    def output(
        self, name: str, value: int, client: ClientStep | None = None, kind: str = "real"
    ) -> None:
        """Declares a value as an output of the graph."""
        self._outputs.append(Output(name, value, client, kind))

    def rename(self, id: int, name: str) -> None:
        """Gives a value the name of the ONNX tensor that it stands for."""
        self._values[id] = replace(self._values[id], name=name)

    def rescale(self, id: int, scale: int) -> None:
        """Sets a value's scale."""
        self._values[id] = replace(self._values[id], scale=scale)

    def refine(self, id: int, fine: int) -> None:
        """Sets how many more fractional bits a value keeps."""
        self._values[id] = replace(self._values[id], fine=fine)

    def value(self, id: int) -> Value:
        """A value made so far."""
        return self._values[id]

    def count(self) -> int:
        """How many values have been made; ids from here on are new."""
        return len(self._values)

    def shape(self, id: int) -> Shape:
        """The shape of a value made so far."""
        return self._values[id].shape

    def build(self) -> Graph:
        """The graph, without the nodes that no output depends on."""
        live_values = {output.value for output in self._outputs}
        live_nodes: list[Node] = []
        for node in reversed(self._nodes):
            if node.output in live_values:
                live_nodes.append(node)
                live_values.update(node.inputs)
        live_values.update(entry.value for entry in self._inputs)
        return Graph(
            name=self._name,
            inputs=tuple(self._inputs),
            outputs=tuple(self._outputs),
            values=MappingProxyType({id: self._values[id] for id in sorted(live_values)}),
            nodes=tuple(reversed(live_nodes)),
            head=self.head,
        )
