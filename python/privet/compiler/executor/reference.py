"""What a model gives in the clear: ONNX Runtime, the outer reference of every private run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from privet.compiler.program import Program

if TYPE_CHECKING:
    import onnx

Array = npt.NDArray[np.generic]


def run_plaintext(
    model: onnx.ModelProto, samples: Sequence[Mapping[str, Array]], outputs: Sequence[str]
) -> dict[str, Array]:
    """ONNX Runtime's outputs by name, on the CPU; several samples' are joined along axis 0."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    types = {entry.name: entry.type for entry in session.get_inputs()}
    double = {name for name, kind in types.items() if kind == "tensor(double)"}
    runs = []
    for inputs in samples:
        feeds = {
            name: array.astype(np.float64 if name in double else np.float32)
            for name, array in inputs.items()
        }
        runs.append([_as_array(result) for result in session.run(list(outputs), feeds)])
    joined = (
        runs[0] if len(runs) == 1 else [np.concatenate(each) for each in zip(*runs, strict=True)]
    )
    return dict(zip(outputs, joined, strict=True))


def _as_array(result: Any) -> Array:
    """A tensor, strings as numpy has them; maps in an array of one axis, as a head makes them."""
    if isinstance(result, list):
        maps = np.empty(len(result), dtype=object)
        maps[:] = result
        return maps
    array = np.asarray(result)
    return array.astype(np.str_) if array.dtype == object else array


def random_inputs(
    program: Program, input_range: tuple[float, float] | None = None, seed: int = 0
) -> dict[str, Array]:
    """Inputs for a trial run: uniform within `input_range`, else standard normal within bounds."""
    rng = np.random.default_rng(seed)

    def draw(shape: tuple[int, ...], magnitude: float) -> Array:
        if input_range is not None:
            return rng.uniform(*input_range, shape)
        return np.clip(rng.standard_normal(shape), -magnitude, magnitude)

    return {
        entry.name: draw(program.values[entry.value].shape, entry.magnitude)
        for entry in program.inputs
    }
