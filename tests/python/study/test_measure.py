"""Real runs, and the records of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.python.study.conftest import MakeRecord
from typer.testing import CliRunner

from privet.cli import app
from privet.errors import Misuse
from privet.study import machine
from privet.study.measure import Case, find_models, measure, plan_cases
from privet.study.network import parse_network
from privet.study.record import read_record, read_records
from privet.study.setting import ALL, settings

MODELS = Path(__file__).resolve().parents[3] / "zoo" / "models"
MODEL = MODELS / "breast-mlp.onnx"
POOLS = MODELS / "digits-cnn.onnx"  # suite ckks has no maxima


def test_a_record_is_read_as_it_was_written(record: MakeRecord, tmp_path: Path) -> None:
    made = record("fss-malicious", 8, layers=({"name": "a"},), link="40000us,400Mbit")
    assert read_record(made.write(tmp_path)) == made
    assert read_records(tmp_path) == [made]


def test_what_is_no_record_is_refused(record: MakeRecord, tmp_path: Path) -> None:
    path = record().write(tmp_path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 0}))
    with pytest.raises(Misuse, match="version 0"):
        read_record(path)
    path.write_text("[]")
    with pytest.raises(Misuse, match="is no record"):
        read_record(path)


def test_names_stand_for_settings() -> None:
    assert [it.name for it in settings(["gmw", "fss"])] == [
        "gmw-linear",
        "gmw-log",
        "gmw-blocks",
        "fss",
    ]
    assert settings(ALL) == tuple(ALL.values())
    with pytest.raises(Misuse, match="gmw-dealer"):
        settings(["gmv"])


def test_only_links_that_can_be_shaped_are_cases() -> None:
    network = parse_network("WAN_S")
    cases = plan_cases([MODEL], settings(["gmw-log", "ckks"]), [1], [None, network])
    assert [(it.setting.name, it.network is None) for it in cases] == [
        ("gmw-log", True),
        ("gmw-log", False),
        ("ckks", True),
    ]
    assert len({it.file_name for it in cases}) == 3


def test_an_unknown_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="'gone' is neither"):
        find_models(["gone"], tmp_path)


def test_bytes_and_rounds_are_those_of_the_formulas(tmp_path: Path) -> None:
    chosen = settings(["gmw-log", "gmw-dealer-blocks", "fss", "fss-malicious"])
    records, skipped = measure(plan_cases([MODEL], chosen, [2]), tmp_path)
    assert skipped == []
    assert read_records(tmp_path) == sorted(records, key=lambda it: it.file_name)
    for it in records:
        assert it.online.rounds == it.online.work["rounds"]
        assert it.online.bytes == it.online.work["bytes sent"]
        for phase in (it.offline, it.online):
            assert phase.seconds > 0
            assert phase.cpu_seconds is not None
            assert phase.cpu_seconds > 0
        assert set(it.peak_mb) == {"client", "server"} | (
            {"dealer"} if it.setting.dealer else set()
        )
        assert min(it.peak_mb.values()) > 10
        assert it.layers


def test_a_study_is_resumed_and_says_what_cannot_run(tmp_path: Path) -> None:
    def study(*words: str) -> dict[str, list[object]]:
        command = ["study", "measure", "--models", str(POOLS), "-o", str(tmp_path), "--json"]
        done = CliRunner().invoke(app, [*command, *words])
        assert done.exit_code == 0, done.output
        found: dict[str, list[object]] = json.loads(done.stdout)
        return found

    first = study("--suites", "gmw-log,ckks")
    assert len(first["records"]) == 1
    assert len(first["skipped"]) == 1
    assert "cannot run privately" in str(first["skipped"])
    (path,) = tmp_path.glob("*.json")
    before = path.read_bytes()
    again = study("--suites", "gmw-log,fss", "--resume")
    assert [Case(POOLS, it).file_name for it in settings(["fss"])] == [
        found.name for found in tmp_path.glob("*-fss-*.json")
    ]
    assert len(again["records"]) == 1
    assert path.read_bytes() == before


def test_what_does_not_fit_into_memory_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "available_mb", lambda: 1.0)
    records, skipped = measure(plan_cases([MODEL], settings(["fss"]), [1]), tmp_path)
    assert records == []
    assert "GB of memory, 0.0 GB are free" in skipped[0].reason
