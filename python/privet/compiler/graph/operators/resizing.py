"""Resize and Upsample: one public linear map along each axis."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Array
from privet.compiler.graph.public_maps import blend, pick, times_public
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site

CROP_AND_RESIZE = "tf_crop_and_resize"
ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda at: np.ceil(at - np.float32(0.5)),
    "round_prefer_ceil": lambda at: np.floor(at + np.float32(0.5)),
    "floor": np.floor,
    "ceil": np.ceil,
}


@operator("Resize", since=10, restrictions="scales, sizes and roi constant")
def resize(site: Site) -> Operand:
    """Modes nearest, linear and cubic, with every coordinate mode."""
    if site.opset < 11:
        return upsample(site)
    x = site.private(0)
    rank = len(x.shape)
    axes = [site.axis(axis, rank) for axis in site.ints("axes") or range(rank)]
    scales, sizes = _scales_and_sizes(site, x, axes)
    roi = np.ravel(site.constant(1, "roi")) if site.has_input(1) else np.zeros(0)
    if site.attribute("coordinate_transformation_mode", "") == CROP_AND_RESIZE:
        if roi.size != 2 * len(axes):
            site.refuse(f"{roi.size} numbers of roi for {len(axes)} axes", "Check the model")
    else:
        roi = np.tile([0.0, 1.0], (len(axes), 1)).T.ravel()
    for index, axis in enumerate(axes):
        roi_ends = float(roi[index]), float(roi[index + len(axes)])
        x = _resize_axis(site, x, axis, scales[index], sizes[index], roi_ends)
    return x


@operator("Upsample", since=7, restrictions="scales constant")
def upsample(site: Site) -> Private:
    """Modes nearest and linear, as opsets up to 10 have them."""
    x = site.private(0)
    scales = (
        site.floats("scales") if not site.has_input(1) else np.ravel(site.constant(1, "scales"))
    )
    if len(scales) != len(x.shape) or not np.all(scales > 0):
        site.refuse(f"scales {scales.tolist()} on {list(x.shape)}", "Check the model")
    for axis, scale in enumerate(map(float, scales)):
        count = math.floor(x.shape[axis] * scale)
        site.check_size(count)
        coordinates = np.arange(count, dtype=np.float32) / np.float32(scale)
        if site.attribute("mode", "nearest") == "nearest":
            x = pick(site, x, axis, _clip_indices(np.floor(coordinates), x.shape[axis]).tolist())
        else:
            x = _interpolate(site, x, axis, coordinates, _linear_kernel, 1)
    return x


def _scales_and_sizes(site: Site, x: Private, axes: list[int]) -> tuple[list[float], list[int]]:
    """By how much each axis is scaled, and how long it becomes."""
    lengths = [x.shape[axis] for axis in axes]
    if site.has_input(3):
        sizes = [int(size) for size in np.ravel(site.constant(3, "sizes"))]
        if len(sizes) != len(axes) or min(sizes) < 1:
            site.refuse(f"sizes {sizes} for axes {lengths}", "Check the model")
        scales = [size / length for size, length in zip(sizes, lengths, strict=True)]
        policy = site.attribute("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            common_scale = min(scales) if policy == "not_larger" else max(scales)
            scales = [common_scale] * len(axes)
            sizes = [math.floor(common_scale * length + 0.5) for length in lengths]
        return scales, sizes
    scales = [float(scale) for scale in np.ravel(site.constant(2, "scales"))]
    if len(scales) != len(axes) or min(scales) <= 0:
        site.refuse(f"scales {scales} for axes {lengths}", "Check the model")
    sizes = [
        math.floor(np.float32(scale) * np.float32(length))
        for scale, length in zip(scales, lengths, strict=True)
    ]
    return scales, sizes


def _resize_axis(
    site: Site, x: Private, axis: int, scale: float, count: int, roi_ends: tuple[float, float]
) -> Private:
    """One axis, made `count` long."""
    site.check_size(count)
    size = x.shape[axis]
    mode = site.attribute("coordinate_transformation_mode", "half_pixel")
    if scale == 1.0 and count == size and mode != CROP_AND_RESIZE:
        return x
    coordinates = _coordinates(site, mode, size, scale, count, roi_ends)
    kernel_scale = min(scale, 1.0) if site.attribute("antialias", 0) else 1.0
    match site.attribute("mode", "nearest"):
        case "nearest":
            rounding = site.attribute("nearest_mode", "round_prefer_floor")
            places = _clip_indices(ROUNDINGS[rounding](coordinates), size)
            resized = pick(site, x, axis, places.tolist())
        case "linear":
            resized = _interpolate(site, x, axis, coordinates, _linear_kernel, 1, kernel_scale)
        case "cubic":
            kernel = _cubic_kernel(float(site.attribute("cubic_coeff_a", -0.75)))
            resized = _interpolate(site, x, axis, coordinates, kernel, 2, kernel_scale)
        case other:
            site.refuse(f"its mode is {other}", "Use mode nearest, linear or cubic")
    outside = (coordinates < 0) | (coordinates > size - 1)
    if mode != CROP_AND_RESIZE or not outside.any():
        return resized
    outside_column = outside.reshape(-1, *[1] * (len(x.shape) - axis - 1))
    value = float(site.attribute("extrapolation_value", 0.0))
    is_filled = np.broadcast_to(outside_column, resized.shape[axis:])
    return site.emit(
        op.AddConstant(np.where(is_filled, value, 0.0)), times_public(site, resized, ~is_filled)
    )


def _coordinates(
    site: Site, mode: str, size: int, scale: float, count: int, roi_ends: tuple[float, float]
) -> Array:
    """Where each element of the result lies among the old ones, in single precision."""
    indices, ratio = np.arange(count, dtype=np.float32), np.float32(scale)
    half = np.float32(0.5)
    match mode:
        case "half_pixel" | "tf_half_pixel_for_nn" | "pytorch_half_pixel":
            is_single = mode == "pytorch_half_pixel" and count == 1
            shift = np.float32(0.0) if mode == "tf_half_pixel_for_nn" else half
            return np.zeros(1, np.float32) if is_single else (indices + half) / ratio - shift
        case "half_pixel_symmetric":
            centre = np.float32(size / 2.0)
            offset = centre * (1 - np.float32(count) / (ratio * np.float32(size)))
            return np.asarray(offset + (indices + half) / ratio - half)
        case "asymmetric":
            return indices / ratio
        case "align_corners":
            return indices * np.float32((size - 1) / max(count - 1, 1))
        case "tf_crop_and_resize":
            start, end = (np.float32(end * (size - 1)) for end in roi_ends)
            return (
                start + indices * (end - start) / (count - 1)
                if count > 1
                else (indices + start + end) / 2
            )
        case _:
            site.refuse(f"its coordinates are {mode}", "Export it with half_pixel")


def _clip_indices(places: Array, size: int) -> Array:
    return np.clip(places, 0, size - 1).astype(np.int64)


def _linear_kernel(distances: Array) -> Array:
    return np.asarray(np.maximum(1.0 - distances, 0.0))


def _cubic_kernel(a: float) -> Callable[[Array], Array]:
    """Keys' cubic kernel."""

    def kernel(distances: Array) -> Array:
        inner = ((a + 2) * distances - (a + 3)) * distances**2 + 1
        outer = ((a * distances - 5 * a) * distances + 8 * a) * distances - 4 * a
        return np.where(distances <= 1, inner, np.where(distances < 2, outer, 0.0))

    return kernel


def _interpolate(
    site: Site,
    x: Private,
    axis: int,
    coordinates: Array,
    kernel: Callable[[Array], Array],
    support: int,
    kernel_scale: float = 1.0,
) -> Private:
    """Neighbours weighted by a kernel that is 0 from `support` on, stretched by `1 / kernel_scale`;
    those outside count as the edge, or not at all."""
    size = x.shape[axis]
    radius = math.ceil(support / kernel_scale)
    site.check_size(2 * radius * len(coordinates))
    floors = np.floor(coordinates)
    places = np.stack([floors + k for k in range(1 - radius, radius + 1)])
    weights = kernel(np.abs(coordinates - places).astype(np.float64) * kernel_scale)
    if site.attribute("exclude_outside", 0):
        weights = np.where((places < 0) | (places >= size), 0.0, weights)
    weights = weights / weights.sum(axis=0)
    return blend(site, x, axis, _clip_indices(places, size), weights)
