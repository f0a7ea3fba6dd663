"""Maxima and sums over windows of images; windows reach beyond the image, and count only what
lies on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from privet.compiler.graph.operations.interval import BEYOND, Interval
from privet.compiler.graph.operations.linear import check_kernel
from privet.compiler.graph.operations.operation import (
    Alike,
    Array,
    Attributes,
    Context,
    Operation,
    Padding,
    Pair,
    Shape,
    Tensors,
    image,
)


@dataclass(frozen=True)
class Pool(Operation):
    """Windows over an image; `size` is `(OH, OW)`."""

    kernel: Pair
    stride: Pair
    padding: Padding
    dilation: Pair
    size: Pair

    def result_shape(self, inputs: Sequence[Shape]) -> Shape:
        n, c, _, _ = image(inputs[0])
        check_kernel(self.kernel)
        return (n, c, *self.size)

    def form(self, prefix: str) -> tuple[Attributes, Tensors]:
        names = ("kernel", "stride", "padding", "dilation")
        return {name: list(getattr(self, name)) for name in names}, {}

    @classmethod
    def read(cls, attributes: Attributes, shape: Shape, tensors: Mapping[str, Array]) -> Self:
        _, _, height, width = shape
        fields = dict(attributes)
        attributes.clear()
        return cls(**fields, size=(height, width))

    def window_overlaps(self, x: Array, out: Array) -> Iterator[tuple[Array, Array]]:
        """For each place in the window, the image's elements under it and the outputs they go
        to."""
        overlaps = [
            [
                self._overlap(axis, window_index, x.shape[axis + 2])
                for window_index in range(self.kernel[axis])
            ]
            for axis in range(2)
        ]
        for rows in overlaps[0]:
            for columns in overlaps[1]:
                if rows and columns:
                    yield (
                        x[:, :, rows[0], columns[0]],
                        out[:, :, rows[1], columns[1]],
                    )

    def _overlap(self, axis: int, window_index: int, length: int) -> tuple[slice, slice] | None:
        """Where `place` of the window meets the image: slices of the image and of the output."""
        stride = self.stride[axis]
        offset = window_index * self.dilation[axis] - self.padding[axis]
        first = max(0, -(offset // stride))
        last = min(self.size[axis], (length - 1 - offset) // stride + 1)
        if first >= last:
            return None
        start = first * stride + offset
        return slice(start, start + (last - first - 1) * stride + 1, stride), slice(first, last)


@dataclass(frozen=True)
class MaxPool2d(Alike, Pool):
    """Maximum over the elements of each window that lie on the image."""

    name: ClassVar[str] = "max_pool2d"
    compares: ClassVar[bool] = True

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        (x,) = operands
        lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        out = np.full((*x.shape[:2], *self.size), lowest, dtype=x.dtype)
        for part, target in self.window_overlaps(x, out):
            np.maximum(target, part, out=target)
        return out

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        return operands[0].per_channel()


@dataclass(frozen=True)
class AvgPool2d(Pool):
    """Sum over the elements of each window that lie on the image, times a public factor.

    `factors` has one entry, or one per output position in row-major order. They are reals until
    `quantize` has run, integers after.
    """

    factors: tuple[float, ...]

    name: ClassVar[str] = "avg_pool2d"
    reads_ring: ClassVar[bool] = True

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        (x,) = operands
        return np.asarray(self.window_sums(x) * self._factors(x.dtype))

    def fixed(self, operands: Sequence[Array], context: Context) -> Array:
        (x,) = operands
        if int(np.abs(x).max()) * self._largest >= 1 << 63:
            raise OverflowError("a sum beyond 63 bits")
        return np.asarray(self.window_sums(x) * self._factors(np.dtype(np.int64)))

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        """Each output is its factor times a sum of so many elements as its window has on the
        image."""
        (x,) = operands
        counts = self.window_sums(np.ones((1, 1, *context.input_shapes[0][2:]), dtype=np.int64))
        scaled_counts = counts * self._factors(np.dtype(np.int64))
        if x.largest * int(np.abs(scaled_counts).max()) >= BEYOND:
            return None
        channel_bounds = x.per_channel()
        extremes = [int(scaled_counts.min()), int(scaled_counts.max())]
        return Interval.between(
            *(
                end * extreme
                for extreme in extremes
                for end in (channel_bounds.low, channel_bounds.high)
            )
        )

    def form(self, prefix: str) -> tuple[Attributes, Tensors]:
        attributes, tensors = super().form(prefix)
        return {**attributes, "factors": list(self.factors)}, tensors

    def window_sums(self, x: Array) -> Array:
        """The sum over the elements of each window that lie on the image."""
        out = np.zeros((*x.shape[:2], *self.size), dtype=x.dtype)
        for part, target in self.window_overlaps(x, out):
            target += part
        return out

    @property
    def _largest(self) -> int:
        """The largest factor times the elements of a window."""
        return int(max(map(abs, self.factors))) * self.kernel[0] * self.kernel[1]

    def _factors(self, dtype: np.dtype[np.generic]) -> Array:
        """One factor broadcasts by itself; several lie on the output positions."""
        shape = self.size if len(self.factors) > 1 else (1, 1)
        return np.asarray(self.factors, dtype=dtype).reshape(shape)
