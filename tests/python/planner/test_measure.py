"""Real runs, and the records of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.python.planner.records import MakeRecord
from typer.testing import CliRunner

from privet.cli import app
from privet.compiler.compile import compile
from privet.errors import Misuse
from privet.planner import machine
from privet.planner.cases import Case, find_models, plan_cases, time_left
from privet.planner.measure import measure
from privet.planner.network import parse_network
from privet.planner.record import read_record, read_records
from privet.planner.setting import ALL, setting_named, settings
from privet.research.report import standard
from privet.research.report.standard import STUDY, StudyPart
from privet.runtime import Link
from privet.suites import Ckks, Stream

MODELS = Path(__file__).resolve().parents[3] / "zoo" / "models"
MODEL = MODELS / "breast-mlp.onnx"
SMOOTH = MODELS / "digits-smooth" / "square.onnx"
POOLS = MODELS / "digits-cnn.onnx"  # suite ckks has no maxima


def test_a_record_is_read_as_it_was_written(record: MakeRecord, tmp_path: Path) -> None:
    base = record("fss-malicious", 8, layers=({"name": "a"},), link="40000us,400Mbit")
    assert read_record(base.write(tmp_path)) == base
    assert read_records(tmp_path) == [base]


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    """Its tables were empty."""
    with pytest.raises(Misuse, match="has no records: `privet study measure"):
        read_records(tmp_path / "nowhere")


def test_what_is_no_record_is_refused(record: MakeRecord, tmp_path: Path) -> None:
    path = record().write(tmp_path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 0}))
    with pytest.raises(Misuse, match="version 0"):
        read_record(path)
    path.write_text("[]")
    with pytest.raises(Misuse, match="is no record"):
        read_record(path)


def test_names_stand_for_settings() -> None:
    assert [setting.name for setting in settings(["gmw", "fss"])] == [
        "gmw-linear",
        "gmw-log",
        "gmw-blocks",
        "fss",
    ]
    assert settings(ALL) == tuple(ALL.values())
    assert settings(["ckks-collective-7"])[0].members == 7
    assert setting_named("stream-3072").config == Stream(cipher="paillier", key_bits=3072)
    assert setting_named("stream-bfv").config == Stream()
    assert [setting_named(name).compiled_batch(8) for name in ("stream-bfv", "stream-packed")] == [
        8,
        1,
    ]
    with pytest.raises(Misuse, match="a family"):
        setting_named("gmw")
    with pytest.raises(Misuse, match="2 to 20"):
        settings(["ckks-collective-1"])
    with pytest.raises(Misuse, match="gmw-dealer"):
        settings(["gmv"])


def test_every_setting_runs_on_the_loopback_and_over_links() -> None:
    network = parse_network("WAN_S")
    candidates = settings(["gmw-log", "ckks-collective-3"])
    cases = plan_cases([MODEL], candidates, [1], [None, network])
    assert [(case.setting.name, case.network is None) for case in cases] == [
        ("gmw-log", True),
        ("gmw-log", False),
        ("ckks-collective-3", True),
        ("ckks-collective-3", False),
    ]
    assert len({case.file_name for case in cases}) == 4


@pytest.mark.parametrize("network", ["40ms,400kbit", "2s,1.5Mbit", "70ms,1GB", "20us,100Gbit"])
def test_a_case_runs_over_the_network_that_it_names(network: str) -> None:
    """A link has no network rounded to whole megabits."""
    (case,) = plan_cases([MODEL], settings(["fss"]), [1], [parse_network(network)])
    link, wanted = Link(case.link or ""), Link(network)
    assert (link.rtt, link.bits_per_second) == (wanted.rtt, wanted.bits_per_second)


def test_an_unknown_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="'gone' is neither"):
        find_models(["gone"], tmp_path)


def test_bytes_and_rounds_are_those_of_the_formulas(tmp_path: Path) -> None:
    candidates = settings(["gmw-log", "gmw-dealer-blocks", "fss", "fss-malicious"])
    records, skipped = measure(plan_cases([MODEL], candidates, [2]), tmp_path)
    assert skipped == []
    assert read_records(tmp_path) == sorted(records, key=lambda case: case.file_name)
    for record in records:
        assert record.online.work["rounds"] == record.online.rounds
        assert record.online.bytes == record.online.work["bytes sent"]
        for phase in (record.offline, record.online):
            assert phase.seconds > 0
            assert phase.cpu_seconds is not None
            assert phase.cpu_seconds > 0
        assert set(record.peak_mb) == {"client", "server"} | (
            {"dealer"} if record.setting.dealer else set()
        )
        assert min(record.peak_mb.values()) > 10
        assert record.layers


@pytest.mark.parametrize(
    ("name", "batch"),
    [pytest.param("stream", 1, marks=pytest.mark.slow), ("stream-packed", 3), ("stream-bfv", 2)],
)
def test_suite_stream_is_measured_as_planned(name: str, batch: int, tmp_path: Path) -> None:
    (record,), skipped = measure(plan_cases([MODEL], settings([name]), [batch]), tmp_path)
    assert skipped == []
    program = compile(MODEL, batch=record.setting.compiled_batch(batch)).program
    plan = record.setting.config.cost(program, batch)
    for phase in ("offline", "online"):
        actual, forecast = getattr(record, phase), getattr(plan, phase)
        for figure in ("bytes_client", "bytes_server", "rounds", "work"):
            assert getattr(actual, figure) == getattr(forecast, figure), (phase, figure)
        assert actual.cpu_seconds is not None
        assert actual.cpu_seconds > 0
    assert min(record.material_bytes.values()) > 0
    assert ("transfers" in record.offline.work) == (name == "stream-bfv")
    assert record.max_abs_error is not None
    assert record.max_abs_error < 0.05


def test_packed_samples_share_ciphertexts(tmp_path: Path) -> None:
    program = compile(MODEL).program
    single, eight = (setting_named("stream-packed").config.cost(program, count) for count in (1, 8))
    assert single.online.bytes == eight.online.bytes
    assert eight.online.work["values in slots"] > single.online.work["encryptions"]
    cases = plan_cases([MODEL], settings(["stream-packed"]), [128])
    records, skipped = measure(cases, tmp_path)
    assert records == []
    assert "128 slots of 38 bits do not fit" in skipped[0].reason


@pytest.mark.go
@pytest.mark.parametrize("refreshes", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_cohort_sends_what_is_planned(refreshes: bool, tmp_path: Path) -> None:
    model = MODEL if refreshes else SMOOTH
    (record,), skipped = measure(
        plan_cases([model], settings(["ckks-collective-2"]), [1]), tmp_path
    )
    assert skipped == []
    widths = Ckks.precision
    plan = record.setting.config.cost(compile(model, **vars(widths)).program)
    assert (plan.online.work["bytes of refreshes"] > 0) == refreshes
    assert record.offline.rounds == plan.offline.rounds
    assert record.online.rounds == plan.online.rounds
    for name in ("bytes_client", "bytes_server"):
        for phase in ("offline", "online"):
            traffic = getattr(getattr(record, phase), name)
            expected = getattr(getattr(plan, phase), name)
            # Headers, greetings, and what members sign.
            assert expected <= traffic <= expected + 20_000, (phase, name)
    assert set(record.peak_mb) == {"client", "coordinator", "member"}


def test_the_standard_study_takes_less_than_an_hour(tmp_path: Path) -> None:
    def seconds(parts: Sequence[StudyPart]) -> float:
        return sum(
            len(part.models) * len(settings(part.settings)) * len(part.batches)
            * (1 + len(part.links)) * part.seconds
            for part in parts
        )  # fmt: skip

    assert seconds(STUDY.standard) < 2700
    assert seconds(STUDY.further) > 2700
    models = {name for part in STUDY.standard for name in part.models}
    assert {"resnet20", "resnet50", "squeezenet", "m1", "m2", "nn5"} <= models
    assert {setting.family for part in STUDY.standard for setting in settings(part.settings)} >= {
        setting.family for setting in ALL.values()
    }
    assert 128 in {batch for part in STUDY.standard for batch in part.batches}


def test_a_study_without_models_is_the_standard_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = StudyPart(("m1",), ("fss", "ckks"), 6.0, batches=(1, 8), links=("WAN_S",), repeats=3)
    monkeypatch.setattr(standard, "STUDY", replace(STUDY, standard=(part, part)))
    command = ["study", "measure", "-o", str(tmp_path), "--dry-run", "--json"]
    report = json.loads(CliRunner().invoke(app, command).stdout)
    assert len(report["cases"]) == 8  # a case is there once
    assert report["seconds"] == 48.0
    assert json.loads(CliRunner().invoke(app, [*command, "--repeats", "1"]).stdout)["seconds"] == 16
    output = CliRunner().invoke(app, command[:-1]).output
    assert "m1, fss, batch 8, WAN_S, 3 times: 6 s" in output
    result = CliRunner().invoke(app, [*command, "--full", "--models", "m1"])
    assert isinstance(result.exception, Misuse)


def test_validation_runs_what_the_study_has_over_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = (
        StudyPart(("breast",), ("stream-bfv",), 1.0, links=("1ms,1gbps",)),
        StudyPart(("breast",), ("fss",), 1.0, links=("1ms,1gbps",)),
        StudyPart(("breast",), ("gmw",), 1.0),
    )
    monkeypatch.setattr(standard, "STUDY", replace(STUDY, standard=parts))
    command = ["study", "validate", str(tmp_path), "--run", "--suites", "stream-bfv"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "stream-bfv, online:" in result.output
    assert {entry.setting.name for entry in read_records(tmp_path)} == {"stream-bfv"}
    before = [path.stat().st_mtime_ns for path in sorted(tmp_path.glob("*.json"))]
    assert len(before) == 2
    assert CliRunner().invoke(app, command).exit_code == 0
    assert before == [path.stat().st_mtime_ns for path in sorted(tmp_path.glob("*.json"))]


def test_time_left_follows_what_cases_weigh() -> None:
    (setting,) = settings(["fss"])
    cases = [Case(MODEL, setting, seconds=seconds) for seconds in (10.0, 30.0, 60.0)]
    assert time_left(cases, 0, 0.0) == 100.0
    assert time_left(cases, 2, 20.0) == 30.0
    unknown = [Case(MODEL, setting)] * 4
    assert time_left(unknown, 0, 0.0) is None
    assert time_left(unknown, 1, 5.0) == 15.0


def test_a_study_is_resumed_and_says_what_cannot_run(tmp_path: Path) -> None:
    def study(*words: str) -> dict[str, list[object]]:
        command = ["study", "measure", "--models", str(POOLS), "-o", str(tmp_path), "--json"]
        result = CliRunner().invoke(app, [*command, *words])
        assert result.exit_code == 0, result.output
        report: dict[str, list[object]] = json.loads(result.stdout)
        return report

    first = study("--suites", "gmw-log,ckks")
    assert len(first["records"]) == 1
    assert len(first["skipped"]) == 1
    assert "cannot run privately" in str(first["skipped"])
    (path,) = tmp_path.glob("*.json")
    before = path.read_bytes()
    second = study("--suites", "gmw-log,fss", "--resume")
    assert [Case(POOLS, setting).file_name for setting in settings(["fss"])] == [
        report.name for report in tmp_path.glob("*-fss-*.json")
    ]
    assert len(second["records"]) == 1
    assert path.read_bytes() == before


def test_what_does_not_fit_into_memory_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "available_mb", lambda: 1.0)
    cases = plan_cases([MODEL], settings(["fss"]), [1])
    cases += plan_cases([MODEL], settings(["stream-bfv"]), [64])
    records, skipped = measure(cases, tmp_path)
    assert records == []
    assert ["GB of memory, 0.0 GB are free" in skip.reason for skip in skipped] == [True, True]
    monkeypatch.undo()
    monkeypatch.setattr(machine, "free_disk_mb", lambda: 0.0)
    records, skipped = measure(plan_cases([MODEL], settings(["fss"]), [1]), tmp_path)
    assert records == []
    assert "GB of disk, 0.0 GB are free" in skipped[0].reason
