"""The operations' arithmetic in numpy, on whatever type the arrays have.

The float executor runs them on reals; the fixed-point executor runs them on integers held exactly
in float64 or int64. Images are `[N, C, H, W]`; memory stays bounded by working in slabs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.lib.stride_tricks import as_strided

from privet.compiler.graph.operations import Array, AvgPool2d, Conv2d, MaxPool2d, Padding, Pair

SLAB_BYTES = 64 << 20
"""Memory that one slab of unrolled windows or converted weights may take."""


def conv2d(x: Array, weight: Array, conv: Conv2d, size: Pair) -> Array:
    """The convolution without its bias; `weight` has the type of `x`."""
    groups = conv.groups
    out_channels, per_group, kh, kw = weight.shape
    kernels = weight.reshape(groups, out_channels // groups, per_group * kh * kw)
    out = np.empty((x.shape[0], out_channels, *size), dtype=x.dtype)
    padded = _pad(x, conv.padding)
    rows_per_slab = max(1, SLAB_BYTES // (x.shape[1] * kh * kw * size[1] * x.itemsize))
    for n in range(x.shape[0]):
        windows = _windows(padded[n], (kh, kw), conv.stride, conv.dilation, size)
        for top in range(0, size[0], rows_per_slab):
            slab = windows[:, top : top + rows_per_slab]
            rows = slab.shape[1]
            # [C, rows, OW, kh, kw] -> [groups, C/groups * kh * kw, rows * OW]
            columns = slab.transpose(0, 3, 4, 1, 2).reshape(groups, -1, rows * size[1])
            product = np.matmul(kernels, columns)
            out[n, :, top : top + rows] = product.reshape(out_channels, rows, size[1])
    return out


def dense(x: Array, weight: Array) -> Array:
    """`x @ weight`; the weights are brought to the type of `x` slab by slab."""
    out = np.zeros((x.shape[0], weight.shape[1]), dtype=x.dtype)
    step = max(1, SLAB_BYTES // (weight.shape[1] * x.itemsize))
    for start in range(0, weight.shape[0], step):
        slab = weight[start : start + step].astype(x.dtype, copy=False)
        out += x[:, start : start + step] @ slab
    return out


def max_pool2d(x: Array, pool: MaxPool2d) -> Array:
    """The maximum over the elements of each window that lie on the image."""
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    out = np.full((*x.shape[:2], *pool.size), lowest, dtype=x.dtype)
    for image, target in _overlaps(x, out, pool):
        np.maximum(target, image, out=target)
    return out


def sum_pool2d(x: Array, pool: AvgPool2d) -> Array:
    """The sum over the elements of each window that lie on the image."""
    out = np.zeros((*x.shape[:2], *pool.size), dtype=x.dtype)
    for image, target in _overlaps(x, out, pool):
        target += image
    return out


def _overlaps(x: Array, out: Array, pool: MaxPool2d | AvgPool2d) -> Iterator[tuple[Array, Array]]:
    """For each place in the window, the image's elements under it and the outputs they go to."""
    spans = [
        [_overlap(pool, axis, place, x.shape[axis + 2]) for place in range(pool.kernel[axis])]
        for axis in range(2)
    ]
    for rows in spans[0]:
        for columns in spans[1]:
            if rows and columns:
                yield (
                    x[:, :, rows[0], columns[0]],
                    out[:, :, rows[1], columns[1]],
                )


def _overlap(
    pool: MaxPool2d | AvgPool2d, axis: int, place: int, extent: int
) -> tuple[slice, slice] | None:
    """Where `place` of the window meets the image: slices of the image and of the output."""
    stride = pool.stride[axis]
    offset = place * pool.dilation[axis] - pool.padding[axis]
    first = max(0, -(offset // stride))
    last = min(pool.size[axis], (extent - 1 - offset) // stride + 1)
    if first >= last:
        return None
    start = first * stride + offset
    return slice(start, start + (last - first - 1) * stride + 1, stride), slice(first, last)


def _pad(x: Array, padding: Padding) -> Array:
    top, left, bottom, right = padding
    if not any(padding):
        return x
    return np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))


def _windows(image: Array, kernel: Pair, stride: Pair, dilation: Pair, size: Pair) -> Array:
    """A view `[C, OH, OW, kh, kw]` of the windows over `[C, H, W]`, without a copy."""
    c, h, w = image.strides
    strides = (c, h * stride[0], w * stride[1], h * dilation[0], w * dilation[1])
    return as_strided(image, (image.shape[0], *size, *kernel), strides, writeable=False)
