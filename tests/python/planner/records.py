"""Records that no machine measured, with figures that are easy to reckon with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from privet.planner.record import Record
from privet.planner.setting import settings
from privet.suites import Phase

MakeRecord = Callable[..., Record]


@pytest.fixture
def record() -> MakeRecord:
    """Makes a record; phases are given as keyword arguments of `Phase`."""

    def phase(figures: dict[str, Any]) -> Phase:
        plain = {"seconds": 1.0, "cpu_seconds": 1.0, "bytes_client": 1000, "bytes_server": 500}
        return Phase(**{**plain, "rounds": 10, **figures})

    def make(
        setting: str = "gmw-log",
        batch: int = 1,
        offline: dict[str, Any] | None = None,
        online: dict[str, Any] | None = None,
        **rest: Any,
    ) -> Record:
        (choice,) = settings([setting])
        fields: dict[str, Any] = {
            "peak_mb": {"client": 80.0, "server": 90.0},
            "material_bytes": {"client": 10**6, "server": 10**6},
            "machine": {"cpu": "a processor", "cores": 2},
            **rest,
        }
        model, digest = fields.pop("model", "a"), fields.pop("model_sha256", "00")
        return Record(
            model, digest, choice, batch, phase(offline or {}), phase(online or {}), **fields
        )

    return make
