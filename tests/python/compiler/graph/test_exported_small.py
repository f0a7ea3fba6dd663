"""Small networks as PyTorch's exporters and Keras through tf2onnx write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import Array, expected, samples

from privet.compiler.compile import compile
from privet.compiler.executor import execute

FOLDER = Path(__file__).parent / "exported_small"
NAMES = sorted(path.stem for path in FOLDER.glob("*.onnx"))


def given(made: onnx.ModelProto, seed: int) -> dict[str, Array]:
    """Random inputs; whole numbers that all tables have."""
    found = samples(made, seed=seed)
    for entry in made.graph.input:
        if entry.type.tensor_type.elem_type == onnx.TensorProto.INT64:
            shape = found[entry.name].shape
            found[entry.name] = np.random.default_rng(seed).integers(0, 7, shape)
    return found


def test_the_files_are_there() -> None:
    assert len(NAMES) == 10


@pytest.mark.parametrize("name", NAMES)
def test_a_network_is_near_the_reference(name: str) -> None:
    made = onnx.load(FOLDER / f"{name}.onnx")
    rows = [given(made, seed) for seed in range(12)]
    compiled = compile(made, smooth="piecewise", calibration=rows[:8])
    found, wanted = [], []
    for row in rows[8:]:
        (output,) = execute(compiled.program, compiled.weights, row).outputs.values()
        found.append(np.asarray(output))
        wanted.append(expected(made, row)[0].reshape(found[-1].shape))
    assert np.abs(np.array(found) - np.array(wanted)).max() <= 6e-3 * np.ptp(np.array(wanted))
