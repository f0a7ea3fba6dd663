"""How far what a user gets lies from ONNX Runtime's outputs, on calibration inputs.

Errors of layers compare a program with the graph that it was made of. That the graph is the model,
only another runtime can tell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import onnx

from privet.compiler.executor.codec import as_tensor, with_sample_axis
from privet.compiler.executor.fixed import execute
from privet.compiler.executor.ranges import Sample, arrays_by_input
from privet.compiler.executor.reference import Array, as_declared, run_each
from privet.compiler.executor.samples import by_name, fill
from privet.compiler.executor.widths import LARGE, Errors, LayerError
from privet.compiler.program import Program, Weights

SAMPLES = 16
"""Most calibration inputs that are compared."""


def beside(
    source: onnx.ModelProto, program: Program, weights: Weights, samples: Sequence[Sample]
) -> tuple[LayerError, ...]:
    """The largest error of each output that is numbers; none of large models, of batches, of those
    with state, and of those that ONNX Runtime does not run."""
    elements = sum(math.prod(value.shape) for value in program.values)
    if program.batch > 1 or program.state or elements >= LARGE:
        return ()
    sample_inputs: list[Mapping[str, Array]] = []
    outputs: list[Mapping[str, Array]] = []
    count = min(SAMPLES, len(samples))
    for sample in (samples[index * len(samples) // count] for index in range(count)):
        named = arrays_by_input([entry.name for entry in program.given], sample)
        arrays = by_name(program, named)
        arrays_with_sample_axis = {
            entry.name: with_sample_axis(arrays[entry.name], entry.shape) for entry in program.given
        }
        inputs_by_name = as_declared(source, arrays_with_sample_axis)
        sample_inputs.append(inputs_by_name)
        outputs.append(execute(program, weights, fill(program, inputs_by_name)[0]).outputs)
    names = list(outputs[0])
    try:
        reference_outputs = run_each(source, sample_inputs, names)
    except Exception:  # ONNX Runtime's errors have no class of their own
        return ()
    errors_by_output: dict[str, Errors] = {}
    for output, reference_arrays in zip(outputs, reference_outputs, strict=True):
        for name, array in zip(names, reference_arrays, strict=True):
            reference = as_tensor(array)
            if reference.dtype.kind == "f" and np.isfinite(reference.astype(np.float64)).all():
                errors_by_output.setdefault(name, Errors()).add(
                    as_tensor(output[name]), reference.astype(np.float64)
                )
    return tuple(errors.layer(name, "output", 0) for name, errors in errors_by_output.items())
