"""What `privet plan --toml` prints is a model's configuration: a service loads it and serves."""

from __future__ import annotations

import asyncio
import subprocess
import tomllib
from pathlib import Path

import numpy as np
import pytest
from tests.e2e.caller import ServiceCaller
from tests.e2e.services import serving
from tests.e2e.test_commands import MODELS, PRIVET, key_folder

from privet.planner import machine, units
from privet.planner.setting import ALL
from privet.planner.units import UnitCosts

__all__ = ["key_folder"]

MODEL = MODELS / "breast-mlp.onnx"


@pytest.fixture
def priced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unit costs, so that no test waits for a calibration."""
    prices = {
        f"{setting.kind} {phase}": {"run": 0.05, "rounds": 1e-4, "bytes sent": 1e-6}
        for setting in ALL.values()
        for phase in ("offline", "online")
    }
    description = machine.describe()
    path = tmp_path / "units.json"
    UnitCosts(prices, prices, description["cpu"], description["cores"]).write(path)
    monkeypatch.setenv(units.VARIABLE, str(path))


@pytest.mark.usefixtures("priced")
def test_a_service_serves_what_was_planned(key_folder: Path, tmp_path: Path) -> None:
    words = ["plan", MODEL, "--no-dealer", "--batch", "2", "--rate", "1/s", "--rtt", "1ms"]
    command = [*PRIVET, *map(str, words), "--toml"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    folder = tmp_path / "repository" / "breast"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.onnx").write_bytes(MODEL.read_bytes())
    (folder / "config.toml").write_text(process.stdout)
    config = tomllib.loads(process.stdout)
    (suite,), (rounds,) = config["suites"], config["rounds"]
    assert (suite, config["batch"]) == ("gmw", 2)

    async def use_service(address: str) -> None:
        async with ServiceCaller(address, key_folder, tmp_path / "client") as caller:
            x = np.random.default_rng(2).normal(size=(2, 30))
            metadata = await caller.good("GET", "/v2/models/breast")
            assert metadata["inputs"][0]["shape"] == [2, 30]
            request = await caller.request("breast", suite=suite, rounds=rounds)
            job, (result,) = await caller.follow(request, [x])
            assert (job["outcome"], job["rounds"]) == ("done", rounds)
            assert result.samples == 2
            for wish in ({"suite": "fss"}, {"suite": suite, "rounds": _another(rounds)}):
                status, answer = await caller.call("POST", "/v2/models/breast/requests", wish)
                assert status >= 400, answer

    with serving(tmp_path, key_folder) as scene:
        assert [(row["model"], row["ready"]) for row in scene.models] == [("breast", True)]
        asyncio.run(use_service(scene.address))


def _another(rounds: str) -> str:
    return next(mode for mode in ("linear", "log") if mode != rounds)
