"""Elementary functions of float64 from sums, products and quotients alone.

IEEE 754 rounds those alike on every machine, where one platform's `exp` may differ from another's
in the last bit. Each function is a fixed sequence of operations; the client of suite `stream` has
the same ones (`crates/suites/src/stream/ops/elementary.rs`), so that its results are the
executor's bit by bit. Arguments and results are finite, and results within about four units in the
last place of a float64 of the functions, or of 1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]

MOST = 300.0
"""Arguments of `exp` are kept to this magnitude."""

LOG2_E = float.fromhex("0x1.71547652b82fep+0")
LN_2_HIGH = float.fromhex("0x1.62e42feep-1")
LN_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
SQRT_2 = float.fromhex("0x1.6a09e667f3bcdp+0")
TWO_OVER_ROOT_PI = float.fromhex("0x1.20dd750429b6dp+0")

LEAST = 2.0**-60
"""The smallest positive argument of `log` and `reciprocal`, by magnitude."""

MOST_ANGLE = 2.0**20
"""Arguments of `sin` and `cos` are kept to this magnitude."""

TWO_OVER_PI = float.fromhex("0x1.45f306dc9c883p-1")
HALF_PI_HIGH = float.fromhex("0x1.921fb544p+0")
HALF_PI_LOW = float.fromhex("0x1.0b4611a626331p-34")

TAN_EIGHTH = float.fromhex("0x1.a827999fcef34p-2")
QUARTER_PI = float.fromhex("0x1.921fb54442d18p-1")
HALF_PI = float.fromhex("0x1.921fb54442d18p+0")

EXP_TERMS, ATANH_TERMS, ERF_TERMS, TURN_TERMS, ATAN_TERMS = 13, 17, 112, 9, 21


def exp(x: Reals) -> Reals:
    """`e^x`: a power of two times Taylor's series of what is left."""
    x = np.clip(x, -MOST, MOST)
    power = np.rint(x * LOG2_E)
    rest = (x - power * LN_2_HIGH) - power * LN_2_LOW
    total = np.ones_like(x)
    for term in range(EXP_TERMS, 0, -1):
        total = 1.0 + (rest * total) / float(term)
    return np.asarray(np.ldexp(total, power.astype(np.int32)))


def sigmoid(x: Reals) -> Reals:
    """`1 / (1 + e^-x)`."""
    decay = exp(-np.abs(x))
    return np.asarray(np.where(x < 0.0, decay, 1.0) / (1.0 + decay))


def tanh(x: Reals) -> Reals:
    """The hyperbolic tangent."""
    decay = exp(-2.0 * np.abs(x))
    value = (1.0 - decay) / (1.0 + decay)
    return np.where(x < 0.0, -value, value)


def softplus(x: Reals) -> Reals:
    """`log(1 + e^x)`, as `max(x, 0) + 2 atanh(s / (2 + s))` with `s = e^-|x|`."""
    decay = exp(-np.abs(x))
    return np.asarray(np.where(x < 0.0, 0.0, x) + _twice_atanh(decay / (2.0 + decay)))


def _twice_atanh(x: Reals) -> Reals:
    """Twice the inverse of the hyperbolic tangent near 0, by Taylor's series."""
    square = x * x
    total = np.full_like(x, 1.0 / float(2 * ATANH_TERMS + 1))
    for term in range(ATANH_TERMS - 1, -1, -1):
        total = total * square + 1.0 / float(2 * term + 1)
    return 2.0 * x * total


def erf(x: Reals) -> Reals:
    """The error function, by a series of positive terms:
    `2 x / sqrt(pi) e^(-x^2) sum_n (2 x^2)^n / (1 3 .. (2 n + 1))`."""
    magnitude = np.minimum(np.abs(x), 6.0)
    square = magnitude * magnitude
    twice_square = 2.0 * square
    total = np.ones_like(x)
    for term in range(ERF_TERMS, 0, -1):
        total = 1.0 + (twice_square * total) / float(2 * term + 1)
    value = np.minimum(TWO_OVER_ROOT_PI * magnitude * exp(-square) * total, 1.0)
    return np.where(x < 0.0, -value, value)


