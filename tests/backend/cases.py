"""The `onnx` package's own backend cases, run through the compiler and an executor.

A case is a model with inputs and the outputs expected of it. It is calibrated on its own inputs,
compiled at a scale fine enough that rounding stays small, and compared to the expected outputs.
Any suite can run the same cases: it gives its own `Executor`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from privet.compiler import executor
from privet.compiler.compile import Compiled, compile
from privet.errors import ModelError, OverflowRisk, UnsupportedModel

KINDS = ("simple", "pytorch-operator", "pytorch-converted")
BITS = 50
SCALE = 14
DATA_SET = "test_data_set_0"
TOLERANCE_UNITS = 32
"""How far an output may lie from the expected one, in units of `2^-scale` times the largest (or 1).

The cases are one or two layers deep. A layer's outputs sum up to a few hundred products whose
weights are off by half a unit of `2^-scale` at most, at random: 32 units are many standard
deviations, and any mistake in a shape, an attribute or an order is far more.
"""

Array = npt.NDArray[Any]
Executor = Callable[[Compiled, Mapping[str, Array]], Mapping[str, Array]]
"""Runs a compiled model on real inputs and returns its real outputs, both by name."""


class Verdict(Enum):
    """How a case ended."""

    PASSED = "passed"
    FAILED = "failed"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True)
class Result:
    """A case's verdict; `reason` says why it failed or is not supported."""

    kind: str
    name: str
    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True)
class Case:
    """A model with one set of inputs and expected outputs."""

    kind: str
    name: str
    folder: Path

    @property
    def model(self) -> onnx.ModelProto:
        """The model of the case."""
        return onnx.load(self.folder / "model.onnx")


def cases(*kinds: str) -> Iterator[Case]:
    """The cases of these kinds that come with the `onnx` package, by name."""
    root = Path(os.path.dirname(onnx.__file__)) / "backend" / "test" / "data"
    for kind in kinds or KINDS:
        for folder in sorted((root / kind).iterdir()):
            yield Case(kind, folder.name.removeprefix("test_"), folder)


def fixed_point(compiled: Compiled, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
    """The plaintext fixed-point executor."""
    return executor.execute(compiled.program, compiled.weights, inputs).outputs


def run(
    case: Case, execute: Executor = fixed_point, *, bits: int = BITS, scale: int = SCALE
) -> Result:
    """Compiles a case, runs it and compares."""

    def verdict(found: Verdict, reason: str = "") -> Result:
        return Result(case.kind, case.name, found, reason)

    model = case.model
    initialised = {tensor.name for tensor in model.graph.initializer}
    entries = [entry for entry in model.graph.input if entry.name not in initialised]
    try:
        inputs = _inputs(case, entries)
        compiled = compile(
            model,
            bits=bits,
            scale=scale,
            calibration=[inputs] if inputs else None,
            smooth="piecewise",
            input_shapes={name: array.shape for name, array in inputs.items() if array.size},
        )
    except UnsupportedModel as error:
        return verdict(Verdict.UNSUPPORTED, "; ".join(map(str, error.problems)))
    except OverflowRisk as error:
        return verdict(Verdict.UNSUPPORTED, str(error))
    except ModelError as error:
        return verdict(Verdict.FAILED, str(error))
    found = execute(compiled, inputs)
    for index, output in enumerate(model.graph.output):
        problem = compare(found[output.name], _array(case, f"output_{index}"), scale)
        if problem:
            return verdict(Verdict.FAILED, f"{output.name}: {problem}")
    return verdict(Verdict.PASSED)


def compare(found: Array, expected: Array, scale: int) -> str:
    """What is wrong with `found`, or nothing."""
    if found.shape != expected.shape:
        return f"shape {found.shape}, not {expected.shape}"
    allowed = TOLERANCE_UNITS * 2.0**-scale * max(1.0, float(np.abs(expected).max(initial=0.0)))
    error = float(np.abs(found - expected).max(initial=0.0))
    return "" if error <= allowed else f"off by {error:.3g}, more than {allowed:.3g}"


def counts(results: Iterable[Result]) -> dict[str, dict[str, int]]:
    """How many cases of each kind ended how."""
    found: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for result in results:
        found[result.kind][result.verdict.value] += 1
    return {kind: {v.value: found[kind][v.value] for v in Verdict} for kind in KINDS}


def _inputs(case: Case, entries: Iterable[onnx.ValueInfoProto]) -> dict[str, Array]:
    """The inputs by name; none if one of them is no tensor, as compiling then says why."""
    if any(not entry.type.HasField("tensor_type") for entry in entries):
        return {}
    arrays = {e.name: _array(case, f"input_{index}") for index, e in enumerate(entries)}
    return {n: a for n, a in arrays.items() if a.dtype.kind in "fiub"}


def _array(case: Case, name: str) -> Array:
    return onnx.numpy_helper.to_array(onnx.load_tensor(case.folder / DATA_SET / f"{name}.pb"))
