"""Functions of single elements in the program file: steps, and constants as binary fractions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from privet.compiler.graph.function import SMOOTH, Function, Step

MANTISSA_BITS = 53
MOST_STEPS, MOST_EXPONENT = 256, 400
"""Limits of the file format."""

_ARITY = {"add": 2, "sub": 2, "mul": 2}
_CONSTANT = ("scale", "shift")


def encode_steps(function: Function) -> list[dict[str, Any]]:
    steps = []
    for step in function.steps:
        fields: dict[str, Any] = {"name": step.name, "operands": list(step.operands)}
        if step.name in _CONSTANT:
            fields["constant"] = _fraction(step.constant)
        steps.append(fields)
    return steps


def decode_steps(steps: Iterable[Mapping[str, Any]]) -> Function:
    """The function that `encode_steps` wrote.

    Raises `KeyError`, `TypeError` or `ValueError` on steps that are none.
    """
    decoded = tuple(_step(index, step) for index, step in enumerate(steps))
    if len(decoded) > MOST_STEPS:
        raise ValueError(f"a function of {len(decoded)} steps")
    return Function(decoded)


def _step(index: int, document: Mapping[str, Any]) -> Step:
    name, operands = document["name"], tuple(document["operands"])
    if name not in (*_ARITY, *_CONSTANT, *SMOOTH):
        raise ValueError(f"there is no step {name!r}")
    is_valid = all(isinstance(operand, int) and 0 <= operand <= index for operand in operands)
    if len(operands) != _ARITY.get(name, 1) or not is_valid:
        raise ValueError(f"step {index} reads {list(operands)}")
    constant = document.get("constant")
    if (constant is not None) != (name in _CONSTANT):
        raise ValueError(f"step {index} has the constant {constant}")
    if constant is None:
        return Step(name, operands)
    mantissa, exponent = constant["mantissa"], constant["exponent"]
    if not isinstance(mantissa, int) or not isinstance(exponent, int):
        raise TypeError(f"step {index} has the constant {constant}")
    if abs(mantissa) > 1 << MANTISSA_BITS or abs(exponent) > MOST_EXPONENT:
        raise ValueError(f"step {index} has the constant {constant}")
    return Step(name, operands, math.ldexp(float(mantissa), exponent))


def _fraction(constant: float) -> dict[str, int]:
    """`mantissa * 2^exponent`, with an odd mantissa."""
    numerator, denominator = constant.as_integer_ratio()
    exponent = 1 - denominator.bit_length()
    while numerator and not numerator & 1:
        numerator, exponent = numerator >> 1, exponent + 1
    if abs(exponent) > MOST_EXPONENT:
        raise ValueError(f"an activation has the constant {constant}")
    return {"mantissa": numerator, "exponent": exponent if numerator else 0}
