"""Files that the exporters of PyTorch wrote (`exported_transformers/export.py`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import Array, expected

from privet.compiler.compile import compile
from privet.compiler.executor import execute

HERE = Path(__file__).parent / "exported_transformers"
QUICK = {
    *("attention-dynamo23", "bert-sdpa-legacy", "encoder-gelu-dynamo", "gpt2-sdpa-dynamo"),
    *("llama-eager-dynamo", "masked-legacy", "vit-dynamo23"),
}
NAMES = [
    pytest.param(path.stem, marks=[] if path.stem in QUICK else pytest.mark.slow)
    for path in sorted(HERE.glob("*.onnx"))
]


def drawn(model: onnx.ModelProto, generator: np.random.Generator) -> dict[str, Array]:
    """Tokens, or standard normal numbers."""
    (entry,) = model.graph.input
    shape = [dim.dim_value for dim in entry.type.tensor_type.shape.dim]
    if entry.type.tensor_type.elem_type == onnx.TensorProto.INT64:
        return {entry.name: generator.integers(0, 20, shape)}
    return {entry.name: generator.standard_normal(shape).astype(np.float32)}


@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_onnx_runtime(name: str) -> None:
    model = onnx.load(HERE / f"{name}.onnx")
    generator = np.random.default_rng(0)
    calibration = [drawn(model, generator) for _ in range(4)]
    inputs = drawn(model, generator)
    compiled = compile(model, bits=40, scale=12, calibration=calibration, smooth="piecewise")
    (output,) = execute(compiled.program, compiled.weights, inputs).outputs.values()
    (reference, *_) = expected(model, inputs)
    assert np.abs(output - reference).max() < 0.02
