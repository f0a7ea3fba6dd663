"""torchvision's classifiers, as both of PyTorch's exporters write them: near ONNX Runtime, and in
suite `gmw` the executor's integers."""

from __future__ import annotations

import numpy as np
import pytest
from tests.python.compiler.graph.exported import NAMES, exported
from tests.python.compiler.graph.single import expected, samples

import privet
from privet.compiler.compile import compile
from privet.compiler.executor import execute
from privet.errors import UnsupportedModel

LARGE = ("googlenet", "inception")
QUICK = [name for name in NAMES if name.endswith("_script") and not name.startswith(LARGE)]
"""One exporter's; `make test-all` runs all of both."""
KEPT = 6e-3
"""Largest error of an output, relative to its spread; widths are chosen to keep 4e-3 on samples."""


def marked(quick: list[str]) -> list[object]:
    slow = pytest.mark.slow
    return [name if name in quick else pytest.param(name, marks=slow) for name in NAMES]


@pytest.mark.parametrize("name", marked(QUICK))
def test_a_classifier_is_near_the_reference(name: str) -> None:
    proto = exported(name)
    inputs = [samples(proto, seed=seed) for seed in range(2)]
    compiled = compile(proto, calibration=inputs, smooth="piecewise")
    outputs = execute(compiled.program, compiled.weights, inputs[0]).outputs
    for output, reference in zip(proto.graph.output, expected(proto, inputs[0]), strict=True):
        error = float(np.abs(outputs[output.name] - reference).max())
        assert error <= KEPT * float(np.ptp(reference))


@pytest.mark.parametrize("name", marked(["shufflenet_v2_script"]))
def test_a_classifier_in_gmw_is_the_executors(name: str) -> None:
    proto = exported(name)
    inputs = samples(proto)
    compiled = compile(proto, calibration=[inputs], smooth="piecewise")
    suite = privet.Gmw()
    try:
        suite.check_supports(compiled.program)
    except UnsupportedModel:
        # Squeeze and excitation multiplies two private tensors.
        suite = privet.Gmw(correlations="dealer")
    assert privet.run(compiled, inputs, suite=suite).max_fixed_point_error == 0
