"""Pools over windows and over whole images: largest elements, averages and norms."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.function import chain
from privet.compiler.graph.operations import Pair
from privet.compiler.graph.operations.linear import MAX_KERNEL
from privet.compiler.graph.operators.activation import magnitude
from privet.compiler.graph.operators.reduction import largest_of_rows, sum_of_rows
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site
from privet.compiler.graph.windows import (
    Span,
    Windows,
    as_image,
    from_image,
    image_windows,
    spans,
    spatial_of,
    windows,
)


@operator("MaxPool", restrictions="1-D to 3-D; without the output Indices")
def max_pool(site: Site) -> Operand:
    """Dilation, ceil_mode, explicit pads and every auto_pad."""
    if site.uses_output(1):
        site.refuse("its output Indices is used", "Use only its first output")
    return _pool_windows(site, site.private(0), _max_pool)


@operator("AveragePool", restrictions="1-D to 3-D")
def average_pool(site: Site) -> Operand:
    """count_include_pad, ceil_mode, dilation, explicit pads and every auto_pad."""
    return _pool_windows(site, site.private(0), _average_pool)


Pool = Callable[[Site, Windows, Pair], op.MaxPool2d | op.AvgPool2d]


def _pool_windows(site: Site, x: Private, pool: Pool) -> Private:
    """Over an image at once; over a volume first within its slices, then across them."""
    spatial, kernel = spatial_of(site, x), site.ints("kernel_shape") or []

    def pool_image(geometry: Windows, size: Pair, image: Private) -> Private:
        if any(0 in _elements_inside(geometry, axis, 0, size[axis]) for axis in range(2)):
            site.refuse("one of its windows lies wholly on padding", "Use less padding")
        return site.emit(pool(site, geometry, size), image)

    if len(spatial) < 3:
        result = pool_image(windows(site, spatial, kernel), as_size(spatial), as_image(site, x))
        return from_image(site, result, len(spatial))
    if len(spatial) > 3:
        site.refuse(f"it works on {len(spatial)} spatial axes", "Use one to three spatial axes")
    depth, *image = spans(site, spatial, kernel)
    slice_windows = image_windows(image)
    n, c, slices, height, width = x.shape
    flat = site.reshape(x, (n, c * slices, height, width))
    pooled_slices = pool_image(slice_windows, (height, width), flat)
    positions = slice_windows.size[0] * slice_windows.size[1]
    depth_windows = image_windows((depth, Span(1, 1, 1, 0, 0, positions)))
    stacked = site.reshape(pooled_slices, (n, c, slices, positions))
    pooled_volume = pool_image(depth_windows, (slices, positions), stacked)
    return site.reshape(pooled_volume, (n, c, depth.count, *slice_windows.size))


def _max_pool(_site: Site, geometry: Windows, _size: Pair) -> op.MaxPool2d:
    return op.MaxPool2d(**vars(geometry))


def _average_pool(site: Site, geometry: Windows, size: Pair) -> op.AvgPool2d:
    row_divisors, column_divisors = (_divisors(site, geometry, size, axis) for axis in range(2))
    factors = (1.0 / np.outer(row_divisors, column_divisors).reshape(-1)).tolist()
    if len(set(factors)) == 1:
        factors = factors[:1]
    return op.AvgPool2d(**vars(geometry), factors=tuple(factors))


@operator("LpPool", restrictions="1-D to 3-D; p 1 or 2; not with `--security malicious`")
def lp_pool(site: Site) -> Operand:
    """The sum of magnitudes, or the root of the sum of squares."""
    return _lp_norm(site, site.private(0), lambda y: _pool_windows(site, y, _sum_pool))


@operator("GlobalLpPool", restrictions="p 1 or 2; not with `--security malicious`")
def global_lp_pool(site: Site) -> Operand:
    """The same over all spatial axes."""
    x = site.private(0)
    rows = (math.prod(x.shape[:2]), math.prod(spatial_of(site, x)))
    pooled_shape = (*x.shape[:2], *[1] * (len(x.shape) - 2))
    return _lp_norm(
        site, x, lambda y: site.reshape(sum_of_rows(site, site.reshape(y, rows)), pooled_shape)
    )


def _lp_norm(site: Site, x: Private, sum_windows: Callable[[Private], Private]) -> Private:
    p = site.attribute("p", 2)
    if p == 1:
        return sum_windows(magnitude(site, x))
    if p != 2:
        site.refuse(f"p is {p}", "Use p 1 or 2")
    return site.emit(op.Elementwise(chain("sqrt")), sum_windows(site.emit(op.Mul(), x, x)))


def _sum_pool(_site: Site, geometry: Windows, _size: Pair) -> op.AvgPool2d:
    return op.AvgPool2d(**vars(geometry), factors=(1.0,))


@operator("GlobalAveragePool")
@operator("GlobalMaxPool")
def global_pool(site: Site) -> Operand:
    """The mean, or the maximum, over all spatial axes, however many."""
    x, average = site.private(0), site.operator == "GlobalAveragePool"
    spatial = spatial_of(site, x)
    pooled_shape = (*x.shape[:2], *([1] * len(spatial)))
    if len(spatial) > 2 or max(spatial) > MAX_KERNEL:
        rows = site.reshape(x, (math.prod(x.shape[:2]), math.prod(spatial)))
        reduced = sum_of_rows(site, rows, mean=True) if average else largest_of_rows(site, rows)
        return site.reshape(reduced, pooled_shape)
    size = as_size(spatial)
    windows_of_image = Windows(size, (1, 1), op.NO_PADDING, (1, 1), (1, 1))
    pool = op.AvgPool2d(**vars(windows_of_image), factors=(1.0 / math.prod(size),))
    image = site.reshape(x, (*x.shape[:2], *size))
    return site.reshape(
        site.emit(pool if average else op.MaxPool2d(**vars(windows_of_image)), image), pooled_shape
    )


def as_size(spatial: tuple[int, ...]) -> tuple[int, int]:
    """Height and width; a 1-D image has height 1."""
    return (spatial[0] if len(spatial) > 1 else 1, spatial[-1])


def _divisors(site: Site, geometry: Windows, size: tuple[int, int], axis: int) -> list[int]:
    """By how many elements each window along `axis` divides."""
    low, high = 0, size[axis]
    if site.attribute("count_include_pad", 0):
        low, high = -geometry.padding[axis], size[axis] + geometry.padding[axis + 2]
    return _elements_inside(geometry, axis, low, high)


def _elements_inside(geometry: Windows, axis: int, low: int, high: int) -> list[int]:
    """How many elements of each window along `axis` have coordinates in `low..high`."""
    starts = np.arange(geometry.size[axis]) * geometry.stride[axis] - geometry.padding[axis]
    steps = np.arange(geometry.kernel[axis]) * geometry.dilation[axis]
    coordinates = starts[:, None] + steps[None, :]
    return [int(count) for count in ((coordinates >= low) & (coordinates < high)).sum(axis=1)]
