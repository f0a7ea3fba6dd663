"""Runs a zoo model in ONNX Runtime and shows every value on the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest

Array = npt.NDArray[np.float32]
Trace = Callable[[Path, Array], dict[str, Array]]


@pytest.fixture(scope="session")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """A function: a model's file and its input to every node's output, by value name."""

    def run(path: Path, sample: Array) -> dict[str, Array]:
        model = onnx.load(path)
        outputs = {output.name for output in model.graph.output}
        for node in model.graph.node:
            for name in set(node.output) - outputs:
                model.graph.output.append(onnx.ValueInfoProto(name=name))
        exposed = tmp_path_factory.mktemp("trace") / "exposed.onnx"
        onnx.save(model, exposed)
        del model
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(exposed, options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        values: list[Any] = session.run(names, {"input": sample})
        exposed.unlink()
        return dict(zip(names, values, strict=True))

    return run
