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
    bias = real(site.constant(2, "bias")) if site.has_input(2) else None
    spatial = spatial_of(site, x)
    if weight.ndim != len(x.shape):
        site.refuse(f"weights {list(weight.shape)} on input {list(x.shape)}", "Check the model")
    if len(spatial) > 3:
        site.refuse(f"it works on {len(spatial)} spatial axes", "Use one to three spatial axes")
    return _convolve(site, x, weight, bias, spans(site, spatial, weight.shape[2:]))


def _convolve(
    site: Site, x: Private, weight: Array, bias: Array | None, axes: list[Span]
) -> Private:
    """A convolution over one to three axes."""
    if len(axes) == 3:
        return _convolve_volume(site, x, weight, bias, axes)
    image = _convolve_image(site, as_image(site, x), weight, bias, image_windows(axes))
    return from_image(site, image, len(axes))


def _convolve_image(
    site: Site, image: Private, weight: Array, bias: Array | None, geometry: Windows
) -> Private:
    channels = math.prod(weight.shape[1:]) // math.prod(geometry.kernel)
    kernel = weight.reshape(weight.shape[0], channels, *geometry.kernel)
    sides = (geometry.stride, geometry.padding, geometry.dilation)
    return site.emit(op.Conv2d(kernel, bias, *sides, site.attribute("group", 1)), image)


def _convolve_volume(
    site: Site, x: Private, weight: Array, bias: Array | None, axes: list[Span]
) -> Private:
    """A 3-D convolution: the slices under a window are channels of one image for each depth."""
    depth, *image = axes
    n, c = x.shape[:2]
    if depth.before or depth.after:
        pads = [(0, 0, side, 0, 0) for side in (depth.before, depth.after)]
        x = site.emit(op.Pad(pads[0], pads[1], 0.0), x)
    taps = []
    for tap in range(depth.kernel):
        first = tap * depth.dilation
        end = first + (depth.count - 1) * depth.stride + 1
        slice_ends = (n, c, end, *x.shape[3:])
        part = site.emit(op.Slice((0, 0, first, 0, 0), slice_ends, (1, 1, depth.stride, 1, 1)), x)
        taps.append(site.reshape(part, (n, c, 1, depth.count, *x.shape[3:])))
    transposed = site.emit(op.Transpose((0, 3, 1, 2, 4, 5)), site.concat(2, taps))
    images = site.reshape(transposed, (n * depth.count, c * depth.kernel, *x.shape[3:]))
    convolved = _convolve_image(site, images, weight, bias, image_windows(image))
    volumes = site.reshape(convolved, (n, depth.count, *convolved.shape[1:]))
    return site.emit(op.Transpose((0, 2, 1, 3, 4)), volumes)


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
    output_padding = site.ints("output_padding") or [0] * rank
    axis_parameters = zip(
        spatial, strides, weight.shape[2:], dilations, output_padding, strict=True
    )
    full_sizes = [(n - 1) * stride + (k - 1) * d + 1 + e for n, stride, k, d, e in axis_parameters]
    crop_begin, crop_end = _crops(
        site, full_sizes, [n * s for n, s in zip(spatial, strides, strict=True)]
    )
    groups, c = site.attribute("group", 1), x.shape[1]
    kernel = weight.reshape(groups, c // groups, *weight.shape[1:])
    kernel = np.flip(np.swapaxes(kernel, 1, 2), tuple(range(3, 3 + rank)))
    kernel = kernel.reshape(-1, c // groups, *weight.shape[2:])
    bias = real(site.constant(2, "bias")) if site.has_input(2) else None
    pads_begin = [
        (k - 1) * d - b for k, d, b in zip(weight.shape[2:], dilations, crop_begin, strict=True)
    ]
    pads_end = [
        (k - 1) * d - a + e
        for k, d, a, e in zip(weight.shape[2:], dilations, crop_end, output_padding, strict=True)
    ]
    image = _insert_zeros(site, x, strides)
    axes = [
        Span(k, 1, d, max(b, 0), max(a, 0), n + max(b, 0) + max(a, 0) - (k - 1) * d)
        for k, d, b, a, n in zip(
            weight.shape[2:], dilations, pads_begin, pads_end, image.shape[2:], strict=True
        )
    ]
    out = _convolve(site, image, kernel, bias, axes)
    bounds = [(0, size, 1) for size in out.shape[:2]]
    for size, b, a in zip(out.shape[2:], pads_begin, pads_end, strict=True):
        bounds.append((max(-b, 0), size - max(-a, 0), 1))
    return site.slice(out, bounds)


def _crops(site: Site, full_sizes: list[int], same_sizes: list[int]) -> tuple[list[int], list[int]]:
    """How much of the whole result goes at the start and at the end of each axis: what `pads` say,
    or what is beyond `output_shape` or, with `auto_pad` SAME, beyond `same_sizes`."""
    rank, mode = len(full_sizes), site.attribute("auto_pad", "NOTSET")
    output_sizes = (site.ints("output_shape") or (same_sizes if mode.startswith("SAME") else []))[
        -rank:
    ]
    if not output_sizes:
        pads = site.ints("pads") or [0] * (2 * rank)
        return pads[:rank], pads[rank:]
    excess = [
        size - output_size for size, output_size in zip(full_sizes, output_sizes, strict=True)
    ]
    if min(excess) < 0:
        site.refuse(
            f"its output {output_sizes} is larger than {full_sizes}",
            "Export explicit output_padding",
        )
    small, large = [b // 2 for b in excess], [b - b // 2 for b in excess]
    return (small, large) if mode == "SAME_UPPER" else (large, small)


def _insert_zeros(site: Site, x: Private, strides: list[int]) -> Private:
    """The input with `stride - 1` zeros between neighbours along each axis."""
    n, c, *spatial = x.shape
    if len(spatial) == 3:
        depth, *sides = spatial
        slices = _insert_zeros(site, site.reshape(x, (n, c * depth, *sides)), strides[1:])
        sides = [*slices.shape[2:]]
        image_stack = site.reshape(slices, (n, c, depth, math.prod(sides)))
        volume = _insert_zeros(site, image_stack, [strides[0], 1])
        return site.reshape(volume, (n, c, volume.shape[2], *sides))
    if max(strides) == 1:
        return x
    image = as_image(site, x)
    h, w = image.shape[2:]
    row_stride, column_stride = ([1] * (2 - len(spatial)) + strides)[-2:]
    padded = site.emit(
        op.Pad((0,) * 6, (0, 0, 0, row_stride - 1, 0, column_stride - 1), 0.0),
        site.reshape(image, (n, c, h, 1, w, 1)),
    )
    grid = site.reshape(padded, (n, c, h * row_stride, w * column_stride))
    ends = (n, c, (h - 1) * row_stride + 1, (w - 1) * column_stride + 1)
    return from_image(site, site.emit(op.Slice((0,) * 4, ends, (1,) * 4), grid), len(spatial))
