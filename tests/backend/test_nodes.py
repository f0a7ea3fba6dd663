"""The `onnx` package's cases of single operators whose weights are inputs, made constants here."""

from __future__ import annotations

import importlib

import numpy as np
import onnx
import pytest
from onnx.backend.test.case import node
from onnx.backend.test.case.test_case import TestCase
from tests.backend.cases import BITS, SCALE, compare, fixed_point

from privet.compiler.compile import compile


def cases(*operators: str) -> list[TestCase]:
    """The cases that the modules of these operators define."""
    for operator in operators:
        importlib.import_module(f"{node.__name__}.{operator}")
    return sorted(node._NodeTestCases, key=lambda case: case.name)


@pytest.mark.parametrize("case", cases("gru", "lstm", "rnn"), ids=lambda case: case.name)
def test_recurrent_nets(case: TestCase) -> None:
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    ((inputs, outputs),) = case.data_sets or []
    arrays = {e.name: np.asarray(a) for e, a in zip(model.graph.input, inputs, strict=True)}
    for name, array in list(arrays.items())[1:]:
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    sample = {model.graph.input[0].name: arrays[model.graph.input[0].name]}
    compiled = compile(model, bits=BITS, scale=SCALE, calibration=[sample], smooth="piecewise")
    result = fixed_point(compiled, sample)
    for output, expected in zip(model.graph.output, outputs, strict=True):
        assert compare(result[output.name], np.asarray(expected), SCALE) == ""
