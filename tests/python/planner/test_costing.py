"""Costs by formula: larger batches on the line through smaller ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from privet.planner.cases import find_models
from privet.planner.costing import cost_settings, widened
from privet.planner.record import Record
from privet.planner.setting import setting_named
from privet.planner.units import Prices, UnitCosts

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
