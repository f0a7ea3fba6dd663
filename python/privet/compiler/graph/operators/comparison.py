"""Sign, comparisons, and what works on their results: Where, And, Or, Xor and Not.

A truth value is 1 or 0. Numbers are compared in fixed point: two that are closer than a unit of the
scale count as equal, or as either way round in suites whose linear layers are a unit off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import real
from privet.compiler.graph.operators.arithmetic import (
    minus,
    plus,
    plus_constant,
    product,
    times_constant,
)
from privet.compiler.graph.operators.selection import where_constant
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site

SUITES = "neither in suite `stream` nor with `--security malicious`"
_PRODUCT = "of private truth values and private tensors only where a suite has their `Mul`"

ONE = np.asarray(1.0)
BEYOND = 1e30
"""Exporters write the largest float where there is no bound."""


def as_boolean(x: Private) -> Private:
    """The same, known to be 0 or 1: it may be cast to integers, and be a place among two."""
    return replace(x, integer=False, whole=True, upper_bound=2)


def is_nonnegative(site: Site, x: Private) -> Private:
    """1 where `x >= 0`, else 0."""
    return as_boolean(site.emit(op.Step(0), x))


def is_above(site: Site, x: Private, bound: float) -> Private:
    """1 where `x > bound`, else 0."""
    return logical_not(site, is_nonnegative(site, minus(site, np.asarray(bound), x)))


def logical_not(site: Site, x: Private) -> Private:
    """1 for 0 and 0 for 1."""
    return as_boolean(site.emit(op.AddConstant(ONE, defined=True), site.emit(op.Negate(), x)))


@operator("Sign", since=9, restrictions=SUITES)
def sign(site: Site) -> Operand:
    """1, 0 or -1: two comparisons."""
    x = site.private(0)
    comparisons = is_nonnegative(site, x), is_nonnegative(site, site.emit(op.Negate(), x))
    return replace(site.emit(op.Sub(), *comparisons), whole=True)


@operator("Greater", since=7, restrictions=SUITES)
@operator("GreaterOrEqual", since=12, restrictions=SUITES)
@operator("Less", since=7, restrictions=SUITES)
@operator("LessOrEqual", since=12, restrictions=SUITES)
def comparison(site: Site) -> Operand:
    """1 where `a > b`, or whichever way the operator compares. No private number is beyond a
    constant of `BEYOND`."""
    a, b = site.operand(0), site.operand(1)
    if site.operator.startswith("Less"):
        a, b = b, a
    for constant, sign in ((a, 1.0), (b, -1.0)):
        if not isinstance(constant, Private) and (np.abs(constant) >= BEYOND).all():
            shape = np.broadcast_shapes(a.shape, b.shape)
            return np.array(np.broadcast_to(sign * constant > 0, shape))
    if site.operator.endswith("OrEqual"):
        return is_nonnegative(site, minus(site, a, b))
    return logical_not(site, is_nonnegative(site, minus(site, b, a)))


@operator("Equal", since=7, restrictions=SUITES)
def equal(site: Site) -> Operand:
    """1 where `a >= b` and `b >= a`, of which one always holds: their sum less 1."""
    a, b = site.operand(0), site.operand(1)
    comparisons = is_nonnegative(site, minus(site, a, b)), is_nonnegative(site, minus(site, b, a))
    return as_boolean(plus_constant(site, site.emit(op.Add(), *comparisons), -ONE))


@operator("Where", since=9, restrictions=_PRODUCT)
def where(site: Site) -> Operand:
    """`b + condition * (a - b)`."""
    if not isinstance(site.operand(0), Private):
        return where_constant(site)
    condition, a, b = (site.operand(index) for index in range(3))
    assert isinstance(condition, Private)
    if any(isinstance(x, Private) and x.neg_inf is not None for x in (a, b)):
        site.refuse("it chooses among masked elements", "Mask after it")
    if isinstance(a, Private) or isinstance(b, Private):
        return plus(site, b, product(site, condition, minus(site, a, b)))
    return plus(site, b, product(site, condition, real(a) - real(b)))


@operator("Not")
def negation(site: Site) -> Operand:
    """`1 - x`."""
    return logical_not(site, site.private(0))


@operator("And", since=7, restrictions=_PRODUCT)
def conjunction(site: Site) -> Operand:
    """`a * b`. Where one is known to be false, so is the result."""
    a, b = site.operand(0), site.operand(1)
    if any(not isinstance(x, Private) and not x.any() for x in (a, b)):
        return np.zeros(np.broadcast_shapes(a.shape, b.shape), bool)
    return as_boolean(product(site, a, b))


@operator("Or", since=7, restrictions=_PRODUCT)
def disjunction(site: Site) -> Operand:
    """`a + b - a * b`."""
    return _union(site, lambda both: both)


@operator("Xor", since=7, restrictions=_PRODUCT)
def exclusive_or(site: Site) -> Operand:
    """`a + b - 2 a * b`."""
    return _union(site, lambda both: times_constant(site, both, np.asarray(2.0)))


def _union(site: Site, overlap: Callable[[Private], Private]) -> Private:
    a, b = site.operand(0), site.operand(1)
    product_ab = product(site, a, b)
    return as_boolean(minus(site, plus(site, a, b), overlap(product_ab)))
