"""Parameter scaling (PP-Stream, Section IV-A): how many decimals a model's parameters need.

Parameters are rounded to `f` decimals, from none to six, until the accuracy on calibration samples
differs by less than a threshold from that of the model as it is; the scaling factor is `10^f`.
Privet's weights are binary fractions, so a factor becomes the least number of bits that holds it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, numpy_helper

from privet.compiler.executor.reference import run_plaintext
from privet.errors import Misuse

Array = npt.NDArray[Any]

MOST_DECIMALS = 6
THRESHOLD = 1e-4
"""The paper's 0.01 %."""


@dataclass(frozen=True)
class ParameterScaling:
    """Accuracies by decimals, from 0 up to what was chosen, and of the model itself."""

    accuracies: tuple[float, ...]
    original: float

    @property
    def decimals(self) -> int:
        """The `f` of the factor `10^f`."""
        return len(self.accuracies) - 1

    @property
    def factor(self) -> int:
        return int(10**self.decimals)

    @property
    def bits(self) -> int:
        """Fractional bits for weights that hold as much."""
        return math.ceil(math.log2(self.factor)) if self.factor > 1 else 0


def choose(
    model: onnx.ModelProto,
    samples: Sequence[Mapping[str, Array]],
    labels: Array | None = None,
    *,
    threshold: float = THRESHOLD,
) -> ParameterScaling:
    """The scaling of a model by its accuracy on `samples` (each with an array for each input).

    Without `labels`, accuracy is how often a rounded model agrees with the model itself.

    Raises `Misuse` if there are no samples, or as many labels as samples are not given.
    """
    if not samples or (labels is not None and len(labels) != len(samples)):
        raise Misuse("parameter scaling needs samples, and a label for each or none at all")
    answers = predict(model, samples)
    truth = answers if labels is None else np.asarray(labels)
    original = accuracy(answers, truth)
    accuracies: list[float] = []
    for decimals in range(MOST_DECIMALS + 1):
        accuracies.append(accuracy(predict(rounded(model, decimals), samples), truth))
        if abs(accuracies[-1] - original) < threshold:
            break
    return ParameterScaling(tuple(accuracies), original)


def rounded(model: onnx.ModelProto, decimals: int) -> onnx.ModelProto:
    """The model with each parameter rounded to so many decimals."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in copy.graph.initializer:
        if tensor.data_type in (TensorProto.FLOAT, TensorProto.DOUBLE):
            values = np.round(numpy_helper.to_array(tensor), decimals)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    return copy


def predict(model: onnx.ModelProto, samples: Sequence[Mapping[str, Array]]) -> Array:
    """The label of each sample: the largest of the first output."""
    output = model.graph.output[0].name
    answers = run_plaintext(model, samples, [output])[output]
    return np.asarray(np.argmax(answers, axis=-1)).ravel()


def accuracy(labels: Array, truth: Array) -> float:
    """The fraction that is right."""
    return float(np.mean(labels == truth))
