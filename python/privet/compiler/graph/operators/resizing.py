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

FAR_OUT = "tf_crop_and_resize"
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
    scales, sizes = _targets(site, x, axes)
    window = np.ravel(site.constant(1, "roi")) if site.has(1) else np.zeros(0)
    if site.attribute("coordinate_transformation_mode", "") == FAR_OUT:
        if window.size != 2 * len(axes):
            site.refuse(f"{window.size} numbers of roi for {len(axes)} axes", "Check the model")
    else:
        window = np.tile([0.0, 1.0], (len(axes), 1)).T.ravel()
    for index, axis in enumerate(axes):
        ends = float(window[index]), float(window[index + len(axes)])
        x = _along(site, x, axis, scales[index], sizes[index], ends)
    return x


@operator("Upsample", since=7, restrictions="scales constant")
def upsample(site: Site) -> Private:
    """Modes nearest and linear, as opsets up to 10 have them."""
    x = site.private(0)
    scales = site.floats("scales") if not site.has(1) else np.ravel(site.constant(1, "scales"))
    if len(scales) != len(x.shape) or not np.all(scales > 0):
        site.refuse(f"scales {scales.tolist()} on {list(x.shape)}", "Check the model")
    for axis, scale in enumerate(map(float, scales)):
        count = math.floor(x.shape[axis] * scale)
        site.bound(count)
        at = np.arange(count, dtype=np.float32) / np.float32(scale)
        if site.attribute("mode", "nearest") == "nearest":
            x = pick(site, x, axis, _kept_inside(np.floor(at), x.shape[axis]).tolist())
        else:
            x = _filtered(site, x, axis, at, _triangle, 1)
    return x


def _targets(site: Site, x: Private, axes: list[int]) -> tuple[list[float], list[int]]:
    """By how much each axis is scaled, and how long it becomes."""
    lengths = [x.shape[axis] for axis in axes]
    if site.has(3):
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


def _along(
    site: Site, x: Private, axis: int, scale: float, count: int, ends: tuple[float, float]
) -> Private:
    """One axis, made `count` long."""
    site.bound(count)
    size = x.shape[axis]
    mode = site.attribute("coordinate_transformation_mode", "half_pixel")
    if scale == 1.0 and count == size and mode != FAR_OUT:
        return x
    at = _coordinates(site, mode, size, scale, count, ends)
    shrinks = min(scale, 1.0) if site.attribute("antialias", 0) else 1.0
    match site.attribute("mode", "nearest"):
        case "nearest":
            rounding = site.attribute("nearest_mode", "round_prefer_floor")
            places = _kept_inside(ROUNDINGS[rounding](at), size)
            resized = pick(site, x, axis, places.tolist())
        case "linear":
            resized = _filtered(site, x, axis, at, _triangle, 1, shrinks)
        case "cubic":
            kernel = _keys(float(site.attribute("cubic_coeff_a", -0.75)))
            resized = _filtered(site, x, axis, at, kernel, 2, shrinks)
        case other:
            site.refuse(f"its mode is {other}", "Use mode nearest, linear or cubic")
    outside = (at < 0) | (at > size - 1)
    if mode != FAR_OUT or not outside.any():
        return resized
    column = outside.reshape(-1, *[1] * (len(x.shape) - axis - 1))
    value = float(site.attribute("extrapolation_value", 0.0))
    filled = np.broadcast_to(column, resized.shape[axis:])
    return site.emit(
        op.AddConstant(np.where(filled, value, 0.0)), times_public(site, resized, ~filled)
    )


def _coordinates(
    site: Site, mode: str, size: int, scale: float, count: int, ends: tuple[float, float]
) -> Array:
    """Where each element of the result lies among the old ones, in single precision."""
    i, ratio = np.arange(count, dtype=np.float32), np.float32(scale)
    half = np.float32(0.5)
    match mode:
        case "half_pixel" | "tf_half_pixel_for_nn" | "pytorch_half_pixel":
            alone = mode == "pytorch_half_pixel" and count == 1
            shift = np.float32(0.0) if mode == "tf_half_pixel_for_nn" else half
            return np.zeros(1, np.float32) if alone else (i + half) / ratio - shift
        case "half_pixel_symmetric":
            centre = np.float32(size / 2.0)
            drift = centre * (1 - np.float32(count) / (ratio * np.float32(size)))
            return np.asarray(drift + (i + half) / ratio - half)
        case "asymmetric":
            return i / ratio
        case "align_corners":
            return i * np.float32((size - 1) / max(count - 1, 1))
        case "tf_crop_and_resize":
            start, end = (np.float32(end * (size - 1)) for end in ends)
            return start + i * (end - start) / (count - 1) if count > 1 else (i + start + end) / 2
        case _:
            site.refuse(f"its coordinates are {mode}", "Export it with half_pixel")


def _kept_inside(places: Array, size: int) -> Array:
    return np.clip(places, 0, size - 1).astype(np.int64)


def _triangle(apart: Array) -> Array:
    return np.asarray(np.maximum(1.0 - apart, 0.0))


def _keys(a: float) -> Callable[[Array], Array]:
    """Keys' cubic kernel."""

    def kernel(apart: Array) -> Array:
        inner = ((a + 2) * apart - (a + 3)) * apart**2 + 1
        outer = ((a * apart - 5 * a) * apart + 8 * a) * apart - 4 * a
        return np.where(apart <= 1, inner, np.where(apart < 2, outer, 0.0))

    return kernel


def _filtered(
    site: Site,
    x: Private,
    axis: int,
    at: Array,
    kernel: Callable[[Array], Array],
    reach: int,
    shrinks: float = 1.0,
) -> Private:
    """Neighbours weighted by a kernel that is 0 from `reach` on, stretched by `1 / shrinks`; those
    outside count as the edge, or not at all."""
    size = x.shape[axis]
    wide = math.ceil(reach / shrinks)
    site.bound(2 * wide * len(at))
    low = np.floor(at)
    places = np.stack([low + k for k in range(1 - wide, wide + 1)])
    weights = kernel(np.abs(at - places).astype(np.float64) * shrinks)
    if site.attribute("exclude_outside", 0):
        weights = np.where((places < 0) | (places >= size), 0.0, weights)
    weights = weights / weights.sum(axis=0)
    return blend(site, x, axis, _kept_inside(places, size), weights)
