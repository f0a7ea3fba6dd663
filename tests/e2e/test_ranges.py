"""Inputs within the public bound that no sample foresaw: wrong answers, and programs without.

Small models on tables are given rings that hold whatever inputs within the bound bring about; what
is beyond the bound, the client refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from skl2onnx import to_onnx
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC
from tests.combinations import combinations
from tests.python.compiler.graph.networks import in_reals, victim

import privet
from privet.compiler.compile import Compiled, compile
from privet.compiler.executor import execute
from privet.compiler.executor.codec import as_tensor, encode_input
from privet.compiler.executor.samples import fill
from privet.errors import InputError, OverflowRisk
from privet.runtime import Client

X = np.full((1, 784), 6.0)
"""The outside review's input: within the bound of the program, and beyond its rings."""


@pytest.mark.parametrize("truncation", ["one-bit", "exact"])
def test_a_sound_program_is_right_on_an_input_that_nobody_measured(
    truncation: str, session: Callable[..., Client]
) -> None:
    bits = compile(victim()).ranges().bits_needed
    assert bits is not None
    result = session(compile(victim(), bits=bits, sound=True), truncation=truncation).infer([X])
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


_RANDOM = np.random.default_rng(0)
ROWS = np.asarray(_RANDOM.standard_normal((200, 5)), np.float32)
TWO = (ROWS[:, 0] + ROWS[:, 1] > 0).astype(np.int64)
KNOWN, FRESH = 150, 30
SMALL: Mapping[str, Any] = {"max_iter": 200, "random_state": 0}
MODELS: Mapping[str, Any] = {
    "linear": LogisticRegression(),
    "trees": RandomForestClassifier(5, max_depth=4, random_state=0),
    "kernel": SVC(),
    "network": MLPClassifier((8, 8), **SMALL),
    "smooth network": MLPClassifier((8, 8), activation="tanh", **SMALL),
}
FARTHER = (1, 2, 10, 1000)


def build(name: str, **options: Any) -> Compiled:
    proto = to_onnx(MODELS[name].fit(ROWS[:KNOWN], TWO[:KNOWN]), ROWS[:1])
    samples = [row[None] for row in ROWS[:KNOWN]]
    return compile(proto, calibration=samples, smooth="piecewise", **options)


def within(compiled: Compiled) -> list[np.ndarray[Any, Any]]:
    """Fresh rows, and the same so many times farther from 0, as far as a client sends them."""
    rows = []
    for row in np.concatenate([times * ROWS[KNOWN : KNOWN + FRESH] for times in FARTHER]):
        inputs, _ = fill(compiled.program, [row[None]])
        try:
            encode_input(compiled.program, inputs)
        except InputError:
            continue
        rows.append(row[None])
    return rows


def wraps(compiled: Compiled, row: np.ndarray[Any, Any]) -> bool:
    """Whether a value leaves its ring."""
    try:
        execute(compiled.program, compiled.weights, [row])
    except OverflowRisk:
        return True
    return False


@pytest.mark.parametrize(("name", "suite"), combinations(list(MODELS), ["gmw", "fss"]))
def test_rows_far_from_all_samples_are_right_or_refused(name: str, suite: str) -> None:
    rows = np.concatenate(within(build(name)))
    # Not even what fits the bound is near the samples, and trees alone take everything.
    assert len(rows) > 2 * FRESH
    assert (len(rows) == FRESH * len(FARTHER)) == (name == "trees")
    run = privet.run(build(name, batch=len(rows)), [rows], suite=suite)
    assert run.max_fixed_point_error == 0
    chances, reference = (
        as_tensor(outputs["output_probability"]) for outputs in (run.outputs, run.reference)
    )
    assert np.abs(chances - reference).max() < 5e-3 * np.ptp(reference)


def test_a_ring_for_what_was_measured_and_no_more_does_not_hold_such_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The control: without the bits to spare, the same rows leave a ring."""
    monkeypatch.setattr("privet.compiler.executor.widths.MOST_SPARE", 0)
    compiled = build("kernel", bits=37, scale=12)
    assert any(wraps(compiled, row) for row in within(compiled))


def test_small_models_with_samples_are_sound() -> None:
    assert all(build(name).ranges().is_sound for name in MODELS)
