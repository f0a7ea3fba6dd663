"""Decision trees between two processes, in each suite that computes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.python.compiler.graph.ensembles import random_trees

import privet
from privet.errors import UnsupportedModel

SUITES = {
    "gmw": privet.Gmw(),
    "one-bit": privet.Gmw(truncation="one-bit", rounds="log"),
    "prime": privet.Gmw(field="prime"),
    "online": privet.Gmw(linear="online"),
    "dealt": privet.Gmw(correlations="dealer"),
    "fss": privet.Fss(),
}
ROWS = 3
EXPORTED = Path(__file__).parents[1] / "python/compiler/graph/exported_trees"


@pytest.mark.parametrize(
    "name",
    [
        *("one-bit", "prime", "dealt", "fss"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("gmw", "online")),
    ],
)
def test_trees_come_out_exactly(name: str) -> None:
    # Complete trees in an odd number, and trees of any shape that compare for equality.
    models = [
        random_trees(5, 3, 4, targets=2, rows=1),
        random_trees(3, 6, 4, complete=False, modes=["EQ", "LT", "GT"], rows=1),
    ]
    for model, kind in zip(models, ("leaves", "step"), strict=True):
        compiled = privet.compile(model, batch=ROWS)
        assert kind in [operation.op for operation in compiled.program.operations]
        x = np.random.default_rng(3).normal(size=(ROWS, 4)).astype(np.float32)
        run = privet.run(compiled, {"x": x}, suite=SUITES[name])
        assert run.max_fixed_point_error <= (1 if name == "one-bit" else 0)
        assert run.max_abs_error < 1e-5


def test_a_classifier_gives_its_labels_and_probabilities() -> None:
    x = np.load(EXPORTED / "rows.npz")["x_two"][:ROWS]
    compiled = privet.compile(EXPORTED / "forest_two.onnx", batch=ROWS)
    run = privet.run(compiled, {"X": x})
    labels, probabilities = run.outputs.values()
    assert np.array_equal(labels, run.reference["label"])
    assert np.allclose(probabilities, run.reference["probabilities"], rtol=0, atol=1e-5)


@pytest.mark.parametrize("suite", ["one-bit", "fss"])
def test_missing_values_are_private_inputs(suite: str) -> None:
    x = np.array(np.load(EXPORTED / "rows.npz")["x_number"][:ROWS])
    x[np.random.default_rng(8).random(x.shape) < 0.3] = np.nan
    compiled = privet.compile(EXPORTED / "lightgbm_number.onnx", batch=ROWS)
    assert "concat" in [operation.op for operation in compiled.program.operations]
    (entry,) = compiled.program.inputs
    run = privet.run(compiled, {entry.name: x}, suite=SUITES[suite])
    assert run.max_fixed_point_error <= (1 if suite == "one-bit" else 0)
    assert run.max_abs_error < 1e-4 * float(np.abs(next(iter(run.reference.values()))).max())


def test_other_suites_refuse_trees_by_name() -> None:
    model = random_trees(2, 2, 3)
    for suite in ("ckks", "stream"):
        with pytest.raises(UnsupportedModel, match="leaves"):
            privet.run(model, suite=suite)
    with pytest.raises(UnsupportedModel, match="by comparisons, which --security malicious"):
        privet.run(model, suite=privet.Fss(security="malicious"))
