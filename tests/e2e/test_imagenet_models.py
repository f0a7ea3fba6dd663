"""Deep networks between two processes: near the fixed-point reference, and within their memory.

Random weights, so this says nothing of accuracy. All but ResNet-20 are slow.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.simulated_errors import simulated_bound

import privet
from privet import suites, zoo
from privet.compiler.compile import Compiled, compile
from privet.compiler.executor import execute
from privet.compiler.executor.reference import random_inputs
from privet.compiler.graph.operations import Arithmetic, Array

GB = 1000.0

MODELS = [
    pytest.param("resnet20", 1 * GB, 5, id="resnet20"),
    pytest.param("squeezenet", 4 * GB, 2, id="squeezenet", marks=pytest.mark.slow),
    pytest.param("alexnet", 10 * GB, 2, id="alexnet", marks=pytest.mark.slow),
    pytest.param("resnet50", 10 * GB, 1, id="resnet50", marks=pytest.mark.slow),
    pytest.param("vgg16", 10 * GB, 1, id="vgg16", marks=pytest.mark.slow),
]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("name", "most_mb", "runs"), MODELS)
@pytest.mark.parametrize("suite", ["gmw", "fss"])
def test_a_private_run_is_as_near_as_its_errors_allow(
    suite: str, name: str, most_mb: float, runs: int, tmp_path: Path, figures: list[str]
) -> None:
    compiled = compile(zoo.build(name, tmp_path), bits=37, scale=12)
    inputs = random_inputs(compiled.program)
    bound = simulated_bound(compiled.program, compiled.weights, inputs, runs=runs)
    result = privet.run(
        compiled,
        inputs,
        suite=suites.from_options(suite, {"truncation": "one-bit"}),
        timeout=1200.0,
    )
    peaks = {party: use.peak_mb for party, use in result.memory.items()}
    figures.append(
        f"{name}, {suite}: {result.max_fixed_point_error} units from the reference, bound {bound}; "
        f"offline {result.offline.seconds:.1f} s, online {result.online.seconds:.2f} s; "
        f"peak memory client {peaks['client']:.0f} MB, server {peaks['server']:.0f} MB"
    )
    assert 0 < result.max_fixed_point_error <= bound
    assert all(peak < most_mb for peak in peaks.values())
    for use in result.memory.values():
        assert use.forecast_mb is not None
        assert use.peak_mb <= use.forecast_mb


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["resnet20", pytest.param("squeezenet", marks=pytest.mark.slow)])
def test_exact_results_are_the_reference_to_the_last_bit(name: str, tmp_path: Path) -> None:
    compiled = compile(zoo.build(name, tmp_path))
    result = privet.run(compiled, timeout=1200.0)
    assert result.max_fixed_point_error == 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["resnet20", "squeezenet", "resnet50"])
def test_results_in_a_prime_field_are_the_reference(
    name: str, tmp_path: Path, figures: list[str]
) -> None:
    compiled = compile(zoo.build(name, tmp_path))
    result = privet.run(compiled, suite=privet.Gmw(field="prime"), timeout=1200.0)
    figures.append(
        f"{name}, prime field: offline {result.offline.seconds:.1f} s, "
        f"online {result.online.seconds:.2f} s"
    )
    assert result.max_fixed_point_error == 0
    for use in result.memory.values():
        assert use.forecast_mb is not None
        assert use.peak_mb <= use.forecast_mb


@pytest.fixture(scope="module")
def resnet20(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compile(zoo.build("resnet20", tmp_path_factory.mktemp("zoo")), bits=37, scale=12)


class Biased(Arithmetic):
    """A truncation that gives back four units where one is lost."""

    def truncate(self, x: Array, bits: int) -> Array:
        return (x >> bits) + 4


class OneBitShort(Arithmetic):
    """A truncation that drops a bit less in one place of a thousand."""

    def truncate(self, x: Array, bits: int) -> Array:
        rng = np.random.default_rng()
        wrong = rng.random(x.shape) < 1e-3
        return np.where(wrong, x >> (bits - 1), x >> bits)


@pytest.mark.parametrize("broken", [Biased, OneBitShort])
def test_the_bound_catches_a_wrong_truncation(broken: type[Arithmetic], resnet20: Compiled) -> None:
    program, weights = resnet20.program, resnet20.weights
    inputs = random_inputs(program)
    bound = simulated_bound(program, weights, inputs, runs=5)
    exact = execute(program, weights, inputs).integers[0]
    wrong = execute(program, weights, inputs, broken()).integers[0]
    assert np.abs(wrong - exact).max() > bound
