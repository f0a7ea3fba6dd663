"""Whether ReLUs that compare fewer bits leave a model's labels alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np

from privet import suites
from privet.compile import Compiled
from privet.errors import Misuse
from privet.executor.codec import Inputs
from privet.executor.fixed import Arithmetic, execute
from privet.executor.ranges import Calibration
from privet.executor.reference import random_inputs
from privet.executor.samples import fill
from privet.executor.simulate import PrivateArithmetic
from privet.graph.operations import Array

TRIED = 4
"""Random inputs to try labels on."""

RUNS = 3
"""Simulated runs of each sample, beside the worst case."""


def trial_samples(
    compiled: Compiled, input_range: tuple[float, float] | None = None
) -> list[dict[str, Array]]:
    """Random inputs, where nobody gave samples to try labels on."""
    return [random_inputs(compiled.program, input_range, seed) for seed in range(TRIED)]


class SmallestRelus(Arithmetic):
    """ReLUs that lose every value they can lose; `dropped` as in `PrivateArithmetic`."""

    def __init__(self, dropped: Mapping[int, int]) -> None:
        self._dropped = dropped

    def relu(self, x: Array, value: int) -> Array:
        """Zero for whatever has no bit among those compared."""
        return np.where(x >> self._dropped.get(value, 0) > 0, x, 0)


def dropped_bits(compiled: Compiled, relus: tuple[suites.ReluForecast, ...]) -> dict[int, int]:
    """The bits that each ReLU does not compare, by the id of its result."""
    operations = compiled.program.operations
    return {operations[relu.operation].output: relu.bits - relu.compared_bits for relu in relus}


def changed_label(
    compiled: Compiled, samples: Calibration, truncation: str, dropped: Mapping[int, int]
) -> int | None:
    """The first sample whose label such ReLUs can change; None if there is none.

    The label is the place of the first output's largest element, compared with that of the
    fixed-point executor: where each ReLU loses all it can, and in a few simulated runs.
    """
    how: Literal["one-bit", "exact"] = "exact" if truncation == "exact" else "one-bit"
    for index, sample in enumerate(samples):
        named, count = fill(compiled.program, _inputs(sample))
        expected = _labels(compiled, named, count, Arithmetic())
        tries: list[Arithmetic] = [SmallestRelus(dropped)]
        tries += [PrivateArithmetic(how, dropped=dropped) for _ in range(RUNS)]
        if any(_labels(compiled, named, count, each) != expected for each in tries):
            return index
    return None


def check_labels(
    compiled: Compiled, samples: Calibration, suite: str, truncation: str, relu_bits: int
) -> None:
    """Refuses ReLUs of `relu_bits` bits if they can change the label of a sample.

    # Errors
    `Misuse`, with the sample and what would do; as `privet.suites.plan`.
    """
    found = _changed(compiled, samples, suite, truncation, relu_bits)
    if found is None:
        return
    wide = next(_allowed(compiled, samples, suite, truncation, relu_bits + 1), None)
    advice = f"{wide} bits keep them all" if wide else "compare all bits"
    raise Misuse(
        f"a ReLU of {relu_bits} bits can change the label of sample {found + 1} "
        f"of {len(samples)}: {advice}"
    )


def fewest_bits(compiled: Compiled, samples: Calibration) -> int | None:
    """The fewest bits that ReLUs of suite `gmw` can compare without changing a label; None if none
    fewer than all will do."""
    return next(_allowed(compiled, samples, "gmw", "one-bit", 2), None)


def _allowed(
    compiled: Compiled, samples: Calibration, suite: str, truncation: str, least: int
) -> Iterator[int]:
    for bits in range(least, compiled.program.ring_bits):
        if not any(_dropped(compiled, suite, truncation, bits).values()):
            return
        if _changed(compiled, samples, suite, truncation, bits) is None:
            yield bits


def _changed(
    compiled: Compiled, samples: Calibration, suite: str, truncation: str, bits: int
) -> int | None:
    dropped = _dropped(compiled, suite, truncation, bits)
    return changed_label(compiled, samples, truncation, dropped)


def _dropped(compiled: Compiled, suite: str, truncation: str, bits: int) -> dict[int, int]:
    # Depth and source of correlations do not change what is compared.
    public, depth = compiled.program.to_public_bytes(), "linear" if suite == "gmw" else None
    planned = suites.plan(public, suite, depth, truncation, relu_bits=bits)
    return dropped_bits(compiled, suites.forecast(planned).relus)


def _inputs(sample: object) -> Inputs:
    return sample if isinstance(sample, Mapping) else [np.asarray(sample)]


def _labels(compiled: Compiled, inputs: Inputs, samples: int, arithmetic: Arithmetic) -> list[int]:
    integers = execute(compiled.program, compiled.weights, inputs, arithmetic).integers[0]
    each = np.reshape(integers, (compiled.program.batch, -1))[:samples]
    # An output that is itself an index is its own label.
    return [int(row[0]) if row.size == 1 else int(row.argmax()) for row in each]
