"""Batches between real processes: exactness, rounds, padding, and what two hosts see."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from tests.e2e.test_commands import DIGITS, MODELS, PRIVET, SEVEN, privet
from tests.error_bound import error_bound
from tests.simulated_errors import simulated_bound

import privet as package
from privet import zoo
from privet.compiler.compile import Compiled, compile
from privet.compiler.executor import execute
from privet.errors import InputError
from privet.runtime import Client
from privet.suites import Fss, Gmw, Suite

DEALT = ["--correlations", "dealer", "--rounds", "log"]


@pytest.mark.parametrize(
    ("suite", "samples"), [(Gmw(), 3), (Gmw(correlations="dealer"), 16), (Fss(), 16)]
)
def test_a_batch_equals_its_samples(suite: Suite, samples: int) -> None:
    with np.load(MODELS / "digits-cnn.npz") as data:
        inputs, labels = data["inputs"][:samples], data["labels"][:samples]
    one, many = (compile(DIGITS, input_range=(0, 1), batch=batch) for batch in (1, samples))
    result = package.run(many, [inputs], suite=suite)
    single = package.run(one, [inputs[:1]], suite=suite)
    assert (result.batch, result.samples) == (samples, samples)
    assert result.argmax_agrees
    assert np.mean(result.outputs["logits"].argmax(axis=1) == labels) > 0.8
    bound = error_bound(one.program, one.weights)["logits"]
    assert bound is not None
    assert result.max_fixed_point_error <= bound
    exact = [execute(one.program, one.weights, [x[None]]).outputs["logits"] for x in inputs]
    assert largest_difference(result.outputs["logits"], np.concatenate(exact)) <= bound / 2**24
    assert 0 <= result.online.rounds - single.online.rounds <= more_rounds(one, suite)
    assert result.offline.rounds == single.offline.rounds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suite", "name", "samples"),
    [
        (Gmw(correlations="dealer"), "m1", 128),
        (Gmw(correlations="dealer"), "m2", 16),
        (Fss(), "m1", 128),
    ],
)
def test_large_batches(suite: Suite, name: str, samples: int, tmp_path: Path) -> None:
    path = zoo.build(name, tmp_path)
    compiled = compile(path, batch=samples)
    result = package.run(compiled, suite=suite)
    assert result.argmax_agrees
    single = compile(path)
    inputs = np.clip(np.random.default_rng(0).standard_normal(_shape(single)), -3, 3)
    bound = simulated_bound(single.program, single.weights, [inputs])
    assert result.max_fixed_point_error <= 2 * bound
    alone = package.run(single, suite=suite)
    assert 0 <= result.online.rounds - alone.online.rounds <= more_rounds(single, suite)


def more_rounds(model: Compiled, suite: Suite) -> int:
    """Rounds that a batch may take beyond those of a sample. Suite `fss` compares many values in a
    round more: one for each ReLU and each truncation, and for each of the two levels of maxima of a
    2 x 2 pool."""
    kinds = [operation.op for operation in model.program.operations]
    once = kinds.count("relu") + kinds.count("truncate")
    return once + 2 * kinds.count("max_pool2d") if suite == Fss() else 0


def test_fewer_samples_than_the_batch(session: Callable[..., Client]) -> None:
    with np.load(MODELS / "digits-cnn.npz") as data:
        inputs = data["inputs"][:5]
    client = session(compile(DIGITS, input_range=(0, 1), batch=4))
    full, part = client.infer([inputs[:4]]), client.infer([inputs[:3]])
    assert (full.samples, part.samples) == (4, 3)
    assert full.outputs["logits"].shape == (4, 10)
    assert part.outputs["logits"].shape == part.integers[0].shape == (3, 10)
    assert largest_difference(full.outputs["logits"][:3], part.outputs["logits"]) < 0.1
    for field in ("bytes_client", "bytes_server", "rounds"):
        assert getattr(full.online, field) == getattr(part.online, field)
    ready = client.prepare()
    with pytest.raises(InputError, match="5 samples given"):
        client.infer([inputs])
    assert client.ready() == ready


def test_run_shows_costs_of_the_batch_and_of_a_sample() -> None:
    words = ["run", DIGITS, *DEALT, "--batch", 4]
    images = [MODELS / f"digit-{digit}.png" for digit in (7, 3, 9)]
    for image in images:
        words += ["--input", image]
    result = privet(*words)
    assert [int(np.argmax(row)) for row in result["output"]] == [7, 3, 9]
    assert (result["batch"], result["samples"]) == (4, 3)
    cost = result["per_sample"]["online"]
    assert cost["bytes_client"] == result["online"]["bytes_client"] // 4
    assert privet("run", DIGITS, *DEALT, "--input", SEVEN)["per_sample"] is None
    text = subprocess.run([*PRIVET, *map(str, words)], capture_output=True, text=True, check=True)
    assert "Sample 3. Prediction: 9" in text.stdout
    assert "each of 4 samples" in text.stdout
    reply = privet("run", DIGITS, "--input", SEVEN, "--input", SEVEN, code=2)
    assert "--batch" in reply["error"]["message"]


def test_inspect_forecasts_a_batch() -> None:
    one, many = (privet("inspect", DIGITS, "--batch", batch) for batch in (1, 8))
    assert (one["batch"], many["batch"]) == (1, 8)
    assert many["forecast"]["online_rounds"] == one["forecast"]["online_rounds"]
    words = ["inspect", DIGITS, "--batch", "8"]
    text = subprocess.run([*PRIVET, *map(str, words)], capture_output=True, text=True, check=True)
    assert "A batch of 8 takes:" in text.stdout


def largest_difference(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    return float(np.abs(np.asarray(a, float) - np.asarray(b, float)).max())


def _shape(compiled: package.Compiled) -> tuple[int, ...]:
    return compiled.program.values[compiled.program.inputs[0].value].shape
