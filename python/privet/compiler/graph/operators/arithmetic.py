"""Add, Sub, Mul, Div, Neg, Sum and Mean, with numpy's broadcasting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.function import chain
from privet.compiler.graph.operations import Array, Shape, real
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site


@operator("Add")
def add(site: Site) -> Operand:
    """Of two private tensors, or of a private and a constant one; of masks and scores."""
    a, b = _operands(site)
    if not isinstance(a, Private):
        a, b = b, a
    assert isinstance(a, Private)
    if isinstance(b, Private):
        return plus(site, a, b)
    from privet.compiler.graph.operators.attention import BLOCKING, plus_mask

    has_mask = b.dtype.kind == "f" and bool((b <= BLOCKING * 10.0).any())
    if a.neg_inf is not None or (has_mask and np.broadcast_shapes(a.shape, b.shape) == a.shape):
        return plus_mask(site, a, b)
    return plus(site, a, b)


@operator("Sum")
def sum_of(site: Site) -> Private:
    """Of any number of tensors."""
    return plus(site, *site.operands())


@operator("Sub")
def sub(site: Site) -> Operand:
    """Of two private tensors, or of a private and a constant one. Less itself it is zero."""
    a, b = _operands(site)
    return np.zeros(a.shape, np.float32) if _is_same(a, b) else minus(site, a, b)


@operator("Mean")
def mean_of(site: Site) -> Operand:
    """Of any number of tensors."""
    return times_constant(site, plus(site, *site.operands()), np.asarray(1.0 / len(site.inputs)))


@operator("Neg")
def neg(site: Site) -> Operand:
    """`-x`."""
    return site.emit(op.Negate(), site.private(0))


@operator("Mul")
def mul(site: Site) -> Operand:
    """Of a private and a constant tensor, or of two private ones."""
    return product(site, *_operands(site))


@operator("Div", restrictions="on floating-point tensors; by a private one that keeps its sign")
def div(site: Site) -> Operand:
    """By a constant, or by a private tensor: a product with its reciprocal. By itself it is one."""
    a, b = _operands(site)
    if _is_same(a, b):
        return np.ones(a.shape, np.float32)
    if isinstance(b, Private):
        if b.integer or (isinstance(a, Private) and a.integer):
            site.refuse("it divides integers", "Cast to float first")
        inverse = site.emit(op.Elementwise(chain("reciprocal")), b)
        if not isinstance(a, Private):
            return times_constant(site, inverse, real(a))
        shape = _broadcast(site, [a, b])
        return site.emit(op.Mul(), site.broadcast(a, shape), site.broadcast(inverse, shape))
    assert isinstance(a, Private)
    if a.integer:
        site.refuse("it divides integers", "Cast to float first")
    if not np.all(real(b)):
        site.refuse("it divides by a constant that holds a zero", "Remove the zero")
    return times_constant(site, a, 1.0 / real(b))


def times_constant(site: Site, x: Private, constant: Array) -> Private:
    """`x * constant`: per channel where the constant allows, elementwise otherwise."""
    shape = _broadcast(site, [x, constant])
    x = site.broadcast(x, shape)
    channels = shape[1] if len(shape) > 1 else 0
    padded = constant.reshape((1,) * (len(shape) - constant.ndim) + constant.shape)
    if channels and padded.size in (1, channels) and padded.size == padded.shape[1]:
        factor = np.broadcast_to(padded.reshape(-1), (channels,))
        return site.emit(op.ChannelAffine(factor, None, uniform=constant.size == 1), x)
    weight = np.array(np.broadcast_to(padded, shape))
    by_column = constant.size > 1 and constant.shape[-1] == constant.size
    return site.emit(op.Scale(weight, uniform=constant.size == 1, by_column=by_column), x)


def plus_constant(site: Site, x: Private, constant: Array) -> Private:
    """`x + constant`, broadcasting either."""
    x = site.broadcast(x, _broadcast(site, [x, constant]))
    return site.emit(op.AddConstant(constant), x)


def minus(site: Site, a: Operand, b: Operand) -> Private:
    """`a - b`, broadcasting, of which one at least is private."""
    if not isinstance(b, Private):
        assert isinstance(a, Private)
        return plus_constant(site, a, -real(b))
    if not isinstance(a, Private):
        return plus_constant(site, site.emit(op.Negate(), b), real(a))
    shape = _broadcast(site, [a, b])
    return site.emit(op.Sub(), site.broadcast(a, shape), site.broadcast(b, shape))


def product(site: Site, a: Operand, b: Operand) -> Private:
    """`a * b`, broadcasting, of which one at least is private."""
    if isinstance(a, Private) and isinstance(b, Private):
        shape = _broadcast(site, [a, b])
        return site.emit(op.Mul(), site.broadcast(a, shape), site.broadcast(b, shape))
    private, constant = (a, b) if isinstance(a, Private) else (b, a)
    assert isinstance(private, Private)
    assert not isinstance(constant, Private)
    return times_constant(site, private, real(constant))


def plus(site: Site, *operands: Operand) -> Private:
    """The sum, broadcasting, of operands of which one at least is private."""
    shape = _broadcast(site, operands)
    private = [operand for operand in operands if isinstance(operand, Private)]
    total = site.broadcast(private[0], shape)
    for operand in private[1:]:
        total = site.emit(op.Add(), total, site.broadcast(operand, shape))
    constants = [real(operand) for operand in operands if not isinstance(operand, Private)]
    if constants:
        total = site.emit(op.AddConstant(np.asarray(sum(constants[1:], constants[0]))), total)
    return total


def _broadcast(site: Site, operands: Sequence[Operand]) -> Shape:
    shapes = [operand.shape for operand in operands]
    try:
        return tuple(int(size) for size in np.broadcast_shapes(*shapes))
    except ValueError:
        shape_texts = " and ".join(str(list(shape)) for shape in shapes)
        site.refuse(f"shapes {shape_texts} do not broadcast", "Check the model's shapes")


def _is_same(a: Operand, b: Operand) -> bool:
    """Whether both are one private tensor: so exporters make constants of its shape."""
    return isinstance(a, Private) and isinstance(b, Private) and a.id == b.id


def _operands(site: Site) -> list[Operand]:
    """The two operands; opset 6 lines the second up with `axis` of the first on request."""
    a, b = site.operand(0), site.operand(1)
    if site.opset < 7 and site.attribute("broadcast", 0):
        start = site.attribute("axis", -1)
        start = len(a.shape) - len(b.shape) if start < 0 else start
        shape = b.shape + (1,) * (len(a.shape) - start - len(b.shape))
        b = site.reshape(b, shape) if isinstance(b, Private) else b.reshape(shape)
    return [a, b]
