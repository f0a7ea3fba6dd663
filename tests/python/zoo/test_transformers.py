"""Transformers of the zoo in the plaintext executor, beside ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import expected, samples

from privet import zoo
from privet.compiler.compile import compile
from privet.compiler.executor import execute


@pytest.mark.parametrize("name", ["bert-tiny"])
def test_hidden_states_are_those_of_onnx_runtime(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    model = onnx.load(zoo.build(name, tmp_path))
    compiled = compile(model, bits=40, calibration=[samples(model)], smooth="piecewise")
    given = samples(model, seed=1)
    (found,) = execute(compiled.program, compiled.weights, given).outputs.values()
    (wanted,) = expected(model, given)
    off = np.abs(found - wanted)
    record_property("largest and mean", (float(off.max()), float(off.mean())))
    assert off.mean() < 0.005 * wanted.std()
    assert off.max() < 0.05 * wanted.std()
