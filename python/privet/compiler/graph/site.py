"""One ONNX node as its importer sees it: typed operands, attributes, and a way to emit operations.

An operand is either private (a value of the graph being built) or a constant (a numpy array).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import numpy as np
import onnx

from privet.compiler.graph import operations as op
from privet.compiler.graph import registry
from privet.compiler.graph.graph import ClientStep, GraphBuilder
from privet.compiler.graph.operations import Array, Operation, Shape
from privet.compiler.graph.rewriting import attributes
from privet.compiler.graph.shapes import MAX_SAMPLE

Default = TypeVar("Default")
MOVES = (op.Broadcast, op.Concat, op.Reshape, op.Slice, op.Transpose)


@dataclass(frozen=True)
class Quantized:
    """Of a tensor that stands for the integers `x / scale + zero`."""

    scale: float
    zero: float


@dataclass(frozen=True)
class Private:
    """A private tensor; `client` is set if the client still has a step to do on it.

    `integer` marks a tensor of an ONNX integer type (an index from ArgMax), `whole` another one of
    whole numbers, and `neg_inf` the elements that stand for minus infinity, which a Softmax alone
    may read. A `one_hot` one has an axis more than in the model: zeros, and a one at the place that
    the number names; where an operator wants the number itself, it is computed. Whole numbers from
    0 on, such as places of classes, are below `upper_bound`: 0 where nothing is known. `quantized`
    says which integers the model has in its place, and `cast_to_integer` that it has the whole
    numbers to which a cast cuts these off.
    """

    id: int
    shape: Shape
    client: ClientStep | None = None
    integer: bool = False
    whole: bool = False
    neg_inf: Array | None = None
    one_hot: bool = False
    upper_bound: int = 0
    quantized: Quantized | None = None
    cast_to_integer: bool = False


Operand = Private | Array


@dataclass(frozen=True)
class TensorList:
    """An ONNX sequence; its length is known while the model is read."""

    items: tuple[Operand, ...]


class Unsupported(Exception):
    """An importer's refusal; the walk over the model turns it into a `Problem`."""

    def __init__(self, why: str, instead: str) -> None:
        super().__init__(why)
        self.why = why
        self.instead = instead


