"""Costs by formula: larger batches on the line through smaller ones."""

from __future__ import annotations

from pathlib import Path

import pytest

import privet
from privet.compiler.compile import compile
from privet.planner.cases import find_models
from privet.planner.costing import cost_settings, widened
from privet.planner.record import Record, costed
from privet.planner.setting import Setting, setting_named, settings_of
from privet.planner.units import Prices, UnitCosts
from privet.suites import Gmw

MODELS = Path(__file__).resolve().parents[3] / "zoo" / "models"
NAMES = ("fss", "gmw-dealer-log", "gmw-log")


def test_a_batch_on_a_line_is_what_its_formula_says(tmp_path: Path) -> None:
    """Up to the last ciphertext, from batches so large that they send less for more rounds."""
    (model,) = find_models(["resnet20"], tmp_path)
    candidates = [setting_named(name) for name in NAMES]
    free: dict[str, Prices] = {
        f"{setting.kind} {phase}": {} for setting in candidates for phase in ("offline", "online")
    }
    prices = UnitCosts(free, free, "a processor", 2)

    def costs(batch: int) -> list[Record]:
        rows = cost_settings(model, candidates, batch, lambda: prices).values()
        return [row for row in rows if isinstance(row, Record)]

    for small, two, large in zip(costs(32), costs(64), costs(128), strict=True):
        cost = widened(small, two, 128)
        assert (cost.batch, cost.measured, cost.setting) == (128, False, large.setting)
        assert cost.online.rounds == large.online.rounds
        assert cost.online.bytes == pytest.approx(large.online.bytes, rel=0.01)
        assert cost.offline.bytes == pytest.approx(large.offline.bytes, rel=0.01)
        assert cost.material_bytes == pytest.approx(large.material_bytes, rel=0.01)
        for estimate, actual in zip(cost.extensions, large.extensions, strict=True):
            assert estimate.core_seconds == pytest.approx(actual.core_seconds, rel=0.05)
        assert widened(small, two, 64).online.bytes == two.online.bytes


@pytest.mark.parametrize("unprepared", [False, True])
def test_work_is_counted_in_the_phase_that_does_it(unprepared: bool) -> None:
    """Linear layers under encryption are online's in one-shot mode, and so are correlations where
    nothing is prepared: then there is nothing to stock."""
    program = compile(MODELS / "breast-mlp.onnx").program
    ahead = Gmw(rounds="log").cost(program)
    suite = Gmw(rounds="log", linear="online", unprepared=unprepared)
    shot = suite.cost(program)
    assert "ciphertexts" in ahead.offline.work
    assert "ciphertexts" not in ahead.online.work
    assert "ciphertexts" in shot.online.work
    assert "ciphertexts" not in shot.offline.work
    assert ("core seconds of OTs" in shot.online.work) == unprepared
    assert Setting(suite).stocks != unprepared
    run = privet.run(MODELS / "breast-mlp.onnx", suite=suite)
    for name in ("offline", "online"):
        cost, actual = getattr(shot, name), getattr(run, name)
        figures = "bytes_client", "bytes_server", "rounds"
        assert [getattr(cost, field) for field in figures] == [
            getattr(actual, field) for field in figures
        ]


def test_online_work_has_the_price_of_offline_work() -> None:
    (setting,) = settings_of(Gmw(rounds="log", linear="online"))
    seconds: dict[str, Prices] = {
        "gmw offline": {"run": 5.0, "ciphertexts": 2.0},
        "gmw online": {"run": 1.0},
    }
    costing = setting.config.cost(compile(MODELS / "breast-mlp.onnx").program)
    base = costed(costing, "m", "", setting, 1)
    record = UnitCosts(seconds, seconds, "a processor", 2).price(base)
    count = base.online.work["ciphertexts"]
    assert (record.online.seconds, record.offline.seconds) == (1.0 + 2.0 * count, 5.0)


def test_a_suite_is_ruled_out_by_a_layer_that_is_named() -> None:
    """It said how many parts cannot run, and not which."""
    setting = setting_named("ckks")
    prices = UnitCosts({}, {}, "a processor", 2)
    rows = cost_settings(MODELS / "digits-cnn.onnx", [setting], 1, lambda: prices)
    assert rows[setting] == (
        "maxpool1 (max_pool2d) and 1 more: it compares values, which suite ckks does not do"
    )
