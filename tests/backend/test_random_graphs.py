"""Random networks: the executor beside ONNX Runtime, and every suite beside both."""

from __future__ import annotations

import numpy as np
import pytest
from tests.backend.random_graphs import random_graph

import privet
from privet import suites
from privet.compiler.compile import Compiled, compile
from privet.compiler.executor import execute
from privet.compiler.executor.reference import run_plaintext
from privet.errors import Misuse, UnsupportedModel

QUICK, MANY, AT_ONCE = range(8), 1000, 20
SEEDS = [
    (name, range(first, first + AT_ONCE))
    for name in suites.names()
    for first in range(0, 100, AT_ONCE)
]
ALLOWED = 0.02
"""How far an output may be from ONNX Runtime's, of the largest, or of 1 if that is more."""
REFUSED = ("one of its windows lies wholly on padding", "is larger than the padded axis")
"""What is refused of pools in ceil mode, of which ONNX Runtime computes something."""
UNPLANNED = ("flooding protects keys", "no secure ring up to degree", "its windows overlap")
"""What plans refuse: noise or depth that grows too much, and windows that would tell places."""


@pytest.mark.parametrize("seed", QUICK)
def test_the_executor_gives_what_onnx_runtime_gives(seed: int) -> None:
    check_executor(seed)


@pytest.mark.slow
def test_many_seeds() -> None:
    for seed in range(len(QUICK), MANY):
        check_executor(seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suite", "seeds"), SEEDS, ids=[f"{name}-{seeds[0]}-{seeds[-1]}" for name, seeds in SEEDS]
)
def test_every_suite_gives_what_the_executor_gives(
    suite: str, seeds: range, figures: list[str]
) -> None:
    instance = suites.suite_type(suite)()
    run_seeds = [seed for seed in seeds if check_suite(instance, seed)]
    figures.append(
        f"random graphs in suite {suite}: of {seeds} ran {run_seeds}, others are refused"
    )
    assert run_seeds


def check_executor(seed: int) -> None:
    model, rows = random_graph(seed)
    try:
        compiled = compile(model, smooth="piecewise", calibration=rows)
    except UnsupportedModel as refusal:
        if any(reason in str(refusal) for reason in REFUSED):
            return
        raise
    output = execute(compiled.program, compiled.weights, [rows[0]]).outputs["y"]
    expected = run_plaintext(model, [{"x": rows[0]}], ["y"])["y"]
    error = np.abs(output - expected).max()
    assert error <= ALLOWED * max(1.0, float(np.abs(expected).max())), f"seed {seed}: {error}"


def check_suite(suite: suites.Suite, seed: int) -> bool:
    """Whether a suite runs a seed; what it refuses it must refuse by name."""
    model, rows = random_graph(seed)
    try:
        compiled: Compiled = compile(model, **vars(suite.precision), calibration=rows)
        run = privet.run(compiled, [rows[0]], suite=suite)
    except UnsupportedModel:
        return False
    except Misuse as refusal:
        if any(reason in str(refusal) for reason in UNPLANNED):
            return False
        raise
    largest = max(1.0, float(np.abs(run.reference["y"]).max()))
    assert run.max_abs_error <= ALLOWED * largest, f"seed {seed}: {run.max_abs_error}"
    assert not suite.exact or run.max_fixed_point_error == 0, f"seed {seed}"
    return True
