"""Softmax inside the network, Attention and RotaryEmbedding (opset 23).

A softmax is `exp(x - max)` over its sum. The maximum is that of the row; the exponential function
is looked up, as is the reciprocal of the sum, and their product comes last, so that the pass
`normalize_after` can move it behind a product with the values. Masked elements are set `MASKED`
below what they were, where the exponential function is 0.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.function import Function, Step, chain
from privet.compiler.graph.operations import Array
from privet.compiler.graph.operators.arithmetic import times_constant
from privet.compiler.graph.operators.dense import private_product
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site

BLOCKING = -100.0
"""Constants up to this one, added to what a softmax reads, mask an element."""
DECAY = Function((Step("relu", (0,)), Step("scale", (1,), -1.0), Step("exp", (2,))))
"""`exp(-x)` of `x >= 0`."""
RECIPROCAL = chain("reciprocal")


def private_softmax(site: Site) -> Private:
    """Over one axis, or all from one on before opset 13."""
    x = site.private(0)
    flatten = site.opset < 13
    axis = site.axis(site.attribute("axis", 1 if flatten else -1), len(x.shape))
    if not flatten:
        perm = (*(i for i in range(len(x.shape)) if i != axis), axis)
        transposed = x if axis == len(x.shape) - 1 else _transpose(site, x, perm)
        return site.transpose(softmax_rows(site, transposed), np.argsort(perm).tolist())
    rows = (math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
    neg_inf = None if x.neg_inf is None else np.broadcast_to(x.neg_inf, x.shape).reshape(rows)
    flat = replace(site.reshape(replace(x, neg_inf=None), rows), neg_inf=neg_inf)
    return site.reshape(softmax_rows(site, flat), x.shape)


def softmax_rows(site: Site, x: Private) -> Private:
    """The softmax over the last axis."""
    columns = x.shape[-1]
    rows = math.prod(x.shape[:-1])
    if x.neg_inf is not None:
        neg_inf = np.broadcast_to(x.neg_inf, x.shape)
        if neg_inf.all(axis=-1).any():
            site.refuse("a row of it is masked whole", "Leave an element in each row")
        x = site.emit(
            op.AddConstant(np.where(x.neg_inf, -op.MASKED, 0.0)), replace(x, neg_inf=None)
        )
    row = site.reshape(x, (1, rows, 1, columns))
    window = ((1, columns), (1, 1), op.NO_PADDING, (1, 1), (1, 1))
    largest = site.broadcast(site.emit(op.MaxPool2d(*window), row), row.shape)
    exponentials = site.emit(
        op.Elementwise(DECAY, nonnegative=True), site.emit(op.Sub(), largest, row)
    )
    total = site.emit(op.AvgPool2d(*window, factors=(1.0,)), exponentials)
    inverse = site.emit(op.Elementwise(RECIPROCAL), total)
    return site.reshape(
        site.emit(op.Mul(), exponentials, site.broadcast(inverse, exponentials.shape)), x.shape
    )


def mask_elements(site: Site, x: Private, neg_inf: Array) -> Private:
    """The tensor with elements that stand for minus infinity."""
    combined = neg_inf if x.neg_inf is None else x.neg_inf | neg_inf
    return replace(x, neg_inf=combined if combined.any() else None)


def _transpose(site: Site, x: Private, perm: tuple[int, ...]) -> Private:
    neg_inf = None if x.neg_inf is None else np.broadcast_to(x.neg_inf, x.shape).transpose(perm)
    return replace(site.emit(op.Transpose(perm), replace(x, neg_inf=None)), neg_inf=neg_inf)


@operator(
    "Attention",
    since=23,
    restrictions="mask constant; without past, softcap and its second and later outputs",
)
def attention(site: Site) -> Operand:
    """Scaled dot products, softmax and the product with V; causal, and with grouped queries."""
    if any(site.has_input(index) for index in (4, 5, 6)) or any(
        map(site.uses_output, range(1, site.output_count))
    ):
        site.refuse("it keeps past keys and values", "Export it for whole sequences")
    if site.attribute("softcap", 0.0):
        site.refuse("it caps its scores softly", "Export it without softcap")
    is_flat = len(site.private(0).shape) == 3
    heads = [site.attribute(f"{kind}_num_heads", 0) for kind in ("q", "kv", "kv")]
    q, k, v = (_split_heads(site, site.private(i), heads[i]) for i in range(3))
    batch, count, rows, size = q.shape
    groups, keys = k.shape[1], k.shape[2]
    if count % groups:
        site.refuse(f"{count} heads of queries share {groups} of keys", "Check the model")
    q = times_constant(site, q, np.asarray(site.attribute("scale", 1.0 / math.sqrt(size))))
    q = site.reshape(q, (batch, groups, count // groups, rows, size))
    k = site.reshape(site.emit(op.Transpose((0, 1, 3, 2)), k), (batch, groups, 1, size, keys))
    scores = site.reshape(private_product(site, q, k), (batch, count, rows, keys))
    if site.attribute("is_causal", 0):
        scores = mask_elements(site, scores, ~np.tri(rows, keys, dtype=bool))
    if site.has_input(3):
        mask = site.operand(3)
        if isinstance(mask, Private):
            site.refuse(
                "its mask depends on the private input",
                "Export the model with an opset below 23, whose Softmax reads the mask, or store "
                "the mask in the model as a constant",
            )
        if mask.dtype == np.bool_:
            scores = mask_elements(site, scores, ~mask)
        else:
            scores = plus_mask(site, scores, mask)
    weights = site.reshape(softmax_rows(site, scores), (batch, groups, count // groups, rows, keys))
    v = site.reshape(v, (batch, groups, 1, keys, v.shape[-1]))
    output = site.reshape(private_product(site, weights, v), (batch, count, rows, v.shape[-1]))
    if not is_flat:
        return output
    output = site.emit(op.Transpose((0, 2, 1, 3)), output)
    return site.reshape(output, (batch, rows, count * v.shape[-1]))


def _split_heads(site: Site, x: Private, count: int) -> Private:
    """`[B, heads, T, d]`, from that or from `[B, T, heads d]`."""
    if len(x.shape) == 4:
        return x
    batch, rows, width = x.shape
    if not count or width % count:
        site.refuse(f"{width} numbers for {count} heads", "Check the model")
    heads = site.reshape(x, (batch, rows, count, width // count))
    return site.emit(op.Transpose((0, 2, 1, 3)), heads)


def plus_mask(site: Site, x: Private, mask: Array) -> Private:
    """A tensor plus constants of which the lowest stand for minus infinity."""
    neg_inf = mask <= BLOCKING
    finite_mask = np.where(neg_inf, 0.0, mask)
    result = x
    if finite_mask.any():
        result = site.emit(op.AddConstant(finite_mask), replace(x, neg_inf=None))
        result = replace(result, neg_inf=x.neg_inf)
    return mask_elements(
        site, result, np.broadcast_to(neg_inf, np.broadcast_shapes(neg_inf.shape, x.shape))
    )


@operator("RotaryEmbedding", since=23, restrictions="caches and positions constant")
def rotary_embedding(site: Site) -> Operand:
    """`x cos + rotated(x) sin` on the first numbers of each head."""
    x = site.private(0)
    cos, sin = (site.constant(i, "caches").astype(np.float64) for i in (1, 2))
    if site.has_input(3):
        positions = site.constant(3, "positions").astype(np.int64)
        cos, sin = cos[positions], sin[positions]
    is_flat = len(x.shape) == 3
    x = _split_heads(site, x, site.attribute("num_heads", 0))
    width = site.attribute("rotary_embedding_dim", 0) or x.shape[-1]
    tables = [np.asarray(table)[:, None, : x.shape[2], : width // 2] for table in (cos, sin)]
    rotary_part = site.slice_axis(x, -1, 0, width)
    other_part = [site.slice_axis(x, -1, width, x.shape[-1])] if width < x.shape[-1] else []
    rotated_part = _rotated(
        site, rotary_part, tables[0], tables[1], bool(site.attribute("interleaved", 0))
    )
    rotated = site.concat(3, [rotated_part, *other_part])
    if not is_flat:
        return rotated
    rotated = site.emit(op.Transpose((0, 2, 1, 3)), rotated)
    return site.reshape(rotated, site.private(0).shape)


def _rotated(site: Site, x: Private, cos: Array, sin: Array, interleaved: bool) -> Private:
    width = x.shape[-1]
    if interleaved:
        even, odd = site.slice_axis(x, -1, 0, width, 2), site.slice_axis(x, -1, 1, width, 2)
        pairs = [
            site.reshape(part, (*part.shape, 1)) for part in (site.emit(op.Negate(), odd), even)
        ]
        swapped = site.reshape(site.emit(op.Concat(4), *pairs), x.shape)
        cos, sin = np.repeat(cos, 2, axis=-1), np.repeat(sin, 2, axis=-1)
    else:
        low, high = site.slice_axis(x, -1, 0, width // 2), site.slice_axis(x, -1, width // 2, width)
        swapped = site.emit(op.Concat(3), site.emit(op.Negate(), high), low)
        cos, sin = np.concatenate([cos, cos], axis=-1), np.concatenate([sin, sin], axis=-1)
    return site.emit(op.Add(), times_constant(site, x, cos), times_constant(site, swapped, sin))
