"""Conv and ConvTranspose."""

from __future__ import annotations

import math

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Array, real
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
)


@operator("Conv", restrictions="1-D to 3-D; weights and bias constant")
def conv(site: Site) -> Operand:
    """Groups, dilation, explicit pads and every auto_pad."""
    x = site.private(0)
    weight = real(site.constant(1, "weights"))
    bias = real(site.constant(2, "bias")) if site.has(2) else None
    spatial = spatial_of(site, x)
    if weight.ndim != len(x.shape):
        site.refuse(f"weights {list(weight.shape)} on input {list(x.shape)}", "Check the model")
    if len(spatial) > 3:
        site.refuse(f"it works on {len(spatial)} spatial axes", "Use one to three spatial axes")
    return _over(site, x, weight, bias, spans(site, spatial, weight.shape[2:]))


def _over(site: Site, x: Private, weight: Array, bias: Array | None, axes: list[Span]) -> Private:
    """A convolution over one to three axes."""
    if len(axes) == 3:
        return _volume(site, x, weight, bias, axes)
    image = _convolved(site, as_image(site, x), weight, bias, image_windows(axes))
    return from_image(site, image, len(axes))


def _convolved(
    site: Site, image: Private, weight: Array, bias: Array | None, geometry: Windows
) -> Private:
    channels = math.prod(weight.shape[1:]) // math.prod(geometry.kernel)
    kernel = weight.reshape(weight.shape[0], channels, *geometry.kernel)
    sides = (geometry.stride, geometry.padding, geometry.dilation)
    return site.emit(op.Conv2d(kernel, bias, *sides, site.attribute("group", 1)), image)


def _volume(site: Site, x: Private, weight: Array, bias: Array | None, axes: list[Span]) -> Private:
    """A 3-D convolution: the slices under a window are channels of one image for each depth."""
    depth, *image = axes
    n, c = x.shape[:2]
    if depth.before or depth.after:
        around = [(0, 0, side, 0, 0) for side in (depth.before, depth.after)]
        x = site.emit(op.Pad(around[0], around[1], 0.0), x)
    taps = []
    for tap in range(depth.kernel):
        first = tap * depth.dilation
        end = first + (depth.count - 1) * depth.stride + 1
        ends = (n, c, end, *x.shape[3:])
        part = site.emit(op.Slice((0, 0, first, 0, 0), ends, (1, 1, depth.stride, 1, 1)), x)
        taps.append(site.reshape(part, (n, c, 1, depth.count, *x.shape[3:])))
    turned = site.emit(op.Transpose((0, 3, 1, 2, 4, 5)), site.joined(2, taps))
    images = site.reshape(turned, (n * depth.count, c * depth.kernel, *x.shape[3:]))
    convolved = _convolved(site, images, weight, bias, image_windows(image))
    split = site.reshape(convolved, (n, depth.count, *convolved.shape[1:]))
    return site.emit(op.Transpose((0, 2, 1, 3, 4)), split)


@operator("ConvTranspose", restrictions="1-D to 3-D; weights and bias constant")
def conv_transpose(site: Site) -> Operand:
    """A convolution with the kernel turned round, over the image with zeros put in between."""
    x = site.private(0)
    spatial = spatial_of(site, x)
    weight = real(site.constant(1, "weights"))
    if len(spatial) > 3 or weight.ndim != len(x.shape) or weight.shape[0] != x.shape[1]:
        why = f"weights {list(weight.shape)} on input {list(x.shape)}"
        site.refuse(why, "Use one to three spatial axes")
    rank = len(spatial)
    strides = site.ints("strides") or [1] * rank
    dilations = site.ints("dilations") or [1] * rank
    extra = site.ints("output_padding") or [0] * rank
    sides = zip(spatial, strides, weight.shape[2:], dilations, extra, strict=True)
    full = [(n - 1) * stride + (k - 1) * d + 1 + e for n, stride, k, d, e in sides]
    before, after = _cut_off(site, full, [n * s for n, s in zip(spatial, strides, strict=True)])
    groups, c = site.attribute("group", 1), x.shape[1]
    kernel = weight.reshape(groups, c // groups, *weight.shape[1:])
    kernel = np.flip(np.swapaxes(kernel, 1, 2), tuple(range(3, 3 + rank)))
    kernel = kernel.reshape(-1, c // groups, *weight.shape[2:])
    bias = real(site.constant(2, "bias")) if site.has(2) else None
    low = [(k - 1) * d - b for k, d, b in zip(weight.shape[2:], dilations, before, strict=True)]
    high = [
        (k - 1) * d - a + e
        for k, d, a, e in zip(weight.shape[2:], dilations, after, extra, strict=True)
    ]
    image = _spread(site, x, strides)
    axes = [
        Span(k, 1, d, max(b, 0), max(a, 0), n + max(b, 0) + max(a, 0) - (k - 1) * d)
        for k, d, b, a, n in zip(
            weight.shape[2:], dilations, low, high, image.shape[2:], strict=True
        )
    ]
    out = _over(site, image, kernel, bias, axes)
    kept = [(0, size, 1) for size in out.shape[:2]]
    for size, b, a in zip(out.shape[2:], low, high, strict=True):
        kept.append((max(-b, 0), size - max(-a, 0), 1))
    return site.slice(out, kept)


def _cut_off(site: Site, full: list[int], same_sizes: list[int]) -> tuple[list[int], list[int]]:
    """How much of the whole result goes at the start and at the end of each axis: what `pads` say,
    or what is beyond `output_shape` or, with `auto_pad` SAME, beyond `same`."""
    rank, mode = len(full), site.attribute("auto_pad", "NOTSET")
    output_sizes = (site.ints("output_shape") or (same_sizes if mode.startswith("SAME") else []))[
        -rank:
    ]
    if not output_sizes:
        pads = site.ints("pads") or [0] * (2 * rank)
        return pads[:rank], pads[rank:]
    beyond = [size - output_size for size, output_size in zip(full, output_sizes, strict=True)]
    if min(beyond) < 0:
        site.refuse(
            f"its output {output_sizes} is larger than {full}", "Export explicit output_padding"
        )
    small, large = [b // 2 for b in beyond], [b - b // 2 for b in beyond]
    return (small, large) if mode == "SAME_UPPER" else (large, small)


def _spread(site: Site, x: Private, strides: list[int]) -> Private:
    """The input with `stride - 1` zeros between neighbours along each axis."""
    n, c, *spatial = x.shape
    if len(spatial) == 3:
        depth, *sides = spatial
        slices = _spread(site, site.reshape(x, (n, c * depth, *sides)), strides[1:])
        sides = [*slices.shape[2:]]
        stacked = site.reshape(slices, (n, c, depth, math.prod(sides)))
        volume = _spread(site, stacked, [strides[0], 1])
        return site.reshape(volume, (n, c, volume.shape[2], *sides))
    if max(strides) == 1:
        return x
    image = as_image(site, x)
    h, w = image.shape[2:]
    down, across = ([1] * (2 - len(spatial)) + strides)[-2:]
    wide = site.emit(
        op.Pad((0,) * 6, (0, 0, 0, down - 1, 0, across - 1), 0.0),
        site.reshape(image, (n, c, h, 1, w, 1)),
    )
    grid = site.reshape(wide, (n, c, h * down, w * across))
    ends = (n, c, (h - 1) * down + 1, (w - 1) * across + 1)
    return from_image(site, site.emit(op.Slice((0,) * 4, ends, (1,) * 4), grid), len(spatial))
