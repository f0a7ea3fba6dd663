"""Suite `gmw` in its modes: what each promises, what is refused, and that none takes another's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from tests.python.compiler.graph.single import model, node
from typer.testing import CliRunner

import privet
from privet import suites, zoo
from privet.cli import app
from privet.compiler.compile import Compiled, compile
from privet.compiler.executor import execute
from privet.compiler.executor.reference import random_inputs
from privet.errors import MaterialError, Misuse, UnsupportedModel
from privet.runtime import Client
from privet.suites.costs import NOTHING

Sample = npt.NDArray[np.float32]

MODELS = Path(__file__).parents[2] / "zoo" / "models"


@pytest.fixture(scope="module")
def digits() -> Compiled:
    return compile(MODELS / "digits-cnn.onnx", input_range=(0, 1))


@pytest.fixture(scope="module")
def held_out() -> list[Sample]:
    with np.load(MODELS / "digits-cnn.npz") as data:
        return [sample[None] for sample in data["inputs"][:40]]


@pytest.mark.parametrize(
    "suite", [privet.Gmw(), privet.Fss(), privet.Fss(security="malicious"), privet.Stream()]
)
def test_an_operator_made_of_others_is_exact_in_every_suite(suite: privet.Suite) -> None:
    leaky = model([node("LeakyRelu", ["x"], ["y"], alpha=0.2)], {"x": (2, 9)}, ["y"])
    assert privet.run(leaky, suite=suite).max_fixed_point_error == 0


def test_every_mode_that_a_model_allows_is_run(tmp_path: Path) -> None:
    words = ["run", str(zoo.build("m1", tmp_path)), "--modes", "all", "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    rows = {row["mode"]: row for row in json.loads(result.stdout)}
    assert list(rows) == ["exact", "one-bit", "prime", "kept-weights", "one-shot"]
    assert rows["exact"]["max_fixed_point_error"] == 0 < rows["one-bit"]["max_fixed_point_error"]
    weaker = {mode: row["weaknesses"] for mode, row in rows.items()}
    assert weaker == {name: [name] if name in ("one-bit", "kept-weights") else [] for name in rows}
    assert rows["prime"]["max_fixed_point_error"] == 0
    assert rows["prime"]["field"] == "prime"
    assert all(rows[mode]["argmax_agrees"] for mode in ("exact", "one-bit", "prime"))
    bytes_sent = {mode: row["online"]["bytes_client"] for mode, row in rows.items()}
    assert bytes_sent["one-bit"] < bytes_sent["exact"] < bytes_sent["one-shot"]
    traffic = {mode: row["offline"]["bytes_server"] for mode, row in rows.items()}
    assert traffic["one-shot"] < traffic["exact"]
    alone = {"extension", "trust", "calibration", "link", "max_abs_error", "encrypts", "layers"}
    assert all(alone <= set(row) for row in rows.values())
    assert rows["kept-weights"]["encrypts"] == "weights"
    words[1] = str(MODELS / "breast-mlp.onnx")
    table = CliRunner().invoke(app, words[:-1])
    assert "bit for bit" in table.stdout
    assert "kept-weights: before that, once:" in table.stdout
    assert "Not calibrated:" in table.stdout
    assert "Not run" not in table.stdout


def test_a_mode_that_a_model_does_not_allow_says_why(tmp_path: Path) -> None:
    """Products of private tensors need triples, which are made ahead and in a ring."""
    x = np.ones((1, 4, 4), np.float32)
    onnx.save(model([node("MatMul", ["x", "x"], ["y"])], {"x": x.shape}, ["y"]), tmp_path / "m")
    words = ["run", str(tmp_path / "m"), "--modes"]
    result = CliRunner().invoke(app, [*words, "exact,prime,one-shot", "--json"])
    assert result.exit_code == 0, result.output
    exact, *refused = json.loads(result.stdout)
    assert exact["agrees"]
    assert [row["mode"] for row in refused] == ["prime", "one-shot"]
    assert all("triples are made ahead" in row["refused"] for row in refused)
    shown = CliRunner().invoke(app, [*words, "exact,prime"])
    assert "Not run: prime: " in shown.stdout
    assert "one-shot" not in shown.stdout
    alone = CliRunner().invoke(app, [*words, "prime"])
    assert isinstance(alone.exception, UnsupportedModel)
    without = CliRunner().invoke(app, [*words, "all", "--suite", "stream"])
    assert "suite stream has no modes to compare" in str(without.exception)


def test_options_that_contradict_each_other_are_refused(digits: Compiled) -> None:
    inputs = random_inputs(digits.program, (0, 1))
    with pytest.raises(Misuse, match="truncation is an option of suite gmw and fss, not of ckks"):
        suites.from_options("ckks", {"truncation": "one-bit"})
    with pytest.raises(Misuse, match="in a prime field truncations are exact"):
        privet.Gmw(field="prime", truncation="one-bit")
    wide = compile(MODELS / "digits-cnn.onnx", input_range=(0, 1), bits=49)
    with pytest.raises(Misuse, match="48 bits, not 49"):
        privet.Gmw(rounds="log").native(wide.program.to_public_bytes())
    with pytest.raises(Misuse, match="24 to 42 bits, not 49"):
        privet.run(wide, inputs, suite=privet.Gmw(field="prime"))
    with pytest.raises(Misuse, match="possible are ring, prime"):
        privet.Gmw(field="binary")
    with pytest.raises(Misuse, match="choice of suite gmw without a dealer"):
        privet.Gmw(field="prime", correlations="dealer")
    with pytest.raises(Misuse, match="possible are parties, dealer"):
        privet.Gmw(correlations="prime")


def test_exact_predictions_are_the_reference_for_held_out_samples(
    digits: Compiled, held_out: list[Sample], session: Callable[..., Client]
) -> None:
    client = session(digits, "log")
    assert client.label == "gmw log exact"
    for sample in held_out:
        (exact,) = execute(digits.program, digits.weights, [sample]).integers
        assert np.array_equal(client.infer([sample]).integers[0], exact)


@pytest.mark.parametrize("depth", ["linear", "log", "blocks"])
def test_predictions_in_a_prime_field_are_the_reference(
    digits: Compiled, held_out: list[Sample], session: Callable[..., Client], depth: str
) -> None:
    client = session(digits, depth, field="prime")
    assert client.label == f"gmw {depth} exact prime" + ("" if depth == "log" else " tables")
    for sample in held_out[:4]:
        (exact,) = execute(digits.program, digits.weights, [sample]).integers
        assert np.array_equal(client.infer([sample]).integers[0], exact)


@pytest.mark.slow
def test_predictions_in_a_prime_field_are_the_reference_for_held_out_samples(
    digits: Compiled, held_out: list[Sample], session: Callable[..., Client]
) -> None:
    client = session(digits, "log", field="prime")
    for sample in held_out:
        (exact,) = execute(digits.program, digits.weights, [sample]).integers
        assert np.array_equal(client.infer([sample]).integers[0], exact)


def test_inspect_shows_layers_in_slots(tmp_path: Path) -> None:
    words = ["inspect", str(zoo.build("m1", tmp_path)), "--field", "prime", "--ciphertexts"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "rotations; N = 8192" in result.stdout.replace("\n", " ")
    assert "p = 172631277569" in result.stdout.replace("\n", " ")


def test_modes_do_not_share_material(digits: Compiled, session: Callable[..., Client]) -> None:
    labels = set()
    modes: list[dict[str, Any]] = [
        {},
        {"truncation": "one-bit"},
        {"field": "prime"},
        {"linear": "online"},
        {"linear": "online", "truncation": "one-bit"},
    ]
    for mode in modes:
        client = session(digits, "log", **mode)
        assert client.ready() == []
        client.prepare()
        assert len(client.ready()) == 1
        labels.add(client.label)
    assert len(labels) == len(modes)


def test_linear_layers_online_run_with_material_and_without(
    digits: Compiled, held_out: list[Sample], session: Callable[..., Client]
) -> None:
    client = session(digits, "log", linear="online", keep_base_ots=False)
    assert client.label == "gmw log exact one-shot"
    forecast, sample = client.forecast, held_out[0]
    assert forecast.refill is not None
    (expected,) = execute(digits.program, digits.weights, [sample]).integers
    result = client.infer([sample])
    assert (result.material, result.offline) == ("", NOTHING)
    assert result.dry is not None
    assert result.dry.action == "refilled"
    assert int(np.argmax(result.integers[0])) == int(np.argmax(expected))
    online, refill = result.online, forecast.refill
    assert online.bytes_client == forecast.online_bytes_client + refill.bytes_client
    assert online.bytes_server == forecast.online_bytes_server + refill.bytes_server
    assert online.rounds == forecast.online_rounds + refill.rounds
    operators = [layer.operator for layer in result.layers]
    assert operators.count("refill") == refill.chunks
    client.prepare()
    with_material = client.infer([sample])
    assert with_material.dry is None
    assert with_material.material
    # The key went before, once for the session.
    assert with_material.online.bytes_client < forecast.online_bytes_client
    assert with_material.online.bytes_server == forecast.online_bytes_server
    assert np.abs(with_material.integers[0] - expected).max() < 2 ** (digits.program.scale_bits + 4)


def test_exact_predictions_online_are_the_reference(
    digits: Compiled, held_out: list[Sample], session: Callable[..., Client]
) -> None:
    client = session(digits, "log", linear="online")
    for sample in held_out[:20]:
        (exact,) = execute(digits.program, digits.weights, [sample]).integers
        assert np.array_equal(client.infer([sample]).integers[0], exact)


@pytest.mark.parametrize("weights", ["prepared", "none"])
def test_a_run_without_preparation_in_every_form_of_the_weights(
    digits: Compiled, held_out: list[Sample], weights: str
) -> None:
    result = privet.run(
        digits, [held_out[0]], suite=privet.Gmw(linear="online", unprepared=True, weights=weights)
    )
    assert result.max_fixed_point_error == 0
    assert (result.offline.bytes_client, result.offline.rounds) == (0, 0)
    assert result.config.facts()["linear"] == "online"


def test_inspect_tells_what_an_unprepared_inference_takes_more(tmp_path: Path) -> None:
    words = ["inspect", str(zoo.build("m1", tmp_path)), "--linear", "online"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "more online" in result.stdout
    assert "chunks" in result.stdout


def test_linear_layers_online_are_refused_where_they_cannot_be(
    digits: Compiled, session: Callable[..., Client]
) -> None:
    inputs = random_inputs(digits.program, (0, 1))
    with pytest.raises(Misuse, match="linear is an option of suite gmw, not of fss"):
        suites.from_options("fss", {"linear": "online"})
    with pytest.raises(Misuse, match="without a dealer"):
        privet.Gmw(linear="online", correlations="dealer")
    with pytest.raises(Misuse, match="in the ring"):
        privet.Gmw(linear="online", field="prime")
    with pytest.raises(Misuse, match="possible are offline, online"):
        privet.Gmw(linear="later")
    with pytest.raises(Misuse, match="must run online"):
        privet.Gmw(unprepared=True)
    with pytest.raises(MaterialError, match="one-shot"):
        session(digits, "log", linear="online", when_dry="refuse").infer(inputs)
