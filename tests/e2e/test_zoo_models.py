"""Benchmark models with random weights, between two processes: exactness and costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privet
from privet import suites, zoo
from privet.compiler.compile import compile
from privet.suites import MaterialSuite


@pytest.mark.parametrize(
    ("name", "rounds"),
    [("m1", "linear"), ("m1", "log"), ("hinet", "log"), ("m2", "linear")]
    + [(name, None) for name in ("m1", "m2", "hinet")],
)
def test_private_outputs_match(name: str, rounds: str | None, tmp_path: Path) -> None:
    path = zoo.build(name, tmp_path)
    suite = privet.Gmw(rounds=rounds) if rounds else privet.Fss()
    result = privet.run(path, suite=suite)
    assert result.model == name
    assert result.argmax_agrees
    scale = float(np.abs(next(iter(result.reference.values()))).max())
    assert result.max_abs_error < 0.02 * scale
    assert (result.offline.bytes_server > 0) == (result.config.name == "gmw")
    assert result.online.rounds > 0
    assert {layer.phase for layer in result.layers} == {"offline", "online"}
    for phase in (result.offline, result.online):
        layers = [layer for layer in result.layers if layer.phase == _phase(phase, result)]
        assert sum(layer.bytes_client for layer in layers) == phase.bytes_client
        assert sum(layer.bytes_server for layer in layers) == phase.bytes_server


@pytest.mark.parametrize(
    ("name", "rounds"),
    [
        ("m1", "linear"),
        ("m1", "log"),
        pytest.param("m1", "blocks", marks=pytest.mark.slow),
        pytest.param("hinet", "linear", marks=pytest.mark.slow),
        pytest.param("m2", "log", marks=pytest.mark.slow),
    ],
)
def test_exact_results_are_the_reference_to_the_last_bit(
    name: str, rounds: str, tmp_path: Path
) -> None:
    compiled = compile(zoo.build(name, tmp_path))
    assert privet.run(compiled, suite=privet.Gmw(rounds=rounds)).max_fixed_point_error == 0
    assert (
        privet.run(compiled, suite=privet.Gmw(rounds=rounds, field="prime")).max_fixed_point_error
        == 0
    )
    assert (
        privet.run(
            compiled, suite=privet.Gmw(rounds=rounds, truncation="one-bit")
        ).max_fixed_point_error
        > 0
    )


@pytest.mark.parametrize(
    ("rounds", "mode"),
    [("linear", {}), ("log", {}), ("log", {"truncation": "one-bit"})],
)
def test_traffic_is_what_the_formulas_say(
    rounds: str, mode: dict[str, Any], tmp_path: Path
) -> None:
    compiled = compile(zoo.build("m1", tmp_path))
    suite = privet.Gmw(rounds=rounds, **mode)
    forecast = suites.forecast(suite.native(compiled.program.to_public_bytes()))
    result = privet.run(compiled, suite=suite)
    assert result.offline.bytes_client == forecast.offline_bytes_client
    assert result.offline.bytes_server == forecast.offline_bytes_server
    assert result.online.bytes_client == forecast.online_bytes_client
    assert result.online.bytes_server == forecast.online_bytes_server
    assert result.online.rounds == forecast.online_rounds


@pytest.mark.parametrize("name", ["m1", "hinet"])
def test_keys_leave_only_the_errors_of_truncations(name: str, tmp_path: Path) -> None:
    """A dealer's linear layers are exact, so with exact truncations nothing is left."""
    compiled = compile(zoo.build(name, tmp_path))
    assert privet.run(compiled, suite="fss").max_fixed_point_error == 0
    assert privet.run(compiled, suite=privet.Fss(truncation="one-bit")).max_fixed_point_error > 0


@pytest.mark.parametrize("truncation", ["one-bit", "exact"])
@pytest.mark.parametrize("suite", [privet.Gmw(rounds="log", correlations="dealer"), privet.Fss()])
def test_a_dealers_traffic_is_what_the_formulas_say(
    suite: MaterialSuite, truncation: str, tmp_path: Path
) -> None:
    compiled = compile(zoo.build("m1", tmp_path))
    suite = replace(suite, truncation=truncation)
    forecast = suites.forecast(suite.native(compiled.program.to_public_bytes()))
    result = privet.run(compiled, suite=suite)
    assert result.dealer is not None
    assert result.dealer.bytes_client == forecast.dealer_bytes_client
    assert result.dealer.bytes_server == forecast.dealer_bytes_server
    assert result.online.bytes_client == forecast.online_bytes_client
    assert result.online.bytes_server == forecast.online_bytes_server
    assert result.online.rounds == forecast.online_rounds
    keys = sum(layer.bytes_keys for layer in result.layers)
    assert (keys > 0) == (suite.name == "fss")
    assert keys <= forecast.material_bytes_client


@pytest.mark.parametrize(
    "name", ["m1", *(pytest.param(name, marks=pytest.mark.slow) for name in ("m2", "hinet"))]
)
@pytest.mark.parametrize("truncation", ["one-bit", "exact"])
def test_the_malicious_mode_computes_the_same(name: str, truncation: str, tmp_path: Path) -> None:
    compiled = compile(zoo.build(name, tmp_path))
    suite = privet.Fss(truncation=truncation, security="malicious")
    forecast = suites.forecast(suite.native(compiled.program.to_public_bytes()))
    result = privet.run(compiled, suite=suite)
    assert result.config.mode.security == "malicious"
    assert (result.max_fixed_point_error == 0) == (truncation == "exact")
    semi_honest = privet.run(compiled, suite=privet.Fss(truncation=truncation))
    assert result.max_fixed_point_error <= 3 * semi_honest.max_fixed_point_error
    for actual, expected in (
        (result.online.bytes_client, forecast.online_bytes_client),
        (result.online.bytes_server, forecast.online_bytes_server),
        (result.online.rounds, forecast.online_rounds),
    ):
        assert actual == expected


def _phase(cost: privet.runtime.PhaseCost, result: privet.Run) -> str:
    return "offline" if cost is result.offline else "online"
