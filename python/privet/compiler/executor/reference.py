"""What a model gives in the clear: ONNX Runtime, the outer reference of every private run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from privet.compiler.graph.front import Front, Given
from privet.compiler.graph.input_shapes import WHOLE
from privet.compiler.program import Program
from privet.compiler.program.public import ProgramInput
from privet.errors import InputError, InvalidModel

Array = npt.NDArray[np.generic]


_DTYPES: dict[str, npt.DTypeLike] = {
    "tensor(double)": np.float64,
    "tensor(bool)": np.bool_,
    "tensor(string)": np.object_,
    **{f"tensor({kind})": np.dtype(kind) for kind in ("int8", "int16", "int32", "int64")},
    **{f"tensor({kind})": np.dtype(kind) for kind in ("uint8", "uint16", "uint32", "uint64")},
}
"""What ONNX Runtime takes; float32 for all else."""


def as_declared(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Inputs for a trial run as the model declares them: whole numbers, or true and false."""
    kinds = {entry.name: entry.type.tensor_type.elem_type for entry in model.graph.input}
    arrays = {}
    for name, array in inputs.items():
        arrays[name] = array
        if kinds.get(name) == onnx.TensorProto.BOOL:
            arrays[name] = (array.astype(np.float64) > 0).astype(np.float64)
        elif kinds.get(name) in WHOLE:
            arrays[name] = np.rint(array.astype(np.float64))
    return arrays


def trial_inputs(
    model: onnx.ModelProto, program: Program, input_range: tuple[float, float] | None
) -> dict[str, Array]:
    """Inputs for a trial run of a model: random ones, of which whole numbers are zeros and ones, as
    masks and flags are, where no range says otherwise."""
    inputs = random_inputs(program, input_range)
    if input_range is None and program.front is None:
        kinds = {entry.name: entry.type.tensor_type.elem_type for entry in model.graph.input}
        for entry in program.inputs:
            if kinds[entry.name] in WHOLE and not entry.one_hot:
                reals = inputs[entry.name].astype(np.float64)
                inputs[entry.name] = (reals > 0).astype(np.float64)
    return as_declared(model, inputs)


def run_plaintext(
    model: onnx.ModelProto, samples: Sequence[Mapping[str, Array]], outputs: Sequence[str]
) -> dict[str, Array]:
    """ONNX Runtime's outputs by name, on the CPU; several samples' are joined along axis 0. Raises
    as `run_each`."""
    runs = run_each(model, samples, outputs)
    arrays = (
        runs[0] if len(runs) == 1 else [np.concatenate(parts) for parts in zip(*runs, strict=True)]
    )
    return dict(zip(outputs, arrays, strict=True))


def run_each(
    model: onnx.ModelProto, samples: Sequence[Mapping[str, Array]], outputs: Sequence[str]
) -> list[list[Array]]:
    """ONNX Runtime's outputs for each sample, on the CPU. Raises `InvalidModel` if ONNX Runtime
    does not take the model; `InputError` if an input of whole numbers has others."""
    for precise in (True, False):  # ONNX Runtime 1.31 fails if precise on some quantised weights
        try:
            return _run(model, samples, outputs, precise=precise)
        except InputError:
            raise
        except Exception as error:  # ONNX Runtime's errors have no class of their own
            failure = error
    raise InvalidModel(
        f"ONNX Runtime refuses the model, so there is nothing to compare with: {failure} "
        "Export it again; a pipeline of scikit-learn needs float32 inputs"
    ) from failure


def _run(
    model: onnx.ModelProto,
    samples: Sequence[Mapping[str, Array]],
    outputs: Sequence[str],
    *,
    precise: bool,
) -> list[list[Array]]:
    """The outputs for each sample. Unless `precise`, sums of int8 products may saturate at 16 bits
    on processors that lack VNNI."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", str(int(precise)))
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    types = {entry.name: entry.type for entry in session.get_inputs()}
    runs = []
    for inputs in samples:
        feeds = {name: _as_type(name, array, types[name]) for name, array in inputs.items()}
        runs.append([_as_array(result) for result in session.run(list(outputs), feeds)])
    return runs


def _as_type(name: str, array: Array, onnx_type: str) -> Array:
    tensor = array.astype(_DTYPES.get(onnx_type, np.float32))
    if tensor.dtype.kind in "iu" and (tensor != array).any():
        raise InputError(
            f"input {name} takes whole numbers ({tensor.dtype}), and others were given"
        )
    return tensor


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
    """Inputs for a trial run: uniform within `input_range`, else standard normal within bounds.

    For a front, texts and whole numbers are those that its steps know; others are zeros and ones,
    or an empty text.
    """
    rng = np.random.default_rng(seed)
    if program.front is not None:
        front = program.front
        return {entry.name: draw_given(front, entry, rng, input_range) for entry in program.given}

    def draw(entry: ProgramInput) -> Array:
        shape, magnitude = program.values[entry.value].shape, entry.magnitude
        if entry.one_hot:
            return rng.integers(0, shape[-1], shape[:-1])
        if input_range is not None:
            return rng.uniform(*input_range, shape)
        return np.clip(rng.standard_normal(shape), -magnitude, magnitude)

    return {entry.name: draw(entry) for entry in program.inputs}


def draw_given(
    front: Front,
    entry: Given,
    rng: np.random.Generator,
    input_range: tuple[float, float] | None,
) -> Array:
    """A random array for what a user gives to a front."""
    if entry.kind == "real":
        sample = rng.standard_normal(entry.shape)
        return sample if input_range is None else rng.uniform(*input_range, entry.shape)
    is_text = entry.kind == "text"
    examples = [
        example for example in front.examples(entry.name) if isinstance(example, str) == is_text
    ]
    return rng.choice(np.array(examples or ([""] if is_text else [0, 1])), entry.shape)
