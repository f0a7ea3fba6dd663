"""Smooth functions of one number, as short straight-line programs.

An activation such as `x * sigmoid(x)` is written by several ONNX nodes. As one function it can be
evaluated on whole arrays, and its degree is known if it is a polynomial.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import erf
from typing import Any

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[Any]

_erf = np.vectorize(erf, otypes=[np.float64])

LEAST = 2.0**-60
"""The smallest positive argument of a logarithm or a reciprocal, by magnitude."""

MOST, MOST_ANGLE = 300.0, 2.0**20
"""Arguments of an exponential function, and of a sine or cosine, are kept to these magnitudes."""

SMOOTH: dict[str, Callable[[Reals], Reals]] = {
    "atan": np.arctan,
    "cos": lambda x: np.asarray(np.cos(np.clip(x, -MOST_ANGLE, MOST_ANGLE))),
    "erf": lambda x: np.asarray(_erf(x)),
    "exp": lambda x: np.asarray(np.exp(np.minimum(x, MOST))),
    "log": lambda x: np.asarray(np.log(np.maximum(x, LEAST))),
    "reciprocal": lambda x: np.asarray(
        1.0 / np.where(x < 0.0, np.minimum(x, -LEAST), np.maximum(x, LEAST))
    ),
    "relu": lambda x: np.asarray(np.maximum(x, 0.0)),
    "sigmoid": lambda x: np.asarray(0.5 + 0.5 * np.tanh(0.5 * x)),
    "sin": lambda x: np.asarray(np.sin(np.clip(x, -MOST_ANGLE, MOST_ANGLE))),
    "softplus": lambda x: np.asarray(np.logaddexp(0.0, x)),
    "sqrt": lambda x: np.asarray(np.sqrt(np.maximum(x, 0.0))),
    "tanh": np.tanh,
}
"""Functions that are no polynomials, by name."""


@dataclass(frozen=True)
class Step:
    """One step on earlier results: `add`, `sub`, `mul`, `scale` (by `constant`), `shift` (likewise)
    or a name in `SMOOTH`. Operand 0 is the function's argument, `k + 1` the result of step `k`.
    """

    name: str
    operands: tuple[int, ...]
    constant: float = 0.0


@dataclass(frozen=True)
class Function:
    """A function of one number; its value is the last step's result, or the argument if none."""

    steps: tuple[Step, ...] = ()

    def __call__(self, x: Reals) -> Reals:
        """The values at `x`, element by element, in x's own precision."""
        results = [x]
        for step in self.steps:
            operands = [results[index] for index in step.operands]
            results.append(apply(step, operands, SMOOTH).astype(x.dtype, copy=False))
        return results[-1]

    @cached_property
    def degree(self) -> int | None:
        """The degree if this is a polynomial by its form, else None."""
        degrees: list[int | None] = [1]
        for step in self.steps:
            operand_degrees = [degrees[index] for index in step.operands]
            known_degrees = [degree for degree in operand_degrees if degree is not None]
            if step.name in SMOOTH or len(known_degrees) < len(operand_degrees):
                degrees.append(None)
            else:
                degrees.append(sum(known_degrees) if step.name == "mul" else max(known_degrees))
        return degrees[-1]

    def after(self, inner: Function) -> Function:
        """The function that maps x to this one's value at `inner(x)`."""
        offset = len(inner.steps)
        outer_steps = (
            replace(step, operands=tuple(index + offset for index in step.operands))
            for step in self.steps
        )
        return Function((*inner.steps, *outer_steps))


def chain(*names: str) -> Function:
    """Functions of `SMOOTH`, each of what the one before it gives."""
    return Function(tuple(Step(name, (index,)) for index, name in enumerate(names)))


def combine(name: str, *operands: Function, constant: float = 0.0) -> Function:
    """One step on the values of functions of the same argument; what they share is kept once."""
    steps = _StepList()
    results = tuple(steps.add(operand) for operand in operands)
    steps.append(Step(name, results, constant))
    return steps.function()


class _StepList:
    """Steps of several functions, each once."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._known: dict[Step, int] = {}

    def add(self, function: Function, argument: int = 0) -> int:
        """Takes in a function of the result at `argument`; where its own result is."""
        results = [argument]
        for step in function.steps:
            new_step = replace(step, operands=tuple(results[index] for index in step.operands))
            if new_step not in self._known:
                self._known[new_step] = self.append(new_step)
            results.append(self._known[new_step])
        return results[-1]

    def append(self, step: Step) -> int:
        self.steps.append(step)
        return len(self.steps)

    def function(self) -> Function:
        return Function(tuple(self.steps))


def apply(
    step: Step, operands: Sequence[Reals], primitives: Mapping[str, Callable[[Reals], Reals]]
) -> Reals:
    """A step's result, its named functions taken from `primitives`."""
    x = operands[0]
    match step.name:
        case "add":
            return np.asarray(x + operands[1])
        case "sub":
            return np.asarray(x - operands[1])
        case "mul":
            return np.asarray(x * operands[1])
        case "scale":
            return np.asarray(x * step.constant)
        case "shift":
            return np.asarray(x + step.constant)
        case _:
            return primitives[step.name](x)
