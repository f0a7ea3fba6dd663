"""The geometry of sliding windows: ONNX's attributes to explicit padding and output sizes.

One-dimensional windows become two-dimensional ones over an image of height 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privet.compiler.graph.operations import Padding, Pair, Shape
from privet.compiler.graph.site import Private, Site


@dataclass(frozen=True)
class Windows:
    """Windows over an image; `size` counts them along height and width."""

    kernel: Pair
    stride: Pair
    padding: Padding
    dilation: Pair
    size: Pair


def windows(site: Site, spatial: Sequence[int], kernel: Sequence[int]) -> Windows:
    """The windows that a Conv or pooling node slides over an image of size `spatial`."""
    if len(spatial) not in (1, 2):
        why = f"it works on {len(spatial)} spatial axes"
        site.refuse(why, "Use layers over one or two spatial axes")
    return image_windows(spans(site, spatial, kernel))


@dataclass(frozen=True)
class Span:
    """Windows along one axis: `before` and `after` are padding, `count` is how many there are."""

    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    count: int


def image_windows(axes: Sequence[Span]) -> Windows:
    """Windows over an image, from those along its one or two axes."""
    rows, columns = axes if len(axes) == 2 else (Span(1, 1, 1, 0, 0, 1), axes[0])
    return Windows(
        kernel=(rows.kernel, columns.kernel),
        stride=(rows.stride, columns.stride),
        padding=(rows.before, columns.before, rows.after, columns.after),
        dilation=(rows.dilation, columns.dilation),
        size=(rows.count, columns.count),
    )


def spans(site: Site, spatial: Sequence[int], kernel: Sequence[int]) -> list[Span]:
    """The windows of a Conv or pooling node along each of any number of axes."""
    rank = len(spatial)
    strides = site.ints("strides") or [1] * rank
    dilations = site.ints("dilations") or [1] * rank
    for name, sizes in (("kernel", kernel), ("strides", strides), ("dilations", dilations)):
        if len(sizes) != rank or min(sizes) < 1:
            site.refuse(f"{name} {list(sizes)} over {rank} axes", "Each must be at least 1")
    window_sizes = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    ceil = bool(site.attribute("ceil_mode", 0))
    pads_begin, pads_end = _pads(site, spatial, strides, window_sizes)
    counts = []
    for axis in range(rank):
        last_start = spatial[axis] + pads_begin[axis] + pads_end[axis] - window_sizes[axis]
        if last_start < 0:
            site.refuse(
                f"its window of {window_sizes[axis]} is larger than the padded axis of "
                f"{spatial[axis] + pads_begin[axis] + pads_end[axis]}",
                "Give a larger input with input_shapes",
            )
        count = (last_start + (strides[axis] - 1 if ceil else 0)) // strides[axis] + 1
        # A window that would start behind the image (in the end padding) is left out.
        if ceil and (count - 1) * strides[axis] >= spatial[axis] + pads_begin[axis]:
            count -= 1
        counts.append(count)
    return [
        Span(*entries)
        for entries in zip(kernel, strides, dilations, pads_begin, pads_end, counts, strict=True)
    ]


def _pads(
    site: Site, spatial: Sequence[int], strides: Sequence[int], window_sizes: Sequence[int]
) -> tuple[list[int], list[int]]:
    rank = len(spatial)
    mode = site.attribute("auto_pad", "NOTSET")
    if mode == "NOTSET":
        pads = site.ints("pads") or [0] * (2 * rank)
        if min(pads) < 0:
            site.refuse(f"its padding {pads} is negative", "Slice before it instead")
        return pads[:rank], pads[rank:]
    if mode == "VALID":
        return [0] * rank, [0] * rank
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        site.refuse(f"auto_pad is {mode}", "Use explicit pads")
    totals = [
        max((-(-size // stride) - 1) * stride + window_size - size, 0)
        for size, stride, window_size in zip(spatial, strides, window_sizes, strict=True)
    ]
    small, large = [t // 2 for t in totals], [t - t // 2 for t in totals]
    return (small, large) if mode == "SAME_UPPER" else (large, small)


def as_image(site: Site, x: Private) -> Private:
    """`[N, C, L]` as `[N, C, 1, L]`; an image as it is."""
    if len(x.shape) == 3:
        return site.reshape(x, (*x.shape[:2], 1, x.shape[2]))
    return x


def from_image(site: Site, x: Private, spatial_rank: int) -> Private:
    if spatial_rank == 1:
        return site.reshape(x, (*x.shape[:2], x.shape[3]))
    return x


def spatial_of(site: Site, x: Private) -> Shape:
    """The axes behind batch and channels, of which there must be at least one."""
    if len(x.shape) < 3:
        site.refuse(f"its input {list(x.shape)} has no spatial axes", "Reshape to [N, C, H, W]")
    return x.shape[2:]
