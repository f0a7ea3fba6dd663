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
    [it if it in QUICK else pytest.param(it, marks=pytest.mark.slow) for it in WAYS],
    ids=named,
)
def test_a_few_kills(
    way: MaterialSuite, tmp_path: Path, key_folder: Path, compiled: Compiled
) -> None:
    landed = survive(way, 14, tmp_path, key_folder, compiled).landed
    assert landed.total() - landed["nothing"] >= 5, landed
    assert landed["preparing"] + landed["storing"], landed
    assert landed["claiming"] + landed["inferring"], landed


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("way", WAYS, ids=named)
def test_hundreds_of_kills(
    way: MaterialSuite, tmp_path: Path, key_folder: Path, compiled: Compiled
) -> None:
    ordeal = survive(way, 240, tmp_path, key_folder, compiled)
    landed = ordeal.landed
    assert landed["nothing"] < landed.total() / 2, landed
    assert all(landed[work] >= 5 for work in AIMS), landed
    # Some kills fell into a check, which a party must take for an attack.
    assert bool(ordeal.gone) == (way.mode.security == "malicious")
