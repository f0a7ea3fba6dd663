"""No entry is used twice, whichever process of a service or of its clients is killed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.attacks.scene import INPUT
from tests.kills.siege import Siege
from tests.kills.stage import named, staged

from privet.compiler.compile import Compiled
from privet.compiler.executor import execute
from privet.suites import Fss, Gmw, MaterialSuite

SUITES = {Gmw(): "gmw linear exact tables", Fss(): "fss exact tables"}
"""Ways of making material, and the labels of it."""


def survive(way: MaterialSuite, kills: int, folder: Path, keys: Path, compiled: Compiled) -> Siege:
    """What is left after so many kills; every check of every round has passed."""
    expected = execute(compiled.program, compiled.weights, {"x": INPUT}).outputs["y"]
    with staged(folder, keys, compiled, way, ahead=2) as stage:
        siege = Siege(stage, SUITES[way], expected, seed=kills)
        try:
            for number in range(kills):
                siege.round(number)
            siege.finish()
        finally:
            siege.end()
    return siege


@pytest.mark.parametrize("way", [Gmw(), pytest.param(Fss(), marks=pytest.mark.slow)], ids=named)
def test_a_few_kills(
    way: MaterialSuite, tmp_path: Path, key_folder: Path, compiled: Compiled
) -> None:
    kills = survive(way, 7, tmp_path, key_folder, compiled).landed
    assert kills.total() - kills["nothing"] >= 3, kills


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("way", SUITES, ids=named)
def test_hundreds_of_kills(
    way: MaterialSuite, tmp_path: Path, key_folder: Path, compiled: Compiled, figures: list[str]
) -> None:
    kills = survive(way, 200, tmp_path, key_folder, compiled).landed
    figures.append(f"kills of workers, executors and clients, {way}: {dict(kills)}")
    assert kills["nothing"] < 0.7 * kills.total(), kills
    assert all(kills[work] >= 5 for work in ("preparing", "claiming", "inferring")), kills
