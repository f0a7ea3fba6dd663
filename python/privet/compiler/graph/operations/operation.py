"""What every operation of a typed graph says of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from privet.compiler.graph.operations.interval import Interval

Array = npt.NDArray[Any]
Pair = tuple[int, int]
Padding = tuple[int, int, int, int]
Shape = tuple[int, ...]

NO_PADDING: Padding = (0, 0, 0, 0)

Tensors = dict[str, Array]
Attributes = dict[str, Any]

LINEAR_ERROR, TRUNCATION_ERROR = 1, 1
"""Units by which a suite's linear layer or truncation may be off."""


class Arithmetic:
    """What the format defines: products as they are, and the floor of a division."""

    def linear(self, product: Array) -> Array:
        """What becomes of the exact result of a linear operation."""
        return product

    def truncate(self, x: Array, bits: int) -> Array:
        """`x` without its low bits."""
        return x >> bits

    def relu(self, x: Array) -> Array:
        """`max(x, 0)`."""
        return np.maximum(x, 0)


@dataclass(frozen=True)
class Context:
    """Where an operation stands in an integer graph: shapes and scales of what it reads and makes.

    `repeats` says that all operands are one value.
    """

    input_shapes: tuple[Shape, ...]
    shape: Shape
    input_scale: int | None
    scale: int | None
    ring_bits: int
    repeats: bool = False
    arithmetic: Arithmetic = field(default_factory=Arithmetic)

    @property
    def scales(self) -> tuple[int, int]:
        """Fractional bits of the first operand and of the result, which integers have."""
        assert self.input_scale is not None
        assert self.scale is not None
        return self.input_scale, self.scale


class Operation:
    """An operation: what it makes of shapes, of reals and of integers, and its form in a program.

    The same dataclasses describe a real graph (weights and constants are floats) and, after the
    pass `quantize`, an integer one. Images are `[N, C, H, W]`, padding is `(top, left, bottom,
    right)`.
    """

    name: ClassVar[str] = ""
    """What the program file calls it; empty if passes replace it before."""
    arity: ClassVar[int | None] = 1
    """How many values it reads; None for any number."""
    reads_ring: ClassVar[bool] = False
    """Whether its operands are in the program's ring, wherever suites `gmw` and `fss` narrow it:
    because they must, or in other suites."""
    makes_ring: ClassVar[bool] = False
    """Whether its result is in the program's ring, whatever ring its operand is in."""

    compares: ClassVar[bool] = False
    """Whether it compares numbers, which takes fewer bits of those that are truncated before."""
    decides: ClassVar[bool] = False
    """Whether its result tells how a comparison came out, or was chosen by it."""

    def result_shape(self, inputs: Sequence[Shape]) -> Shape:
        """The shape of the result; raises `ValueError` where inputs do not fit."""
        return inputs[0]

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        """The result on reals, of `shape`, in the operands' type."""
        raise NotImplementedError(f"{self} has no reals")

    def fixed(self, operands: Sequence[Array], context: Context) -> Array:
        """The result on int64, as the file format defines it.

        Raises `OverflowError` where 63 bits might not hold it.
        """
        raise NotImplementedError(f"{self} is in no integer graph")

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        """What contains the result of a private run, errors of suites included; None if nothing
        that 64 bits hold."""
        raise NotImplementedError(f"{self} is in no integer graph")

    def interval_of_any(self, context: Context) -> Interval | None:
        """The same if nothing is known of an operand."""
        return None

    def form(self, prefix: str) -> tuple[Attributes, Tensors]:
        """Attributes in the program file, and private tensors, whose names start with `prefix`."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in vars(self).items()
        }, {}

    @classmethod
    def read(cls, attributes: Attributes, shape: Shape, tensors: Mapping[str, Array]) -> Self:
        """The operation that `form` wrote, whose result has `shape`; takes what it reads out of
        `attributes`.

        Raises `KeyError`, `TypeError` or `ValueError` on attributes that do not belong.
        """
        fields = dict(attributes)
        attributes.clear()
        return cls(**fields)


class Alike(Operation):
    """An operation that does the same to integers as to reals."""

    def fixed(self, operands: Sequence[Array], context: Context) -> Array:
        return self.real(operands, context.shape)


def tensor(tensors: Mapping[str, Array], name: str, shape: Shape) -> Array:
    """A private tensor, which must have this shape."""
    array = tensors[name]
    if array.shape != shape:
        raise ValueError(f"tensor {name} has shape {list(array.shape)}, not {list(shape)}")
    return array


def image(shape: Shape) -> tuple[int, int, int, int]:
    """The four axes of an image."""
    if len(shape) != 4:
        raise ValueError(f"an image has 4 axes, not {list(shape)}")
    n, c, h, w = shape
    return n, c, h, w


def broadcast(shape: Shape, target: Shape) -> Shape:
    """`target`, to which `shape` must broadcast."""
    try:
        joined = np.broadcast_shapes(shape, target)
    except ValueError:
        joined = ()
    if joined != target:
        raise ValueError(f"{list(shape)} does not broadcast to {list(target)}")
    return target


def same(a: Shape, b: Shape) -> Shape:
    """The shape, which both must have."""
    if a != b:
        raise ValueError(f"shapes {list(a)} and {list(b)} differ")
    return a


def real(array: Array) -> Array:
    """A constant of the model as floats: float32 stays, every other type becomes float64."""
    return array if array.dtype == np.float32 else array.astype(np.float64)
