"""Smooth activations: Sigmoid, Tanh, Gelu and others.

Suite `ckks` evaluates them as polynomials, suite `stream` in the clear at its client.
Compositions such as `x * sigmoid(x)` become one function in the pass `join_elementwise`.
"""

from __future__ import annotations

import math

import numpy as np

from privet.compiler.graph.function import Function, Step
from privet.compiler.graph.operations import Elementwise
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Site

_SUITES = "only in suites `ckks` and `stream`"


def _emit(site: Site, *steps: Step) -> Operand:
    x = site.private(0)
    if x.integer:
        site.refuse("it is applied to integers", "Cast to float first")
    return site.emit(Elementwise(Function(steps)), x)


@operator("Sigmoid", restrictions=_SUITES)
def sigmoid(site: Site) -> Operand:
    """`1 / (1 + exp(-x))`."""
    return _emit(site, Step("sigmoid", (0,)))


@operator("Tanh", restrictions=_SUITES)
def tanh(site: Site) -> Operand:
    """The hyperbolic tangent."""
    return _emit(site, Step("tanh", (0,)))


@operator("Softplus", restrictions=_SUITES)
def softplus(site: Site) -> Operand:
    """`log(1 + exp(x))`."""
    return _emit(site, Step("softplus", (0,)))


@operator("Erf", since=9, restrictions=_SUITES)
def erf(site: Site) -> Operand:
    """The error function."""
    return _emit(site, Step("erf", (0,)))


@operator("Gelu", since=20, restrictions=_SUITES)
def gelu(site: Site) -> Operand:
    """`x (1 + erf(x / sqrt 2)) / 2`, or the form with tanh."""
    if site.attribute("approximate", "none") == "tanh":
        root = math.sqrt(2.0 / math.pi)
        cube = [Step("mul", (0, 0)), Step("mul", (1, 0)), Step("scale", (2,), 0.044715)]
        inner = [Step("add", (0, 3)), Step("scale", (4,), root), Step("tanh", (5,))]
        half = [Step("shift", (6,), 1.0), Step("mul", (0, 7)), Step("scale", (8,), 0.5)]
        return _emit(site, *cube, *inner, *half)
    inner = [Step("scale", (0,), math.sqrt(0.5)), Step("erf", (1,)), Step("shift", (2,), 1.0)]
    return _emit(site, *inner, Step("mul", (0, 3)), Step("scale", (4,), 0.5))


@operator("Swish", since=24, restrictions=_SUITES)
def swish(site: Site) -> Operand:
    """`x * sigmoid(alpha x)`."""
    alpha = float(site.attribute("alpha", 1.0))
    return _emit(site, Step("scale", (0,), alpha), Step("sigmoid", (1,)), Step("mul", (0, 2)))


@operator("Pow", since=7, restrictions=f"a small whole exponent; {_SUITES}")
def power(site: Site) -> Operand:
    """A tensor raised to one constant exponent from 1 to 16."""
    exponents = np.unique(site.constant(1, "exponent"))
    exponent = int(exponents[0]) if len(exponents) == 1 else 0
    if not 1 <= exponent <= 16 or exponent != exponents[0]:
        site.refuse("its exponent is not one whole number from 1 to 16", "Write it as products")
    if exponent == 1:
        return site.private(0)
    # Step k multiplies the result before it by x once more.
    return _emit(site, *(Step("mul", (k, 0)) for k in range(exponent - 1)))
