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
    chosen = [setting_named(it) for it in NAMES]
    free: dict[str, Prices] = {
        f"{it.kind} {phase}": {} for it in chosen for phase in ("offline", "online")
    }
    prices = UnitCosts(free, free, "a processor", 2)

    def costs(batch: int) -> list[Record]:
        rows = cost_settings(model, chosen, batch, lambda: prices).values()
        return [it for it in rows if isinstance(it, Record)]

    for one, two, large in zip(costs(32), costs(64), costs(128), strict=True):
        cost = widened(one, two, 128)
        assert (cost.batch, cost.measured, cost.setting) == (128, False, large.setting)
        assert cost.online.rounds == large.online.rounds
        assert cost.online.bytes == pytest.approx(large.online.bytes, rel=0.01)
        assert cost.offline.bytes == pytest.approx(large.offline.bytes, rel=0.01)
        assert cost.material_bytes == pytest.approx(large.material_bytes, rel=0.01)
        for ours, theirs in zip(cost.extensions, large.extensions, strict=True):
            assert ours.core_seconds == pytest.approx(theirs.core_seconds, rel=0.05)
        assert widened(one, two, 64).online.bytes == two.online.bytes
