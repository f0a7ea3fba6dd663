"""Runs give what was recorded of them: outputs, bytes, rounds, labels, forecasts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.golden.cases import CASES, FILES, Case
from tests.golden.record import observe, read

TRAFFIC = ("offline", "online", "plan")


def marks(case: Case) -> list[pytest.MarkDecorator]:
    found = [pytest.mark.slow] if case.slow else []
    return [*found, pytest.mark.go] if case.suite == "ckks" else found


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.key, marks=marks(case)) for case in CASES]
)
def test_a_run_is_as_recorded(case: Case) -> None:
    recorded, found = read(case.file)[case.key], observe(case)
    assert set(found) == set(recorded)
    same_outputs(case, found.pop("outputs"), recorded.pop("outputs"))
    if case.bytes_within:
        for name in TRAFFIC:
            assert near(found.pop(name), recorded.pop(name), case.bytes_within), name
    for name, value in recorded.items():
        assert found[name] == value, name


PORTABLE = (
    *("digits-cnn: log", "digits-cnn: prime", "digits-cnn: dealt", "digits-cnn: semi-honest"),
    *("digits-cnn: malicious", "digits-vit: log", "digits-vit: semi-honest"),
    *("heart: bfv", pytest.param("heart: paillier", marks=pytest.mark.slow)),
)


@pytest.mark.parametrize("key", PORTABLE)
def test_portable_code_gives_the_same(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs, bytes and rounds where processors lack the wide instructions of this one."""
    (case,) = (case for case in CASES if case.key == key)
    monkeypatch.setenv("PRIVET_PORTABLE", "1")
    test_a_run_is_as_recorded(case)


@pytest.mark.parametrize("file", FILES)
def test_rounds_are_those_forecast(file: str) -> None:
    """The client's rounds, with those of a refill where nothing was prepared."""
    for case in (case for case in CASES if case.file == file):
        record = read(file)[case.key]
        if forecast := record.get("forecast"):
            more = forecast["refill"]["rounds"] if case.options.get("unprepared") else 0
            assert record["online"][2] == forecast["online_rounds"] + more, case.key


def same_outputs(case: Case, found: dict[str, list[float]], recorded: dict[str, Any]) -> None:
    """Bit for bit, or within the units that the case allows."""
    if case.units == 0:
        assert found == recorded
        return
    assert list(found) == list(recorded)
    scale = 16 if case.suite == "ckks" else 12
    for name, values in found.items():
        worst = float(np.abs(np.subtract(values, recorded[name])).max())
        assert worst <= case.units * 2.0**-scale, name


def near(found: Any, recorded: Any, within: float) -> bool:
    """Whether all numbers are those recorded but for a part, and all else is the same."""
    if isinstance(recorded, dict):
        return set(found) == set(recorded) and all(
            near(found[key], value, within) for key, value in recorded.items()
        )
    if isinstance(recorded, list):
        return len(found) == len(recorded) and all(
            near(*pair, within) for pair in zip(found, recorded, strict=True)
        )
    if isinstance(recorded, int) and not isinstance(recorded, bool):
        return bool(abs(found - recorded) <= within * abs(recorded))
    return bool(found == recorded)


def test_every_case_has_a_record_and_every_record_a_case() -> None:
    for file in FILES:
        keys = [case.key for case in CASES if case.file == file]
        assert list(read(file)) == keys
        assert len(set(keys)) == len(keys)


def test_a_difference_is_seen() -> None:
    """The comparison with a tolerance does compare."""
    recorded = {"bytes": [1000, 20], "name": "a"}
    assert near({"bytes": [1009, 20], "name": "a"}, recorded, 0.01)
    for other in ({"bytes": [1011, 20]}, {"bytes": [1000, 21]}, {"bytes": [1000]}, {"name": "b"}):
        assert not near({**recorded, **other}, recorded, 0.01)
