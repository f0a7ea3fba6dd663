"""Operators that only rename the axes: Reshape, Flatten, Squeeze, Unsqueeze and the like."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import onnx

from privet.compiler.graph.constants import holds_rows
from privet.compiler.graph.input_shapes import FLOATS
from privet.compiler.graph.onnx_model import type_title
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site, TensorList


@operator("Identity")
def identity(site: Site) -> Operand | TensorList:
    """Also of a sequence."""
    sequence = site.inputs[0]
    return sequence if isinstance(sequence, TensorList) else site.private(0)


@operator("Dropout", restrictions="inference form; without the output mask")
def dropout(site: Site) -> Operand:
    if site.has_input(2) and bool(site.constant(2, "training mode").any()):
        site.refuse("it is in training mode", "Export the model for inference")
    if site.uses_output(1):
        site.refuse("its output mask is used", "Use only its first output")
    return site.private(0)


@operator(
    "Cast",
    restrictions="between floating-point types, to booleans, from whole numbers, or before "
    "`OneHot` and look-ups in constants",
)
def cast(site: Site) -> Operand:
    """Nothing, as the private tensor is in fixed point either way."""
    x = site.private(0)
    target_type = site.attribute("to", 0)
    if target_type in FLOATS:
        return replace(x, integer=False)
    if (x.integer or x.whole) and target_type in (onnx.TensorProto.INT32, onnx.TensorProto.INT64):
        return replace(x, integer=True)
    if target_type == onnx.TensorProto.BOOL:
        zero = np.zeros((), np.float32)
        return site.apply("Not", site.apply("Equal", x, zero))
    if target_type in (onnx.TensorProto.INT32, onnx.TensorProto.INT64):
        return replace(x, integer=True, cast_to_integer=True)
    if x.upper_bound and holds_rows(target_type, x.upper_bound):
        return replace(x, integer=True)
    site.refuse(
        f"it rounds a private tensor to {type_title(target_type)}",
        "Remove the cast, or do it on the client",
    )


_ROUNDS = "of whole numbers"


@operator("Ceil", restrictions=_ROUNDS)
@operator("Floor", restrictions=_ROUNDS)
@operator("Round", since=11, restrictions=_ROUNDS)
def round_whole(site: Site) -> Operand:
    """Nothing, as the private numbers are whole."""
    x = site.private(0)
    if not (x.integer or x.whole):
        site.refuse(
            "it rounds private numbers, of which the parties know no whole part: a suite's error "
            "of 2^-12 would become one of 1",
            "Leave it out, end the model before it, or compare with each bound "
            "(KBinsDiscretizer, Greater)",
        )
    return x


@operator("Shape")
def shape(site: Site) -> Operand:
    """A constant, as every shape is known."""
    dims = site.private(0).shape
    start, end = site.attribute("start", 0), site.attribute("end", len(dims))
    return np.asarray(dims[start:end], dtype=np.int64)


@operator("Size")
def size(site: Site) -> Operand:
    """A constant, as every shape is known."""
    return np.asarray(math.prod(site.private(0).shape), dtype=np.int64)


@operator("EyeLike", since=9)
def eye_like(site: Site) -> Operand:
    """A constant, as every shape is known."""
    rows, columns = site.private(0).shape
    return np.eye(rows, columns, site.attribute("k", 0), dtype=np.float32)


@operator("CastLike", since=15, restrictions="to floating-point types, or from whole numbers")
def cast_like(site: Site) -> Operand:
    """Nothing, if it need not round."""
    x, target = site.operand(0), site.operand(1)
    if not isinstance(x, Private):
        return x
    if not (target.integer if isinstance(target, Private) else target.dtype.kind != "f"):
        return replace(x, integer=False)
    if x.integer:
        return x
    site.refuse("it rounds a private tensor", "Remove the cast, or do it on the client")


@operator("Reshape", restrictions="shape constant")
def reshape(site: Site) -> Operand:
    """With 0, -1 and allowzero."""
    x = site.private(0)
    target_shape = [int(size) for size in np.ravel(site.constant(1, "shape"))]
    if not site.attribute("allowzero", 0):
        if any(size == 0 and i >= len(x.shape) for i, size in enumerate(target_shape)):
            site.refuse(f"shape {target_shape} copies an axis that is not there", "Check the model")
        target_shape = [x.shape[i] if size == 0 else size for i, size in enumerate(target_shape)]
    if target_shape.count(-1) == 1:
        known_size = -math.prod(target_shape)
        if known_size <= 0 or math.prod(x.shape) % known_size:
            site.refuse(f"{list(x.shape)} cannot become {target_shape}", "Check the model's shapes")
        target_shape[target_shape.index(-1)] = math.prod(x.shape) // known_size
    return site.reshape(x, target_shape)


@operator("Flatten")
def flatten(site: Site) -> Operand:
    """To two axes."""
    x = site.private(0)
    axis = site.attribute("axis", 1)
    axis = axis + len(x.shape) if axis < 0 else axis
    return site.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@operator("Squeeze", restrictions="axes constant")
def squeeze(site: Site) -> Operand:
    """Axes as an attribute or an input; all of size 1 where none are given."""
    x = site.private(0)
    axes = site.ints_of("axes", 1)
    if axes is None:
        axes = [axis for axis, size in enumerate(x.shape) if size == 1]
    squeezed_axes = {site.axis(axis, len(x.shape)) for axis in axes}
    return site.reshape(x, [d for axis, d in enumerate(x.shape) if axis not in squeezed_axes])


@operator("Unsqueeze", restrictions="axes constant")
def unsqueeze(site: Site) -> Operand:
    """Axes as an attribute or an input."""
    x = site.private(0)
    axes = site.ints_of("axes", 1) or []
    rank = len(x.shape) + len(axes)
    new_axes = {site.axis(axis, rank) for axis in axes}
    sizes = iter(x.shape)
    return site.reshape(x, [1 if axis in new_axes else next(sizes) for axis in range(rank)])
