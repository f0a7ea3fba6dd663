"""Smooth activations: Sigmoid, Tanh, Gelu and others.

Suites `gmw` and `fss` evaluate them by lines, suite `ckks` as polynomials, suite `stream` in the
clear at its client.
Compositions such as `x * sigmoid(x)` become one function in the pass `join_elementwise`.
"""

from __future__ import annotations

import math

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.function import Function, Step, chain
from privet.compiler.graph.operations import Array
from privet.compiler.graph.operators.arithmetic import plus_constant, product, times_constant
from privet.compiler.graph.public_maps import pick
from privet.compiler.graph.registry import OLDEST_OPSET, operator
from privet.compiler.graph.site import Operand, Private, Site

_SUITES = "not with `--security malicious`"
MOST_POWER = 16.0
"""The largest whole exponent; others are of positive numbers."""


def _emit(site: Site, *steps: Step) -> Operand:
    x = site.private(0)
    if x.integer:
        site.refuse("it is applied to integers", "Cast to float first")
    return site.emit(op.Elementwise(Function(steps)), x)


def of_one_step(site: Site) -> Operand:
    """The function that the operator is named after."""
    return _emit(site, Step(site.operator.lower(), (0,)))


for _since, _names in (
    (OLDEST_OPSET, ("Exp", "Log", "Reciprocal", "Sigmoid", "Softplus", "Sqrt", "Tanh")),
    (7, ("Atan", "Cos", "Sin")),
    (9, ("Erf",)),
):
    for _name in _names:
        operator(_name, since=_since, restrictions=_SUITES)(of_one_step)


@operator("Cosh", since=9, restrictions=_SUITES)
@operator("Sinh", since=9, restrictions=_SUITES)
def hyperbolic(site: Site) -> Operand:
    """`(exp(x) + exp(-x)) / 2`, or their difference."""
    powers = [Step("exp", (0,)), Step("scale", (0,), -1.0), Step("exp", (2,))]
    combination = "add" if site.operator == "Cosh" else "sub"
    return _emit(site, *powers, Step(combination, (1, 3)), Step("scale", (4,), 0.5))


@operator("Asinh", since=9, restrictions=_SUITES)
def inverse_sine(site: Site) -> Operand:
    """`log(x + sqrt(x^2 + 1))` of what is above 0, less that of what is below."""
    steps = [Step("relu", (0,)), Step("sub", (1, 0))]
    for side in (1, 2):
        root = len(steps) + 3
        steps += [Step("mul", (side, side)), Step("shift", (root - 2,), 1.0)]
        steps += [Step("sqrt", (root - 1,)), Step("add", (root, side)), Step("log", (root + 1,))]
    return _emit(site, *steps, Step("sub", (7, 12)))


@operator("Acosh", since=9, restrictions=_SUITES)
def inverse_cosine(site: Site) -> Operand:
    """`log(x + sqrt(x^2 - 1))`."""
    square = [Step("mul", (0, 0)), Step("shift", (1,), -1.0), Step("sqrt", (2,))]
    return _emit(site, *square, Step("add", (0, 3)), Step("log", (4,)))


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


@operator("Mish", since=18, restrictions=_SUITES)
def mish(site: Site) -> Operand:
    """`x tanh(log(1 + exp(x)))`."""
    return _emit(site, Step("softplus", (0,)), Step("tanh", (1,)), Step("mul", (0, 2)))


@operator("HardSigmoid", restrictions=_SUITES)
def hard_sigmoid(site: Site) -> Operand:
    """`alpha x + beta`, kept between 0 and 1."""
    return _emit(site, *_hard_sigmoid(site.attribute("alpha", 0.2), site.attribute("beta", 0.5)))


@operator("HardSwish", since=14, restrictions=_SUITES)
def hard_swish(site: Site) -> Operand:
    """`x` times a HardSigmoid of slope 1/6."""
    steps = _hard_sigmoid(1.0 / 6.0, 0.5)
    return _emit(site, *steps, Step("mul", (0, len(steps))))


@operator("Elu", restrictions=_SUITES)
def elu(site: Site) -> Operand:
    """`x` above 0, `alpha (exp(x) - 1)` below."""
    return _emit(site, *_elu(1.0, site.attribute("alpha", 1.0), 1.0))


@operator("Selu", restrictions=_SUITES)
def selu(site: Site) -> Operand:
    """Elu times `gamma`."""
    alpha = site.attribute("alpha", 1.6732632423543772)
    gamma = site.attribute("gamma", 1.0507009873554805)
    return _emit(site, *_elu(gamma, gamma * alpha, 1.0))


