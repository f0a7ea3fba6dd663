"""Processors' own counters of energy, as Linux shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from privet.planner.machine import EnergyCounters


def put(folder: Path, name: str, energy: int, limit: int = 10**9) -> None:
    """A counter in microjoules."""
    (folder / name).mkdir(exist_ok=True)
    (folder / name / "energy_uj").write_text(f"{energy}\n")
    (folder / name / "max_energy_range_uj").write_text(f"{limit}\n")


def test_packages_are_added_up_and_their_parts_are_not(tmp_path: Path) -> None:
    for name in ("intel-rapl:0", "intel-rapl:1", "intel-rapl:0:0"):
        put(tmp_path, name, 1_000_000)
    counters = EnergyCounters(tmp_path)
    put(tmp_path, "intel-rapl:0", 3_000_000)
    put(tmp_path, "intel-rapl:1", 1_500_000)
    put(tmp_path, "intel-rapl:0:0", 9_000_000)
    assert counters.joules() == pytest.approx(2.5)


def test_a_counter_may_begin_anew(tmp_path: Path) -> None:
    put(tmp_path, "intel-rapl:0", 900_000_000)
    counters = EnergyCounters(tmp_path)
    put(tmp_path, "intel-rapl:0", 100_000_000)
    assert counters.joules() == pytest.approx(200.0)


def test_without_counters_nothing_is_told(tmp_path: Path) -> None:
    assert EnergyCounters(tmp_path).joules() is None
