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


def given(proto: onnx.ModelProto, seed: int) -> dict[str, Array]:
    """Random inputs; whole numbers that all tables have."""
    arrays = samples(proto, seed=seed)
    for entry in proto.graph.input:
        if entry.type.tensor_type.elem_type == onnx.TensorProto.INT64:
            shape = arrays[entry.name].shape
            arrays[entry.name] = np.random.default_rng(seed).integers(0, 7, shape)
    return arrays


def test_the_files_are_there() -> None:
    assert len(NAMES) == 10


@pytest.mark.parametrize("name", NAMES)
def test_a_network_is_near_the_reference(name: str) -> None:
    proto = onnx.load(FOLDER / f"{name}.onnx")
    rows = [given(proto, seed) for seed in range(12)]
    compiled = compile(proto, smooth="piecewise", calibration=rows[:8])
    outputs, references = [], []
    for row in rows[8:]:
        (output,) = execute(compiled.program, compiled.weights, row).outputs.values()
        outputs.append(np.asarray(output))
        references.append(expected(proto, row)[0].reshape(outputs[-1].shape))
    assert np.abs(np.array(outputs) - np.array(references)).max() <= 6e-3 * np.ptp(
        np.array(references)
    )
