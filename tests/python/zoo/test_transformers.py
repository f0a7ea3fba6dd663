"""Transformers of the zoo beside ONNX Runtime, in the plaintext executor and in suites."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from tests.python.compiler.graph.single import expected, samples

import privet
from privet import zoo
from privet.compiler.compile import compile
from privet.compiler.executor import execute
from privet.zoo.bert import classifier, encoder
from privet.zoo.gpt import gpt, llama, llama_block, small
from privet.zoo.graph import GraphBuilder
from privet.zoo.initial import draw
from privet.zoo.vit import tiny, vit
from privet.zoo.writer import write

SMALL = {
    "encoder": encoder("encoder", layers=1, heads=2, width=16, tokens=6),
    "classifier": classifier(
        "classifier", layers=1, heads=2, width=16, tokens=6, vocabulary=20, classes=3
    ),
    "vit": vit("vit", image=(3, 8, 8), patch=4, layers=1, heads=2, width=16, classes=5),
    "gpt": gpt("gpt", layers=1, heads=2, width=16, tokens=6, vocabulary=20),
    "llama": llama("llama", layers=1, heads=4, groups=2, width=16, hidden=24, tokens=6),
}
LARGE = {"vit-tiny": tiny, "gpt2": small, "llama-block": llama_block}
CASES = [
    pytest.param(
        name,
        suite,
        marks=[] if (name, suite.name) in {("gpt", "gmw"), ("llama", "fss")} else pytest.mark.slow,
    )
    for name in SMALL
    for suite in (privet.Fss(), privet.Gmw(correlations="dealer"))
]


def written(graph: GraphBuilder, folder: Path) -> onnx.ModelProto:
    """The graph with random weights as a model."""
    path = folder / f"{graph.name}.onnx"
    write(graph, path, lambda weight: draw(graph.name, weight))
    return onnx.load(path)


def drawn(graph: GraphBuilder, seed: int) -> dict[str, np.ndarray]:
    """A random input: pixels, hidden states or tokens."""
    generator = np.random.default_rng(seed)
    if graph.ids:
        table = next(weight for weight in graph.weights if weight.name == "tokens.weight")
        return {"input": generator.integers(0, table.shape[0], graph.input.shape)}
    sampler = generator.uniform if graph.input.moment < 1 else generator.standard_normal
    return {"input": sampler(size=graph.input.shape).astype(np.float32)}


@pytest.mark.parametrize(("name", "suite"), CASES)
def test_small_ones_run_privately_as_in_the_executor(
    name: str, suite: privet.Suite, tmp_path: Path
) -> None:
    graph = SMALL[name]
    model, inputs = written(graph, tmp_path), drawn(graph, 0)
    onnx.checker.check_model(model)
    calibration = [drawn(graph, seed) for seed in range(8)]
    result = privet.run(model, inputs, suite=suite, calibration=calibration, bits=37, scale=12)
    assert result.max_fixed_point_error == 0
    (output,) = result.outputs.values()
    (reference,) = expected(model, inputs)
    assert np.abs(output - reference).max() < 0.02 * max(1.0, reference.std())


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name == "gpt2" else []) for name in LARGE],
)
def test_large_ones_keep_their_activations_near_one(name: str, tmp_path: Path) -> None:
    path = zoo.build(name, tmp_path)
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (output,) = session.run(None, drawn(LARGE[name](), 0))
    assert 0.1 < output.std() < 8


@pytest.mark.parametrize("name", ["bert-tiny"])
def test_hidden_states_are_those_of_onnx_runtime(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    model = onnx.load(zoo.build(name, tmp_path))
    compiled = compile(model, bits=40, calibration=[samples(model)], smooth="piecewise")
    inputs = samples(model, seed=1)
    (output,) = execute(compiled.program, compiled.weights, inputs).outputs.values()
    (reference,) = expected(model, inputs)
    off = np.abs(output - reference)
    record_property("largest and mean", (float(off.max()), float(off.mean())))
    assert off.mean() < 0.005 * reference.std()
    assert off.max() < 0.05 * reference.std()