class Site:
    """A node being imported."""

    def __init__(
        self,
        node: onnx.NodeProto,
        *,
        name: str,
        opset: int,
        inputs: Sequence[Operand | TensorList | None],
        used: Collection[str],
        builder: GraphBuilder,
        inner: bool = False,
    ) -> None:
        self.name = name
        self.node = node
        self.operator: str = node.op_type
        self.opset = opset
        self.inputs = list(inputs)
        self.output_count = len(node.output)
        self.inner = inner
        self._used = [name in used for name in node.output]
        self._builder = builder
        self.attributes = attributes(node)

    def apply(self, operator: str, *operands: Operand, **attributes: Any) -> Private:
        """What the importer of another operator makes of operands, as part of this node."""
        importer = registry.importer(operator)
        assert importer is not None
        names = [f"x{index}" for index in range(len(operands))]
        node = onnx.helper.make_node(operator, names, ["y"], **attributes)
        result = importer(
            Site(
                node,
                name=self.name,
                opset=self.opset,
                inputs=operands,
                used=node.output,
                builder=self._builder,
                inner=True,
            )
        )
        assert isinstance(result, Private)
        return result

    # Operands

    def has_input(self, index: int) -> bool:
        """Whether an optional input is there."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def operand(self, index: int) -> Operand:
        """An input that must be there."""
        operand = self.inputs[index] if index < len(self.inputs) else None
        if operand is None:
            self.refuse(f"input {index} is missing", "Export the model again")
        if isinstance(operand, TensorList):
            self.refuse(f"input {index} is a sequence", "Let a tensor come in at this input")
        return operand

    def sequence(self, index: int) -> tuple[Operand, ...]:
        """The tensors of an input that must be a sequence."""
        operand = self.inputs[index]
        if not isinstance(operand, TensorList):
            self.refuse(f"input {index} is no sequence", "Check the model")
        return operand.items

    def operands(self) -> list[Operand]:
        """All inputs, none of which may be left out."""
        return [self.operand(index) for index in range(len(self.inputs))]

    def private(self, index: int) -> Private:
        """An input that must be private."""
        operand = self.operand(index)
        if not isinstance(operand, Private):
            self.refuse(f"input {index} is a constant", "Let the data come in at this input")
        return operand

    def rows(self) -> Private:
        """The first input as rows of features; a vector counts as one."""
        x = self.private(0)
        return x if len(x.shape) == 2 else self.reshape(x, (1, math.prod(x.shape)))

    def constant(self, index: int, role: str) -> Array:
        """An input that must be a constant; `role` names it for the user."""
        operand = self.operand(index)
        if isinstance(operand, Private):
            self.refuse(
                f"its {role} depend{'' if role.endswith('s') else 's'} on the private input",
                f"Store the {role} in the model as a constant (an initialiser)",
            )
        return operand

    def broadcast(self, operand: Private, shape: Shape) -> Private:
        if operand.shape == shape:
            return operand
        return self.emit(op.Broadcast(shape), operand)

    def uses_output(self, output: int) -> bool:
        """Whether anything reads an output of the node."""
        return output < self.output_count and self._used[output]

    # Attributes

    def attribute(self, name: str, default: Default) -> Default:
        """An attribute, or `default` where the node has none; strings are decoded."""
        value = self.attributes.get(name, default)
        if isinstance(value, bytes):
            value = value.decode()
        return value  # type: ignore[no-any-return]

    def ints(self, name: str) -> list[int] | None:
        """An attribute that is a list of integers, or None where the node has none."""
        entries = self.attributes.get(name)
        return None if entries is None else [int(entry) for entry in entries]

    def floats(self, name: str) -> Array:
        """An attribute that is a list of numbers; empty where the node has none."""
        return np.asarray(self.attributes.get(name, ()), dtype=np.float64)

    def ints_of(self, name: str, index: int) -> list[int] | None:
        """Integers that older opsets give as an attribute and newer ones as an input."""
        if name in self.attributes:
            return self.ints(name)
        if not self.has_input(index):
            return None
        return [int(entry) for entry in np.ravel(self.constant(index, name))]

    @property
    def missing(self) -> bool:
        """Whether a private number may be NaN, as far as nodes before this one tell."""
        return self._builder.missing

    def assume_present(self) -> None:
        """Says that this node's result is right only if no private number is NaN."""
        self._builder.missing = False

    # Results

    def emit(self, operation: Operation, *inputs: Private) -> Private:
        """Adds an operation and returns its private result."""
        try:
            id = self._builder.add(
                operation,
                [operand.id for operand in inputs],
                node=self.name,
            )
        except ValueError as error:
            self.refuse(str(error), "Check the model's shapes, or give other input_shapes")
        self.check_size(math.prod(self._builder.shape(id)))
        integer = isinstance(operation, op.ArgMax) or (
            not isinstance(operation, (*op.LINEAR, op.AddConstant, op.AvgPool2d))
            and all(x.integer for x in inputs)
        )
        sources = inputs if isinstance(operation, MOVES) else ()
        upper_bound = (
            max(x.upper_bound for x in sources)
            if sources and all(x.upper_bound for x in sources)
            else 0
        )
        whole = bool(sources) and all(x.whole for x in sources)
        return Private(
            id, self._builder.shape(id), integer=integer, whole=whole, upper_bound=upper_bound
        )

    def check_size(self, count: int) -> None:
        """Refuses a result of too many elements, before anything of that size is made."""
        if count > MAX_SAMPLE:
            self.refuse(
                f"its result has {count} elements, more than {MAX_SAMPLE} for one sample",
                "Check the model's shapes, or give other input_shapes",
            )

    def reshape(self, operand: Private, shape: Sequence[int]) -> Private:
        """The operand in another shape; itself if it has that shape already."""
        if operand.shape == tuple(shape):
            return operand
        return self.emit(op.Reshape(tuple(shape)), operand)

    def transpose(self, operand: Private, perm: Sequence[int]) -> Private:
        """The operand with its axes in this order; itself if that is theirs."""
        if list(perm) == list(range(len(perm))):
            return operand
        return self.emit(op.Transpose(tuple(map(int, perm))), operand)

    def slice(self, operand: Private, bounds: Sequence[tuple[int, int, int]]) -> Private:
        """The elements from start to end by a step of each axis; the operand itself if that is all
        of them."""
        if list(bounds) == [(0, size, 1) for size in operand.shape]:
            return operand
        starts, ends, steps = zip(*bounds, strict=True)
        return self.emit(op.Slice(starts, ends, steps), operand)

    def slice_axis(
        self, operand: Private, axis: int, start: int, end: int, step: int = 1
    ) -> Private:
        """The elements from `start` to `end` of one axis; the operand itself if these are all."""
        bounds = [(0, size, 1) for size in operand.shape]
        bounds[axis] = (start, end, step)
        return self.slice(operand, bounds)

    def concat(self, axis: int, operands: Sequence[Private]) -> Private:
        """Operands next to one another along an axis; a single one as it is."""
        return operands[0] if len(operands) == 1 else self.emit(op.Concat(axis), *operands)

    def axis(self, axis: int, rank: int) -> int:
        """An axis counted from the front."""
        if not -rank <= axis < max(rank, 1):
            self.refuse(f"axis {axis} of {rank} axes", "Check the model")
        return axis % max(rank, 1)

    def refuse(self, why: str, instead: str) -> NoReturn:
        """Says that this node is not supported."""
        raise Unsupported(why, instead)
