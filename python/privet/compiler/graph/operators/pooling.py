"""MaxPool, AveragePool, GlobalMaxPool and GlobalAveragePool."""

from __future__ import annotations

import math

import numpy as np

from privet.compiler.graph.operations import NO_PADDING, AvgPool2d, MaxPool2d
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site
from privet.compiler.graph.windows import Windows, as_image, from_image, spatial_of, windows


@operator("MaxPool", restrictions="1-D and 2-D; without the output Indices")
def max_pool(site: Site) -> Operand:
    """Dilation, ceil_mode, explicit pads and every auto_pad."""
    x = site.private(0)
    if site.uses(1):
        site.refuse("its output Indices is used", "Use only its first output")
    spatial = spatial_of(site, x)
    geometry = windows(site, spatial, site.ints("kernel_shape") or [])
    _covered(site, geometry, as_size(spatial))
    pooled = site.emit(MaxPool2d(**vars(geometry)), as_image(site, x))
    return from_image(site, pooled, len(spatial))


@operator("AveragePool", restrictions="1-D and 2-D")
def average_pool(site: Site) -> Operand:
    """count_include_pad, ceil_mode, dilation, explicit pads and every auto_pad."""
    x = site.private(0)
    spatial = spatial_of(site, x)
    geometry = windows(site, spatial, site.ints("kernel_shape") or [])
    size = as_size(spatial)
    _covered(site, geometry, size)
    down, across = (_counts(site, geometry, size, axis) for axis in range(2))
    counts = np.outer(down, across).reshape(-1)
    factors = (1.0 / counts).tolist()
    if len(set(factors)) == 1:
        factors = factors[:1]
    pooled = site.emit(AvgPool2d(**vars(geometry), factors=tuple(factors)), as_image(site, x))
    return from_image(site, pooled, len(spatial))


@operator("GlobalAveragePool")
def global_average_pool(site: Site) -> Operand:
    """The mean over all spatial axes, however many."""
    x = site.private(0)
    return _global(site, x, average=True)


@operator("GlobalMaxPool")
def global_max_pool(site: Site) -> Operand:
    """The maximum over all spatial axes, however many."""
    return _global(site, site.private(0), average=False)


def _global(site: Site, x: Private, *, average: bool) -> Private:
    spatial = spatial_of(site, x)
    size = as_size(spatial) if len(spatial) <= 2 else (1, math.prod(spatial))
    image = site.reshape(x, (*x.shape[:2], *size))
    whole = Windows(size, (1, 1), NO_PADDING, (1, 1), (1, 1))
    pooled = site.emit(
        AvgPool2d(**vars(whole), factors=(1.0 / math.prod(size),))
        if average
        else MaxPool2d(**vars(whole)),
        image,
    )
    return site.reshape(pooled, (*x.shape[:2], *([1] * len(spatial))))


def as_size(spatial: tuple[int, ...]) -> tuple[int, int]:
    """Height and width; a 1-D image has height 1."""
    return (spatial[0] if len(spatial) > 1 else 1, spatial[-1])


def _counts(site: Site, geometry: Windows, size: tuple[int, int], axis: int) -> list[int]:
    """By how many elements each window along `axis` divides."""
    low, high = 0, size[axis]
    if site.attribute("count_include_pad", 0):
        low, high = -geometry.padding[axis], size[axis] + geometry.padding[axis + 2]
    return _inside(geometry, axis, low, high)


def _covered(site: Site, geometry: Windows, size: tuple[int, int]) -> None:
    if any(0 in _inside(geometry, axis, 0, size[axis]) for axis in range(2)):
        site.refuse("one of its windows lies wholly on padding", "Use less padding")


def _inside(geometry: Windows, axis: int, low: int, high: int) -> list[int]:
    """How many elements of each window along `axis` have coordinates in `low..high`."""
    starts = np.arange(geometry.size[axis]) * geometry.stride[axis] - geometry.padding[axis]
    steps = np.arange(geometry.kernel[axis]) * geometry.dilation[axis]
    at = starts[:, None] + steps[None, :]
    return [int(count) for count in ((at >= low) & (at < high)).sum(axis=1)]
