"""The simulation of a private run's errors: each as it is documented, and their sum as measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.simulated_errors import RESHARING_ERRORS, PrivateArithmetic, simulated_bound

import privet
from privet.compiler.compile import Compiled, compile
from privet.compiler.executor import execute
from privet.compiler.executor.reference import random_inputs

ONE_BIT = privet.Gmw(truncation="one-bit")

DIGITS = Path(__file__).parents[4] / "zoo" / "models" / "digits-cnn.onnx"


def test_a_truncation_rounds_at_random_without_a_bias() -> None:
    generator = np.random.default_rng(1)
    x = generator.integers(-(1 << 30), 1 << 30, size=200_000)
    values = PrivateArithmetic(rng=generator).truncate(x, 12)
    assert set(np.unique(values - (x >> 12))) == {0, 1}
    # Six standard deviations of a mean of so many errors below one unit.
    assert abs(float((values - x / 4096).mean())) < 6 * 0.41 / 200_000**0.5 + 2**-12


def test_an_exact_truncation_is_the_floor() -> None:
    x = np.arange(-100, 100)
    assert np.array_equal(PrivateArithmetic("exact").truncate(x, 3), x >> 3)


def test_resharing_errs_as_often_as_documented() -> None:
    generator = np.random.default_rng(2)
    errors = PrivateArithmetic(rng=generator).linear(np.zeros(100_000, dtype=np.int64))
    assert set(np.unique(errors)) == {-1, 0, 1}
    assert np.abs(errors).mean() == pytest.approx(RESHARING_ERRORS, rel=0.1)


@pytest.fixture(scope="module")
def digits() -> Compiled:
    return compile(DIGITS, input_range=(0.0, 1.0))


def test_private_runs_err_as_the_simulation_does(digits: Compiled) -> None:
    inputs = random_inputs(digits.program, (0.0, 1.0))
    exact = execute(digits.program, digits.weights, inputs).integers[0]
    simulated = [
        execute(digits.program, digits.weights, inputs, PrivateArithmetic()).integers[0] - exact
        for _ in range(200)
    ]
    spread = float(np.std(simulated))
    largest = [privet.run(digits, inputs, suite=ONE_BIT).max_fixed_point_error for _ in range(4)]
    of_simulated = [float(np.abs(errors).max()) for errors in simulated]
    # Four largest errors of ten outputs: between the extremes of two hundred such, with some room.
    assert min(of_simulated) / 2 < min(largest)
    assert max(largest) < 1.5 * max(of_simulated)
    assert 0.5 * spread < float(np.mean(largest)) < 4 * spread


def test_the_bound_holds_and_an_exact_run_errs_nowhere(digits: Compiled) -> None:
    inputs = random_inputs(digits.program, (0.0, 1.0))
    bound = simulated_bound(digits.program, digits.weights, inputs)
    noisy = privet.run(digits, inputs, suite=ONE_BIT)
    assert 0 < noisy.max_fixed_point_error <= bound
    reference = execute(digits.program, digits.weights, inputs).integers[0]
    simulated = execute(digits.program, digits.weights, inputs, PrivateArithmetic("exact"))
    assert np.array_equal(simulated.integers[0], reference)
    assert privet.run(digits, inputs).max_fixed_point_error == 0