def log(x: Reals) -> Reals:
    """`log(x)`: the exponent's, and `2 atanh((m - 1) / (m + 1))` of a mantissa near 1."""
    half, power = np.frexp(np.maximum(x, LEAST))
    mantissa, power = 2.0 * half, power.astype(np.float64) - 1.0
    exceeds_root = mantissa > SQRT_2
    mantissa, power = (
        np.where(exceeds_root, 0.5 * mantissa, mantissa),
        np.where(exceeds_root, power + 1.0, power),
    )
    mantissa_log = _twice_atanh((mantissa - 1.0) / (mantissa + 1.0))
    return np.asarray(power * LN_2_HIGH + (mantissa_log + power * LN_2_LOW))


def reciprocal(x: Reals) -> Reals:
    """`1 / x`, where a smaller `x` than `LEAST` by magnitude counts as that."""
    return np.asarray(1.0 / np.where(x < 0.0, np.minimum(x, -LEAST), np.maximum(x, LEAST)))


def sin(x: Reals) -> Reals:
    """The sine of an angle."""
    return _sine_of_quarters(x, 0.0)


def cos(x: Reals) -> Reals:
    """The cosine: the sine a quarter of a turn further."""
    return _sine_of_quarters(x, 1.0)


def _sine_of_quarters(x: Reals, quarters: float) -> Reals:
    """The sine so many quarters of a turn further, by Taylor's series of what is beyond the nearest
    quarter."""
    x = np.clip(x, -MOST_ANGLE, MOST_ANGLE)
    nearest = np.rint(x * TWO_OVER_PI)
    rest = (x - nearest * HALF_PI_HIGH) - nearest * HALF_PI_LOW
    square = rest * rest
    sine, cosine = np.ones_like(x), np.ones_like(x)
    for term in range(TURN_TERMS, 0, -1):
        sine = 1.0 - (square * sine) / float(2 * term * (2 * term + 1))
        cosine = 1.0 - (square * cosine) / float((2 * term - 1) * 2 * term)
    quadrant = nearest + quarters
    quadrant = quadrant - 4.0 * np.floor(quadrant * 0.25)
    value = np.where((quadrant == 1.0) | (quadrant == 3.0), cosine, rest * sine)
    return np.where(quadrant >= 2.0, -value, value)


def atan(x: Reals) -> Reals:
    """The angle whose tangent is `x`: Taylor's series up to `tan(pi / 8)`; beyond, `pi / 4` more
    than that of `(x - 1) / (x + 1)`, and above 1 what that of `1 / x` lacks to `pi / 2`."""
    magnitude = np.abs(x)
    reduced = np.where(magnitude > 1.0, 1.0 / np.maximum(magnitude, 1.0), magnitude)
    is_shifted = reduced > TAN_EIGHTH
    rest = np.where(is_shifted, (reduced - 1.0) / (reduced + 1.0), reduced)
    square = rest * rest
    total = np.full_like(x, 1.0 / float(2 * ATAN_TERMS + 1))
    for term in range(ATAN_TERMS - 1, -1, -1):
        total = 1.0 / float(2 * term + 1) - square * total
    angle = rest * total + np.where(is_shifted, QUARTER_PI, 0.0)
    angle = np.where(magnitude > 1.0, HALF_PI - angle, angle)
    return np.where(x < 0.0, -angle, angle)


def relu(x: Reals) -> Reals:
    """`max(x, 0)`."""
    return np.maximum(x, 0.0)


def sqrt(x: Reals) -> Reals:
    """The square root, and 0 of what is negative."""
    return np.sqrt(np.maximum(x, 0.0))
