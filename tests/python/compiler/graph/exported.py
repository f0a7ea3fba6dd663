"""Networks as PyTorch's exporters wrote them, with weights drawn here."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx

FOLDER = Path(__file__).parent / "exported_networks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.onnx"))
"""A network and the exporter: `script` or `dynamo`."""


def exported(name: str, *, seed: int = 0) -> onnx.ModelProto:
    """The network, with weights that keep the size of values from layer to layer."""
    proto = onnx.load(FOLDER / f"{name}.onnx")
    variances = {node.input[4] for node in proto.graph.node if node.op_type == "BatchNormalization"}
    factors = {node.input[1] for node in proto.graph.node if node.op_type == "BatchNormalization"}
    rng = np.random.default_rng(seed)
    for tensor in proto.graph.initializer:
        count = math.prod(tensor.dims)
        if tensor.data_type != onnx.TensorProto.FLOAT or tensor.raw_data or tensor.float_data:
            continue
        shape = tuple(tensor.dims)
        if tensor.name in variances | factors:
            values = rng.uniform(0.5, 1.5, shape)
        elif len(shape) < 2:
            values = 0.1 * rng.standard_normal(shape)
        else:
            fan_in = count // shape[0] if len(shape) > 2 else max(shape)
            values = math.sqrt(2.0 / fan_in) * rng.standard_normal(shape)
        tensor.raw_data = values.astype("<f4").tobytes()
    return proto
