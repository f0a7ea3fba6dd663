"""Convolutions and products of rows with private weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.lib.stride_tricks import as_strided

from privet.compiler.graph.operations.exact import exact_linear, row_sum
from privet.compiler.graph.operations.interval import BEYOND, Interval
from privet.compiler.graph.operations.operation import (
    LINEAR_ERROR,
    NO_PADDING,
    Array,
    Attributes,
    Context,
    Operation,
    Padding,
    Pair,
    Shape,
    Tensors,
    image,
    tensor,
)

MAX_KERNEL = 1 << 10
"""Longest side of a window, as `crates/program/src/shape.rs` has it."""
SLAB_BYTES = 64 << 20
"""Memory that one slab of unrolled windows or converted weights may take."""
SLAB_ELEMENTS = 1 << 22
"""Elements of a matrix that bounds are found for at once."""


@dataclass(frozen=True, eq=False)
class Layer(Operation):
    """Products with private `weight`, and a private `bias` for each output."""

    weight: Array
    bias: Array | None

    bias_axes: ClassVar[slice]
    """Where in the shape of `weight` that of `bias` is."""
    reads_ring: ClassVar[bool] = True

    def form(self, prefix: str) -> tuple[Attributes, Tensors]:
        tensors = {f"{prefix}.weight": self.weight}
        if self.bias is not None:
            tensors[f"{prefix}.bias"] = self.bias
        attributes, _ = super().form(prefix)
        attributes |= {"weight": f"{prefix}.weight", "weight_shape": list(self.weight.shape)}
        return attributes | {"bias": None if self.bias is None else f"{prefix}.bias"}, tensors

    @classmethod
    def read(cls, attributes: Attributes, shape: Shape, tensors: Mapping[str, Array]) -> Self:
        weight = tensor(tensors, attributes.pop("weight"), attributes.pop("weight_shape"))
        name: Any = attributes.pop("bias")
        bias = None if name is None else tensor(tensors, name, weight.shape[cls.bias_axes])
        field_names = [field.name for field in fields(cls) if field.name not in ("weight", "bias")]
        return cls(
            weight, bias, **{field_name: attributes.pop(field_name) for field_name in field_names}
        )


@dataclass(frozen=True, eq=False)
class Conv2d(Layer):
    """`[N, C, H, W] -> [N, O, H', W']`; `weight` is `[O, C/groups, kh, kw]`, `bias` `[O]`."""

    stride: Pair = (1, 1)
    padding: Padding = NO_PADDING
    dilation: Pair = (1, 1)
    groups: int = 1

    name: ClassVar[str] = "conv2d"
    bias_axes: ClassVar[slice] = slice(0, 1)

    def result_shape(self, inputs: Sequence[Shape]) -> Shape:
        n, c, *size = image(inputs[0])
        out_channels, per_group, *kernel = self.weight.shape
        if per_group * self.groups != c or out_channels % self.groups:
            raise ValueError(
                f"weights {list(self.weight.shape)} in {self.groups} groups do not fit {c} channels"
            )
        _check_bias(self.bias, out_channels)
        positions = []
        check_kernel(kernel)
        for axis in range(2):
            window_size = (kernel[axis] - 1) * self.dilation[axis] + 1
            last_start = size[axis] + self.padding[axis] + self.padding[axis + 2] - window_size
            if last_start < 0:
                raise ValueError("the kernel is larger than the padded image")
            positions.append(last_start // self.stride[axis] + 1)
        return (n, out_channels, *positions)

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        (x,) = operands
        out = self.convolve(x, self.weight.astype(x.dtype, copy=False), (shape[2], shape[3]))
        return add_bias(out, None if self.bias is None else self.bias[:, None, None])

    def fixed(self, operands: Sequence[Array], context: Context) -> Array:
        reals, size = self.weight.astype(np.float64), (context.shape[2], context.shape[3])
        out = exact_linear(
            operands[0], row_sum(self.weight, 0), lambda part: self.convolve(part, reals, size)
        )
        out = context.arithmetic.linear(out)
        return out if self.bias is None else out + self.bias[:, None, None]

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        (x,) = operands
        if x.largest * row_sum(self.weight, 0) >= BEYOND:
            return None
        channels, groups = context.input_shapes[0][1], self.groups
        channel_bounds = x.per_channel()
        low, high = (
            np.broadcast_to(e, (1, channels, 1, 1))
            for e in (channel_bounds.low, channel_bounds.high)
        )
        if any(self.padding):
            low, high = np.minimum(low, 0), np.maximum(high, 0)
        low, high = (end.reshape(groups, channels // groups, 1) for end in (low, high))
        taps = self.weight.reshape(groups, -1, *self.weight.shape[1:])
        positive = np.maximum(taps, 0).sum(axis=(3, 4))
        negative = np.minimum(taps, 0).sum(axis=(3, 4))
        bias = 0 if self.bias is None else self.bias.reshape(1, -1, 1, 1)
        lower, upper = (positive @ low + negative @ high), (positive @ high + negative @ low)
        bounds = Interval(lower.reshape(1, -1, 1, 1) + bias, upper.reshape(1, -1, 1, 1) + bias)
        return bounds.wider(LINEAR_ERROR)

    def convolve(self, x: Array, weight: Array, size: Pair) -> Array:
        """The convolution without its bias; `weight` has the type of `x`."""
        groups = self.groups
        out_channels, per_group, kh, kw = weight.shape
        kernels = weight.reshape(groups, out_channels // groups, per_group * kh * kw)
        out = np.empty((x.shape[0], out_channels, *size), dtype=x.dtype)
        padded = _pad(x, self.padding)
        rows_per_slab = max(1, SLAB_BYTES // (x.shape[1] * kh * kw * size[1] * x.itemsize))
        for n in range(x.shape[0]):
            windows = _windows(padded[n], (kh, kw), self.stride, self.dilation, size)
            for top in range(0, size[0], rows_per_slab):
                slab = windows[:, top : top + rows_per_slab]
                rows = slab.shape[1]
                # [C, rows, OW, kh, kw] -> [groups, C/groups * kh * kw, rows * OW]
                columns = slab.transpose(0, 3, 4, 1, 2).reshape(groups, -1, rows * size[1])
                product = np.matmul(kernels, columns)
                out[n, :, top : top + rows] = product.reshape(out_channels, rows, size[1])
        return out


@dataclass(frozen=True, eq=False)
class Dense(Layer):
    """`[M, K] -> [M, N]`; `weight` is `[K, N]`, `bias` `[N]`."""

    name: ClassVar[str] = "dense"
    bias_axes: ClassVar[slice] = slice(1, None)

    def result_shape(self, inputs: Sequence[Shape]) -> Shape:
        (x,) = inputs
        if len(x) != 2 or x[1] != self.weight.shape[0]:
            raise ValueError(f"weights {list(self.weight.shape)} do not fit {list(x)}")
        _check_bias(self.bias, self.weight.shape[1])
        return (x[0], self.weight.shape[1])

    def real(self, operands: Sequence[Array], shape: Shape) -> Array:
        return add_bias(self.multiply(operands[0]), self.bias)

    def fixed(self, operands: Sequence[Array], context: Context) -> Array:
        out = exact_linear(operands[0], row_sum(self.weight, 1), self.multiply)
        out = context.arithmetic.linear(out)
        return out if self.bias is None else out + self.bias

    def interval(self, operands: Sequence[Interval], context: Context) -> Interval | None:
        (x,) = operands
        inner, columns = self.weight.shape
        if x.largest * row_sum(self.weight, 1) >= BEYOND:
            return None
        low = np.broadcast_to(x.low.min(axis=0, keepdims=True), (1, inner))
        high = np.broadcast_to(x.high.max(axis=0, keepdims=True), (1, inner))
        lower = np.zeros((1, columns), dtype=np.int64)
        upper = np.zeros((1, columns), dtype=np.int64)
        step = max(1, SLAB_ELEMENTS // columns)
        for start in range(0, inner, step):
            rows = slice(start, start + step)
            positive = np.maximum(self.weight[rows], 0)
            negative = self.weight[rows] - positive
            lower += low[:, rows] @ positive + high[:, rows] @ negative
            upper += high[:, rows] @ positive + low[:, rows] @ negative
        bias = 0 if self.bias is None else self.bias
        return Interval(lower + bias, upper + bias).wider(LINEAR_ERROR)

    def multiply(self, x: Array) -> Array:
        """`x @ weight`; the weights are brought to the type of `x` slab by slab."""
        weight = self.weight
        out = np.zeros((x.shape[0], weight.shape[1]), dtype=x.dtype)
        step = max(1, SLAB_BYTES // (weight.shape[1] * x.itemsize))
        for start in range(0, weight.shape[0], step):
            slab = weight[start : start + step].astype(x.dtype, copy=False)
            out += x[:, start : start + step] @ slab
        return out


def _check_bias(bias: Array | None, count: int) -> None:
    """Raises `ValueError` unless there is a number for each output, or none at all."""
    if bias is not None and bias.shape != (count,):
        raise ValueError(f"a bias {list(bias.shape)} for {count} outputs")


def check_kernel(kernel: Sequence[int]) -> None:
    """Raises `ValueError` if a side of a window is too long."""
    if max(kernel) > MAX_KERNEL:
        raise ValueError(f"a window of {list(kernel)}, longer than {MAX_KERNEL}")


def add_bias(out: Array, bias: Array | None) -> Array:
    """Adds a bias in place, if there is one."""
    if bias is None:
        return out
    out += bias.astype(out.dtype, copy=False)
    return out


def _pad(x: Array, padding: Padding) -> Array:
    top, left, bottom, right = padding
    if not any(padding):
        return x
    return np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))


def _windows(x: Array, kernel: Pair, stride: Pair, dilation: Pair, size: Pair) -> Array:
    """A view `[C, OH, OW, kh, kw]` of the windows over `[C, H, W]`, without a copy."""
    c, h, w = x.strides
    strides = (c, h * stride[0], w * stride[1], h * dilation[0], w * dilation[1])
    return as_strided(x, (x.shape[0], *size, *kernel), strides, writeable=False)
