"""Transpose, Concat, Expand, Tile, Pad and the moves between channels and space."""

from __future__ import annotations

import math

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Array, real
from privet.compiler.graph.public_maps import pick
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site


@operator("Transpose")
def transpose(site: Site) -> Operand:
    """Any permutation; the reverse where none is given."""
    x = site.private(0)
    return site.transpose(x, site.ints("perm") or range(len(x.shape))[::-1])


@operator("Concat")
def concat(site: Site) -> Operand:
    """Of private tensors and constants."""
    operands = site.operands()
    axis = site.axis(site.attribute("axis", 1), len(operands[0].shape))
    return site.concat(axis, [as_private(site, operand) for operand in operands])


def as_private(site: Site, operand: Operand, source: Private | None = None) -> Private:
    """A constant becomes private as zero times some private tensor, plus itself."""
    if isinstance(operand, Private):
        return operand
    source = source or next(x for x in site.inputs if isinstance(x, Private))
    one = site.emit(op.Slice((0,), (1,), (1,)), site.reshape(source, (math.prod(source.shape),)))
    zero = site.emit(op.Sub(), one, one)
    zeros = site.reshape(zero, (1,) * operand.ndim)
    return site.emit(op.AddConstant(real(operand)), site.broadcast(zeros, operand.shape))


@operator("Expand", since=8, restrictions="shape constant")
def expand(site: Site) -> Operand:
    """Numpy's broadcasting to a shape."""
    x = site.private(0)
    target_shape = [int(size) for size in np.ravel(site.constant(1, "shape"))]
    try:
        shape = np.broadcast_shapes(x.shape, tuple(target_shape))
    except ValueError:
        site.refuse(
            f"{list(x.shape)} does not broadcast to {target_shape}", "Check the model's shapes"
        )
    return site.broadcast(x, tuple(int(size) for size in shape))


@operator("Tile", restrictions="repeats constant")
def tile(site: Site) -> Operand:
    """Repeats along any axis."""
    x = site.private(0)
    repeats = [int(count) for count in np.ravel(site.constant(1, "repeats"))]
    if len(repeats) != len(x.shape) or min(repeats, default=1) < 1:
        site.refuse(f"repeats {repeats} on input {list(x.shape)}", "Check the model's shapes")
    for axis, count in enumerate(repeats):
        if count > 1:
            x = site.emit(op.Concat(axis), *([x] * count))
    return x


@operator("Pad", restrictions="pads and value constant")
def pad(site: Site) -> Operand:
    """Pads as an attribute or an input, with optional axes; negative pads crop."""
    x = site.private(0)
    rank = len(x.shape)
    pads = site.ints_of("pads", 1) or []
    axes = list(range(rank))
    if site.has_input(3):
        axes = [site.axis(int(axis), rank) for axis in np.ravel(site.constant(3, "axes"))]
    if len(pads) != 2 * len(axes):
        site.refuse(f"{len(pads)} pads for {len(axes)} axes", "Check the model")
    before, after = [0] * rank, [0] * rank
    for position, axis in enumerate(axes):
        before[axis], after[axis] = pads[position], pads[position + len(axes)]
    value = site.attribute("value", 0.0)
    if site.has_input(2):
        value = float(np.ravel(site.constant(2, "value"))[0])
    x = _crop(site, x, before, after)
    before, after = [max(b, 0) for b in before], [max(a, 0) for a in after]
    if not any(before) and not any(after):
        return x
    mode = site.attribute("mode", "constant")
    if mode == "constant":
        return site.emit(op.Pad(tuple(before), tuple(after), value), x)
    for axis, widths in enumerate(zip(before, after, strict=True)):
        size = x.shape[axis]
        if mode == "reflect" and max(widths) >= max(size, 2):
            site.refuse(f"it reflects {max(widths)} of {size} elements", "Use less padding")
        x = pick(site, x, axis, _padded_indices(site, size, widths, mode).tolist())
    return x


def _padded_indices(site: Site, size: int, widths: tuple[int, int], mode: str) -> Array:
    """Which elements of an axis stand where, padded by its own."""
    site.check_size(size + sum(widths))
    match mode:
        case "edge" | "reflect" | "wrap":
            return np.pad(np.arange(size), widths, mode=mode)
        case _:
            site.refuse(f"its mode is {mode}", "Use mode constant, edge, reflect or wrap")


def _crop(site: Site, x: Private, before: list[int], after: list[int]) -> Private:
    sizes = zip(x.shape, before, after, strict=True)
    return site.slice(x, [(max(-b, 0), size - max(-a, 0), 1) for size, b, a in sizes])


@operator("DepthToSpace", restrictions="on images")
def depth_to_space(site: Site) -> Operand:
    """Modes DCR and CRD."""
    x, (n, c, h, w) = _image(site)
    b = site.attribute("blocksize", 1)
    if site.attribute("mode", "DCR") == "DCR":
        blocks, perm = (n, b, b, c // (b * b), h, w), (0, 3, 4, 1, 5, 2)
    else:
        blocks, perm = (n, c // (b * b), b, b, h, w), (0, 1, 4, 2, 5, 3)
    transposed = site.emit(op.Transpose(perm), site.reshape(x, blocks))
    return site.reshape(transposed, (n, c // (b * b), h * b, w * b))


def _image(site: Site) -> tuple[Private, tuple[int, int, int, int]]:
    x = site.private(0)
    if len(x.shape) != 4:
        site.refuse(f"its input {list(x.shape)} is no image", "Reshape to [N, C, H, W]")
    n, c, h, w = x.shape
    return x, (n, c, h, w)


@operator("SpaceToDepth", restrictions="on images")
def space_to_depth(site: Site) -> Operand:
    """Blocks of space become channels; modes DCR and CRD."""
    x, (n, c, h, w) = _image(site)
    b = site.attribute("blocksize", 1)
    blocks = site.reshape(x, (n, c, h // b, b, w // b, b))
    is_dcr = site.attribute("mode", "DCR") == "DCR"
    transposed = site.emit(
        op.Transpose((0, 3, 5, 1, 2, 4) if is_dcr else (0, 1, 3, 5, 2, 4)), blocks
    )
    return site.reshape(transposed, (n, c * b * b, h // b, w // b))
