"""Inputs within the public bound that no sample foresaw: wrong answers, and programs without."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.python.compiler.graph.networks import in_reals, victim

from privet.compiler.compile import compile
from privet.runtime import Client

X = np.full((1, 784), 6.0)
"""The outside review's input: within the bound of the program, and beyond its rings."""


@pytest.mark.parametrize("truncation", ["one-bit", "exact"])
def test_a_sound_program_is_right_on_an_input_that_nobody_measured(
    truncation: str, session: Callable[..., Client]
) -> None:
    needed = compile(victim()).ranges().bits_needed
    assert needed is not None
    result = session(compile(victim(), bits=needed, sound=True), truncation=truncation).infer([X])
    outputs = result.outputs["y"].astype(np.float64)
    np.testing.assert_allclose(outputs, in_reals(victim(), X), rtol=1e-3, atol=2.0)
    assert result.calibration == "sound"


def test_without_a_proof_the_answer_is_wrong_and_marked(session: Callable[..., Client]) -> None:
    """The control: the same input to the program as it is compiled by default."""
    client = session(compile(victim()))
    assert np.abs(X).max() <= client.program.inputs[0].magnitude
    result = client.infer([X])
    assert np.abs(result.outputs["y"] - in_reals(victim(), X)).max() > 100
    assert result.calibration == "random"
