"""Products and sums with private constants, element by element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from privet.compiler.graph.operations.interval import BEYOND, Interval
from privet.compiler.graph.operations.linear import add_bias
from privet.compiler.graph.operations.operation import (
    LINEAR_ERROR,
    Array,
    Attributes,
    Context,
    Operation,
    Shape,
    Tensors,
    broadcast,
    same,
    tensor,
)


@dataclass(frozen=True, eq=False)
class Scale(Operation):
    """Elementwise product with a private constant of the input's full shape.

    `uniform` says that the model states one number for all elements, and `by_column` that it states
    one for each index of the last axis. What passes decide may depend on that form of a constant,
    never on its values: decisions are public.
    """

    weight: Array
    uniform: bool = False
    by_column: bool = False

    name: ClassVar[str] = "scale"
    reads_ring: ClassVar[bool] = True

    def result_shape(self, inputs: Sequence[Shape]) -> Shape:
        return same(inputs[0], self.weight.shape)

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        return np.asarray(operands[0] * self.weight.astype(operands[0].dtype))

    def fixed(self, operands: Sequence[Array], context: Context) -> Array:
        (x,) = operands
        if int(np.abs(x).max()) * int(np.abs(self.weight).max()) >= 1 << 63:
            raise OverflowError("a product beyond 63 bits")
        return context.arithmetic.linear(x * self.weight)

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        (x,) = operands
        if x.largest * int(np.abs(self.weight).max()) >= BEYOND:
            return None
        return Interval.between(x.low * self.weight, x.high * self.weight).wider(LINEAR_ERROR)

    def form(self, prefix: str) -> tuple[Attributes, Tensors]:
        name = f"{prefix}.weight"
        return {"weight": name, "weight_shape": list(self.weight.shape)}, {name: self.weight}

    @classmethod
    def read(cls, attributes: Attributes, shape: Shape, tensors: Mapping[str, Array]) -> Self:
        return cls(tensor(tensors, attributes.pop("weight"), attributes.pop("weight_shape")))


@dataclass(frozen=True, eq=False)
class AddConstant(Operation):
    """Sum with a private constant that broadcasts to the input's shape.

    `defined` says that an operator's definition has the constant, as that of `Not` has a one, and
    not the model: then passes may look at it.
    """

    bias: Array
    defined: bool = False

    name: ClassVar[str] = "add_constant"

    def result_shape(self, inputs: Sequence[Shape]) -> Shape:
        return broadcast(self.bias.shape, inputs[0])

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        return np.asarray(operands[0] + self.bias.astype(operands[0].dtype))

    def fixed(self, operands: Sequence[Array], context: Context) -> Array:
        return np.asarray(operands[0] + self.bias)

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        return Interval(operands[0].low + self.bias, operands[0].high + self.bias)

    def form(self, prefix: str) -> tuple[Attributes, Tensors]:
        name = f"{prefix}.bias"
        return {"bias": name, "bias_shape": list(self.bias.shape)}, {name: self.bias}

    @classmethod
    def read(cls, attributes: Attributes, shape: Shape, tensors: Mapping[str, Array]) -> Self:
        return cls(tensor(tensors, attributes.pop("bias"), attributes.pop("bias_shape")))


@dataclass(frozen=True, eq=False)
class ChannelAffine(Operation):
    """`x * factor + offset`, one factor and offset per index of axis 1 (batch normalisation).

    `uniform` says that the model states one number for all channels, as in `Scale`. Exists only
    until the pass `fold_batchnorm` has run.
    """

    factor: Array
    offset: Array | None
    uniform: bool = False

    def result_shape(self, inputs: Sequence[Shape]) -> Shape:
        (x,) = inputs
        vectors = (self.factor,) if self.offset is None else (self.factor, self.offset)
        if len(x) < 2 or any(vector.shape != (x[1],) for vector in vectors):
            raise ValueError(f"{self.factor.shape[0]} channels do not fit {list(x)}")
        return x

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        (x,) = operands
        channel_shape = (-1, *([1] * (x.ndim - 2)))
        scaled = x * self.factor.reshape(channel_shape).astype(x.dtype)
        return add_bias(scaled, None if self.offset is None else self.offset.reshape(channel_shape))
