"""No material entry is used twice, whoever is killed and whenever."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.attacks.scene import INPUT
from tests.kills.ordeal import AIMS, Ordeal
from tests.kills.stage import WAYS, named, staged

from privet.compiler.compile import Compiled
from privet.compiler.executor import execute
from privet.suites import Fss, Gmw, MaterialSuite

QUICK = Gmw(), Fss(security="malicious")
"""Made by the parties, and dealt; the other ways are in the slow tests."""


def survive(way: MaterialSuite, kills: int, folder: Path, keys: Path, compiled: Compiled) -> Ordeal:
    """What is left after so many kills; every check of every round has passed."""
    expected = execute(compiled.program, compiled.weights, {"x": INPUT}).outputs["y"]
    with staged(folder, keys, compiled, way, ahead=2) as stage:
        ordeal = Ordeal(stage, expected, seed=kills)
        for number in range(kills):
            ordeal.round(number)
        ordeal.finish()
    return ordeal


@pytest.mark.parametrize(
    "way",
    [way if way in QUICK else pytest.param(way, marks=pytest.mark.slow) for way in WAYS],
    ids=named,
)
def test_a_few_kills(
    way: MaterialSuite, tmp_path: Path, key_folder: Path, compiled: Compiled
) -> None:
    kills = survive(way, 14, tmp_path, key_folder, compiled).landed
    assert kills.total() - kills["nothing"] >= 5, kills
    assert kills["preparing"] + kills["storing"], kills
    assert kills["claiming"] + kills["inferring"], kills


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("way", WAYS, ids=named)
def test_hundreds_of_kills(
    way: MaterialSuite, tmp_path: Path, key_folder: Path, compiled: Compiled
) -> None:
    ordeal = survive(way, 240, tmp_path, key_folder, compiled)
    kills = ordeal.landed
    assert kills["nothing"] < kills.total() / 2, kills
    assert all(kills[work] >= 5 for work in AIMS), kills
    # Some kills fell into a check, which a party must take for an attack.
    assert bool(ordeal.gone) == (way.mode.security == "malicious")
