"""A model as the zoo describes it: ONNX nodes, and weights by name and law rather than by value.

Weights are drawn only while a file is written, so describing VGG-16 costs kilobytes. Each value
carries an estimate of its second moment, from which layers scale their random weights; that keeps
every activation of a random network near one, where fixed point neither overflows nor underflows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, helper

Array = npt.NDArray[np.generic]
Attribute = int | float | str | Sequence[int] | Sequence[float]


@dataclass(frozen=True)
class Value:
    """A tensor that flows through the graph: its name, its static shape and its estimated size.

    The second moment is kept in two parts: `signed`, of components symmetric about zero, half of
    which a ReLU removes, and `positive`, of components that a ReLU lets through.
    """

    name: str
    shape: tuple[int, ...]
    signed: float
    positive: float = 0.0

    @property
    def moment(self) -> float:
        """The estimated mean of the squared elements."""
        return self.signed + self.positive

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Normal:
    """Independent normal elements."""

    deviation: float
    mean: float = 0.0


@dataclass(frozen=True)
class Uniform:
    """Independent elements, uniform on `[low, high]`."""

    low: float
    high: float


@dataclass(frozen=True)
class Fixed:
    """Elements that belong to the architecture, such as a reshape's target or a coefficient."""

    elements: Array


Law = Normal | Uniform | Fixed


@dataclass(frozen=True)
class Weight:
    """A constant of the graph and the law its elements follow; `learned` ones are parameters."""

    name: str
    shape: tuple[int, ...]
    law: Law
    learned: bool


class GraphBuilder:
    """Nodes in execution order, the weights they name, and running totals of their cost."""

    def __init__(
        self, name: str, input_shape: tuple[int, ...], moment: float, *, ids: bool = False
    ) -> None:
        """Start a graph whose one input has `input_shape` and elements of second moment `moment`.

        Pixels in [0, 1] have a moment near 1/3, standardised features and hidden states 1. With
        `ids` the elements are whole numbers, rows of a table.
        """
        self.name = name
        self.ids = ids
        self.input = Value("input", input_shape, moment)
        self.output = self.input
        self.more_inputs: list[tuple[Value, bool]] = []
        self.more_outputs: list[Value] = []
        self.nodes: list[NodeProto] = []
        self.weights: list[Weight] = []
        self.multiply_accumulates = 0
        self.relus = 0
        self._uses: Counter[str] = Counter()

    @property
    def parameters(self) -> int:
        """The number of learned elements; batch-norm running statistics are not among them."""
        return sum(math.prod(weight.shape) for weight in self.weights if weight.learned)

    def label(self, kind: str) -> str:
        """A name for the next node of this kind: `conv1`, `conv2`, ..."""
        self._uses[kind] += 1
        return f"{kind}{self._uses[kind]}"

    def weight(self, name: str, shape: tuple[int, ...], law: Law, *, learned: bool = True) -> str:
        """Declare a weight and return its name."""
        self.weights.append(Weight(name, shape, law, learned))
        return name

    def constant(self, name: str, elements: npt.ArrayLike) -> str:
        """Declare a constant of the architecture: float32, or int64 if `elements` are integers."""
        array = np.asarray(elements)
        array = array.astype(np.int64 if array.dtype.kind == "i" else np.float32)
        return self.weight(name, array.shape, Fixed(array), learned=False)

    def node(
        self,
        op: str,
        inputs: Sequence[Value | str],
        shape: tuple[int, ...],
        *,
        signed: float,
        positive: float = 0.0,
        label: str | None = None,
        **attributes: Attribute,
    ) -> Value:
        """Append one ONNX node with one output of the given shape and estimated moment."""
        label = label or self.label(op.lower())
        names = [item.name if isinstance(item, Value) else item for item in inputs]
        output = f"{label}.out"
        node = helper.make_node(op, names, [output], name=label)
        node.attribute.extend(
            helper.make_attribute(key, value) for key, value in sorted(attributes.items())
        )
        self.nodes.append(node)
        return Value(output, shape, signed, positive)

    def more_input(self, name: str, shape: tuple[int, ...], *, ids: bool = False) -> Value:
        """Declare another input; with `ids`, of whole numbers."""
        value = Value(name, shape, 1.0)
        self.more_inputs.append((value, ids))
        return value

    def more_output(self, value: Value, name: str) -> Value:
        """Make what the last node computes another output of the graph."""
        self.more_outputs.append(self._renamed(value, name))
        return self.more_outputs[-1]

    def finish(self, value: Value, name: str = "logits") -> None:
        """Make `value` the graph's output under the given name."""
        self.output = self._renamed(value, name)

    def _renamed(self, value: Value, name: str) -> Value:
        last = self.nodes[-1]
        if list(last.output) != [value.name]:
            raise ValueError(f"{value.name} is not what the last node, {last.name}, computes")
        last.output[0] = name
        return Value(name, value.shape, value.signed, value.positive)
