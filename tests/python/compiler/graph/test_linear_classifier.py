"""LinearClassifier with each post_transform, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from privet.compiler.compile import compile
from privet.compiler.executor import execute
from privet.compiler.executor.reference import run_plaintext
from privet.errors import UnsupportedModel

TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")


def classifier(rows: int, labels: int, transform: str, size: float = 1.0) -> onnx.ModelProto:
    rng = np.random.default_rng(rows)
    step = onnx.helper.make_node(
        *("LinearClassifier", ["x"], ["label", "scores"], "lc"),
        domain="ai.onnx.ml",
        classlabels_ints=list(range(labels)),
        coefficients=(size * rng.normal(size=4 * rows)).tolist(),
        intercepts=(0.5 + size * rng.normal(size=rows) / 5).tolist(),
        post_transform=transform,
    )
    entry = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [step],
        "g",
        [entry("x", 1, [8, 4])],
        [entry("label", 7, [8]), entry("scores", 1, [8, labels])],
    )
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 1)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(("rows", "labels"), [(3, 3), (2, 2), (1, 2)])
def test_scores_are_those_of_onnx_runtime(rows: int, labels: int, transform: str) -> None:
    # A quantile takes a score between 0 and 1.
    model = classifier(rows, labels, transform, 0.08 if transform == "PROBIT" else 1.0)
    if (rows, transform) == (1, "PROBIT"):
        with pytest.raises(UnsupportedModel, match="PROBIT"):
            compile(model)
        return
    x = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    reference = run_plaintext(model, [{"x": x}], ["label", "scores"])
    compiled = compile(model)
    outputs = execute(compiled.program, compiled.weights, [x]).outputs
    assert np.array_equal(outputs["label"], reference["label"])
    assert np.allclose(outputs["scores"], reference["scores"], rtol=0, atol=2e-3)