@operator("Celu", since=12, restrictions=_SUITES)
def celu(site: Site) -> Operand:
    """`x` above 0, `alpha (exp(x / alpha) - 1)` below."""
    alpha = site.attribute("alpha", 1.0)
    return _emit(site, *_elu(1.0, alpha, 1.0 / alpha))


@operator("Softsign", restrictions=_SUITES)
def softsign(site: Site) -> Operand:
    """`x / (1 + |x|)`."""
    magnitude_steps = [Step("relu", (0,)), Step("scale", (1,), 2.0), Step("sub", (2, 0))]
    ratio = [Step("shift", (3,), 1.0), Step("reciprocal", (4,)), Step("mul", (0, 5))]
    return _emit(site, *magnitude_steps, *ratio)


@operator(
    "Pow",
    since=7,
    restrictions=f"constant exponents up to 16, one or by column, or base > 0; {_SUITES}",
)
def power(site: Site) -> Operand:
    """A tensor raised to one constant exponent; to a fraction or a tensor, if no element is
    negative."""
    if isinstance(site.operand(1), Private):
        return _power_of_positives(site, site.operand(0), site.private(1))
    exponents = site.constant(1, "exponent")
    if len(np.unique(exponents)) > 1:
        return _powers(site, exponents)
    exponent = float(exponents.ravel()[0]) if exponents.size else 0.0
    if exponent == 0.0 or (exponent == int(exponent) and abs(exponent) > MOST_POWER):
        site.refuse(f"its exponent is 0 or beyond {MOST_POWER:g}", "Write it as products")
    if exponent == 1.0:
        return site.private(0)
    integer_exponent = int(abs(exponent))
    if integer_exponent == abs(exponent):
        x = result = site.private(0)
        if x.integer:
            site.refuse("it is applied to integers", "Cast to float first")
        for _ in range(integer_exponent - 1):
            result = site.emit(op.Mul(), result, x)
        return site.emit(op.Elementwise(chain("reciprocal")), result) if exponent < 0.0 else result
    if exponent == 0.5:
        return _emit(site, Step("sqrt", (0,)))
    return _emit(site, Step("log", (0,)), Step("scale", (1,), exponent), Step("exp", (2,)))


def _powers(site: Site, exponents: Array) -> Private:
    """A power for each column, such as `PowerTransformer` takes."""
    x = site.private(0)
    axis, columns = len(x.shape) - 1, exponents.ravel()
    if axis < 0 or exponents.size != x.shape[axis] or exponents.shape[-1] != exponents.size:
        site.refuse("its exponents differ, and not by column", "Write it as products")
    parts, order = [], []
    for exponent in np.unique(columns):
        places = np.flatnonzero(columns == exponent).tolist()
        part = pick(site, x, axis, places)
        if exponent == 0.0:
            part = plus_constant(site, times_constant(site, part, np.zeros(1)), np.ones(1))
        else:
            part = site.apply("Pow", part, np.asarray(exponent))
        parts.append(part)
        order += places
    return pick(site, site.emit(op.Concat(axis), *parts), axis, np.argsort(order).tolist())


def _power_of_positives(site: Site, base: Operand, exponent: Private) -> Operand:
    """`exp(exponent log(base))`."""
    if isinstance(base, Private):
        logarithm: Operand = site.emit(op.Elementwise(chain("log")), base)
    elif (base > 0).all():
        logarithm = np.log(base)
    else:
        site.refuse("its base is not positive", "Write it as products")
    return site.emit(op.Elementwise(chain("exp")), product(site, exponent, logarithm))


def _hard_sigmoid(alpha: float, beta: float) -> list[Step]:
    """`max(t, 0) - max(t - 1, 0)` of `t = alpha x + beta`."""
    argument = [Step("scale", (0,), alpha), Step("shift", (1,), beta)]
    ends = [Step("shift", (2,), -1.0), Step("relu", (2,)), Step("relu", (3,))]
    return [*argument, *ends, Step("sub", (4, 5))]


def _elu(positive_slope: float, negative_scale: float, rate: float) -> list[Step]:
    """`above x` above 0, `below (exp(rate x) - 1)` below."""
    negative = [Step("relu", (0,)), Step("sub", (0, 1)), Step("scale", (2,), rate)]
    curve = [Step("exp", (3,)), Step("shift", (4,), -1.0), Step("scale", (5,), negative_scale)]
    return [*negative, *curve, Step("scale", (1,), positive_slope), Step("add", (6, 7))]
