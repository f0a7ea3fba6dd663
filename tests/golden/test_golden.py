"""Runs give what was recorded of them: outputs, bytes, rounds, labels, forecasts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.golden.cases import CASES, FILES, Case
from tests.golden.record import observe, read

TRAFFIC = ("offline", "online", "plan")


def marks(case: Case) -> list[pytest.MarkDecorator]:
    pytest_marks = [pytest.mark.slow] if case.slow else []
    return [*pytest_marks, pytest.mark.go] if case.suite == "ckks" else pytest_marks


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.key, marks=marks(case)) for case in CASES]
)
def test_a_run_is_as_recorded(case: Case) -> None:
    expected, actual = read(case.file)[case.key], observe(case)
    assert set(actual) == set(expected)
    same_outputs(case, actual.pop("outputs"), expected.pop("outputs"))
    if case.bytes_within:
        for name in TRAFFIC:
            assert near(actual.pop(name), expected.pop(name), case.bytes_within), name
    for name, value in expected.items():
        assert actual[name] == value, name


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
            refill_rounds = forecast["refill"]["rounds"] if case.options.get("unprepared") else 0
            assert record["online"][2] == forecast["online_rounds"] + refill_rounds, case.key


def same_outputs(case: Case, actual: dict[str, list[float]], expected: dict[str, Any]) -> None:
    """Bit for bit, or within the units that the case allows."""
    if case.units == 0:
        assert actual == expected
        return
    assert list(actual) == list(expected)
    scale = 16 if case.suite == "ckks" else 12
    for name, values in actual.items():
        worst = float(np.abs(np.subtract(values, expected[name])).max())
        assert worst <= case.units * 2.0**-scale, name


def near(actual: Any, expected: Any, within: float) -> bool:
    """Whether all numbers are those recorded but for a part, and all else is the same."""
    if isinstance(expected, dict):
        return set(actual) == set(expected) and all(
            near(actual[key], value, within) for key, value in expected.items()
        )
    if isinstance(expected, list):
        return len(actual) == len(expected) and all(
            near(*pair, within) for pair in zip(actual, expected, strict=True)
        )
    if isinstance(expected, int) and not isinstance(expected, bool):
        return bool(abs(actual - expected) <= within * abs(expected))
    return bool(actual == expected)


def test_every_case_has_a_record_and_every_record_a_case() -> None:
    for file in FILES:
        keys = [case.key for case in CASES if case.file == file]
        assert list(read(file)) == keys
        assert len(set(keys)) == len(keys)


def test_a_difference_is_seen() -> None:
    """The comparison with a tolerance does compare."""
    expected = {"bytes": [1000, 20], "name": "a"}
    assert near({"bytes": [1009, 20], "name": "a"}, expected, 0.01)
    for other in ({"bytes": [1011, 20]}, {"bytes": [1000, 21]}, {"bytes": [1000]}, {"name": "b"}):
        assert not near({**expected, **other}, expected, 0.01)
