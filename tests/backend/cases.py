"""The `onnx` package's own backend cases, run through the compiler and an executor.

A case is a model with inputs and the outputs expected of it. It is calibrated on its own inputs,
compiled at a scale fine enough that rounding stays small, and compared to the expected outputs.
Any suite can run the same cases: it gives its own `Executor`.

Data that no fixed point holds is drawn again: some cases have what stood in memory (1e200), some
take roots of negative numbers. An input that is a shape is stored in the model, as the refusal
says.
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
from onnx.reference import ReferenceEvaluator

from privet.compiler import executor
from privet.compiler.compile import Compiled, compile
from privet.compiler.graph.input_shapes import FLOATS
from privet.errors import ModelError, OverflowRisk, UnsupportedModel

KINDS = ("simple", "pytorch-operator", "pytorch-converted")
BITS = 50
SCALE = 14
EXPECTED = {
    "simple": {"passed": 13, "failed": 0, "unsupported": 10},
    "pytorch-operator": {"passed": 35, "failed": 0, "unsupported": 0},
    "pytorch-converted": {"passed": 82, "failed": 0, "unsupported": 0},
}
"""How cases end in the executor."""
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
    """A case's verdict; `reason` says why it failed or is not supported, and `changed` what of it
    is not as the package has it."""

    kind: str
    name: str
    verdict: Verdict
    reason: str = ""
    changed: str = ""


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
    model, inputs, references, changes = _prepared(case)

    def verdict(outcome: Verdict, reason: str = "") -> Result:
        return Result(case.kind, case.name, outcome, reason, changes)

    try:
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
    outputs = execute(compiled, inputs)
    for output, expected in zip(model.graph.output, references, strict=True):
        problem = compare(outputs[output.name], expected, scale)
        if problem:
            return verdict(Verdict.FAILED, f"{output.name}: {problem}")
    return verdict(Verdict.PASSED)


def _prepared(case: Case) -> tuple[onnx.ModelProto, dict[str, Array], list[Array], str]:
    """The model with inputs, expected outputs, and what was changed of them."""
    model = case.model
    initialised = {tensor.name for tensor in model.graph.initializer}
    entries = [entry for entry in model.graph.input if entry.name not in initialised]
    inputs = _inputs(case, entries)
    changes = []
    shapes = [name for node in model.graph.node for name in node.input[1:] if _is_shape(node)]
    for name in [name for name in inputs if name in shapes]:
        model.graph.initializer.append(onnx.numpy_helper.from_array(inputs.pop(name), name))
        changes.append("the shape is stored in the model")
    try:
        references = [_array(case, f"output_{index}") for index in range(len(model.graph.output))]
    except TypeError:
        return model, inputs, [], ""
    if not all(map(_is_moderate, (*inputs.values(), *references))):
        generator = np.random.default_rng(0)
        inputs = {
            name: np.asarray(generator.uniform(0.1, 2.0, array.shape), array.dtype)
            for name, array in inputs.items()
        }
        references = [np.asarray(array) for array in ReferenceEvaluator(model).run(None, inputs)]
        changes.append("its data is drawn again")
    return model, inputs, references, ", ".join(changes)


def _is_shape(node: onnx.NodeProto) -> bool:
    return node.op_type == "Expand"


def _is_moderate(array: Array) -> bool:
    """Whether numbers are finite and neither huge nor all next to zero."""
    if array.dtype.kind != "f":
        return True
    largest = float(np.abs(array).max(initial=0.0))
    return bool(np.isfinite(array).all()) and (largest == 0.0 or 1e-9 < largest < 1e9)


def gives_floats(case: Case) -> bool:
    """Whether each output is a tensor of floats."""
    outputs = [output.type.tensor_type for output in case.model.graph.output]
    return all(output.elem_type in FLOATS for output in outputs)


def table(results: Iterable[Result]) -> str:
    """The cases that do not pass, or not as they are, with the reason."""
    rows = ["| Case | Reason |", "|---|---|"]
    for result in results:
        if result.verdict is not Verdict.PASSED:
            rows.append(f"| `{result.name}` | {result.reason.replace('|', '/')} |")
        elif result.changed:
            rows.append(f"| `{result.name}` | runs; {result.changed} |")
    return "\n".join(rows)


def compare(actual: Array, expected: Array, scale: int) -> str:
    """What is wrong with `actual`, or nothing."""
    if actual.shape != expected.shape:
        return f"shape {actual.shape}, not {expected.shape}"
    allowed = TOLERANCE_UNITS * 2.0**-scale * max(1.0, float(np.abs(expected).max(initial=0.0)))
    error = float(np.abs(actual - expected).max(initial=0.0))
    return "" if error <= allowed else f"off by {error:.3g}, more than {allowed:.3g}"


def counts(results: Iterable[Result]) -> dict[str, dict[str, int]]:
    """How many cases of each kind ended how."""
    tally: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for result in results:
        tally[result.kind][result.verdict.value] += 1
    return {kind: {v.value: tally[kind][v.value] for v in Verdict} for kind in KINDS}


def _inputs(case: Case, entries: Iterable[onnx.ValueInfoProto]) -> dict[str, Array]:
    """The inputs by name; none if one of them is no tensor, as compiling then says why."""
    if any(not entry.type.HasField("tensor_type") for entry in entries):
        return {}
    arrays = {e.name: _array(case, f"input_{index}") for index, e in enumerate(entries)}
    return {n: a for n, a in arrays.items() if a.dtype.kind in "fiub"}


def _array(case: Case, name: str) -> Array:
    return onnx.numpy_helper.to_array(onnx.load_tensor(case.folder / DATA_SET / f"{name}.pb"))
