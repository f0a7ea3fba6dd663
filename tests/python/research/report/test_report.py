"""The report: what it holds, and that it can be read on a phone."""

from __future__ import annotations

import asyncio
import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.browser import on_a_screen
from tests.python.planner.records import MakeRecord
from typer.testing import CliRunner

from privet.cli import app
from privet.errors import Misuse
from privet.planner.network import PRESETS
from privet.planner.predict import predict
from privet.planner.prices import read_prices
from privet.planner.record import Record
from privet.planner.setting import SUITES, settings
from privet.research.report import charts, figures, report, tables
from privet.research.report.findings import findings
from privet.research.report.standard import STUDY

NAMES = {
    "measured",
    "latency",
    "throughput",
    "validation",
    "main-costs-resnet20",
    "batch-sweep-resnet20",
    "pools",
    "time-parts-resnet20",
    "cost-parts-resnet20",
    "energy-parts-resnet20",
    "speed-sweep-resnet20",
    "regimes-resnet20",
    "computing-regimes-resnet20",
    "regimes-throughput-resnet20",
    "computing-regimes-throughput-resnet20",
    "regimes-with-stream-resnet20",
    "contexts",
}
TABLES = 5


@pytest.fixture
def study(record: MakeRecord) -> list[Record]:
    """A small study of ResNet-20 and of one stand-in, with a sweep and a run over a link."""
    offline = {"dealer_bytes_client": 10**8, "dealer_bytes_server": 10**8, "rounds": 1}
    return [
        record("gmw-log", model="resnet20", online={"rounds": 100}),
        record("gmw-blocks", model="resnet20", online={"rounds": 60, "bytes_client": 10**6}),
        record("gmw-dealer-log", model="resnet20"),
        record("fss", model="resnet20", offline=offline, online={"seconds": 0.1}),
        record("ckks", model="resnet20-silu", online={"seconds": 50.0, "rounds": 1}),
        record("stream", model="resnet20", online={"seconds": 80.0, "rounds": 20}),
        record("stream-bfv", model="resnet20", online={"seconds": 0.2, "rounds": 20}),
        record("stream-packed", model="resnet20", online={"seconds": 80.0, "rounds": 20}),
        record("stream-bfv", model="resnet20", batch=8, online={"rounds": 20}),
        record("gmw-log", model="resnet20", batch=8, online={"rounds": 100}),
        record("gmw-log", model="resnet20", link="40ms,400mbps", online={"seconds": 3.0}),
        *(
            record("fss", model=model, online={"rounds": 100, "bytes_client": 10**6 * tokens})
            for model, tokens in STUDY.contexts.items()
        ),
    ]


def test_every_table_and_figure_is_written(study: list[Record], tmp_path: Path) -> None:
    page = tmp_path / "out" / "report.html"
    paths = report.write(study, page, read_prices())
    assert {path.name for path in paths} == {path.name for path in page.parent.iterdir()}
    text = page.read_text()
    for name in NAMES:
        assert f'id="{name}"' in text
        assert (page.parent / f"report-{name}.csv").stat().st_size > 100
    assert len(list(page.parent.glob("*.png"))) == len(NAMES) - TABLES
    assert "<script" not in text
    assert "http://" not in text.replace("http://www.w3.org/", "")
    with (page.parent / "report-latency.csv").open() as file:
        rows = list(csv.DictReader(file))
    fss = {r["model"]: r for r in rows if (r["setting"], r["network"]) == ("fss", "WAN_S")}
    assert float(fss["resnet20"]["paper_online_latency"]) == 7.0
    assert float(fss["resnet20"]["paper_latency"]) == 9.4
    assert float(fss["bert-tiny"]["paper_latency"]) == 12.0
    assert fss["bert-tiny-64"]["paper_latency"] == ""


def test_the_papers_figures_are_those_of_its_schemes() -> None:
    fss, gmw_dealer, alone, ckks = settings(["fss", "gmw-dealer-log", "gmw-log", "ckks"])

    def latency(setting: Any, *, offline: bool) -> float | None:
        return tables.figure("latency", "bert-base", "WAN_S", setting, offline=offline)

    assert latency(fss, offline=True) == 301
    assert latency(fss, offline=False) == 47
    assert latency(gmw_dealer, offline=True) == 243
    assert latency(ckks, offline=True) == 149
    assert latency(alone, offline=True) is None
    assert tables.figure("latency", "m1", "WAN_S", fss, offline=True) is None
    assert tables.memory("resnet50", fss) == 11.7


def test_keys_that_serve_again_cost_nothing_each_time(study: list[Record]) -> None:
    (encrypted,) = (record for record in study if record.setting.config.name == "ckks")
    prediction = predict(encrypted, PRESETS["LAN_F"])
    assert prediction.offline.seconds == 0
    assert prediction.latency == prediction.online_latency


def test_the_best_depth_stands_for_a_family(study: list[Record]) -> None:
    records = tables.of_subject(study, "resnet20", 1)
    far = {
        entry.record.setting.name for entry in tables.best_of_families(records, PRESETS["WAN_F"])
    }
    stream_names = {"stream", "stream-packed", "stream-bfv"}
    assert far == {"gmw-blocks", "gmw-dealer-log", "fss", "ckks", *stream_names}
    assert tables.drawn_subjects(study) == ["resnet20"]


def test_the_papers_model_is_drawn_too(study: list[Record], record: MakeRecord) -> None:
    names = ["gmw-log", "gmw-dealer-log", "fss", "fss-malicious", "ckks", "stream", "stream-3072"]
    names.append("stream-bfv")
    assert tables.drawn_subjects([*study, *(record(name, model="m1") for name in names)]) == [
        "m1",
        "resnet20",
    ]


def test_figures_of_batches_have_each_familys_largest(study: list[Record]) -> None:
    records = tables.largest_batches(study, "resnet20")
    assert {(record.setting.family, record.batch) for record in records} == {
        ("gmw", 8), ("gmw-dealer", 1), ("fss", 1), ("ckks", 1), ("stream", 1),
        ("stream-packed", 1), ("stream-bfv", 8),
    }  # fmt: skip
    assert tables.swept_subjects(study) == ["resnet20"]


def test_the_main_costs_are_told_by_suite(study: list[Record]) -> None:
    rows = figures.main_costs(tables.largest_batches(study, "resnet20"), read_prices())
    money = {row["family"]: row for row in rows if row["what"] == "money"}
    assert money["fss"]["first"] == "offline transfer"
    assert money["ckks"]["first"] == "instance"
    energy = {row["family"]: row for row in rows if row["what"] == "energy"}
    assert energy["ckks"]["first"] == "online computing"
    assert energy["ckks"]["first_share"] > 90


def test_every_figure_of_the_paper_is_there_or_said_to_be_missing(
    study: list[Record], tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    report.write(study, page, read_prices())
    text = page.read_text()
    for number in range(1, 9):
        assert f"Figure {number}" in text
    assert "Figure 6: latency of BERT-Tiny" in text
    assert "29 times for A2B" in text
    assert "Price of instance: https://aws.amazon.com/" in text


def test_longer_texts_are_compared_with_128_tokens(study: list[Record], record: MakeRecord) -> None:
    rows = figures.contexts(study)
    assert {row["family"] for row in rows} == {"fss"}
    online = {row["tokens"]: row["times"] for row in rows if row["phase"] == "online"}
    assert online[64] < online[128] == 1 < online[256] < 2
    # A family without the length that all are compared with tells nothing.
    study.append(record("gmw-dealer-log", model="bert-tiny-64"))
    assert figures.contexts(study) == rows


def test_a_slow_network_favours_few_bytes(study: list[Record]) -> None:
    rows = figures.regimes(tables.tight(tables.of_subject(study, "resnet20", 1)))
    families = {(r["rtt"], r["bandwidth"]): r["family"] for r in rows if r["phase"] != "online"}
    assert families["0.02 ms", "10 Mbit/s"] in ("gmw", "gmw-dealer")
    online = {(r["rtt"], r["bandwidth"]): r["family"] for r in rows if r["phase"] == "online"}
    assert online["0.02 ms", "100 Gbit/s"] == "fss"


def test_a_leak_has_a_map_of_its_own(study: list[Record], tmp_path: Path) -> None:
    quick = next(record for record in study if record.setting.name == "stream-bfv")
    study.append(replace(quick, online=replace(quick.online, seconds=1e-4, rounds=1)))
    page = tmp_path / "report.html"
    report.write(study, page, read_prices())

    def winners(name: str) -> set[str]:
        with (tmp_path / f"report-{name}-resnet20.csv").open() as file:
            return {row["family"] for row in csv.DictReader(file)}

    assert "stream-bfv" in winners("regimes-with-stream")
    assert "stream-bfv" not in winners("regimes") | winners("computing-regimes-throughput")


def test_findings_are_of_suites_that_reveal_nothing(study: list[Record], tmp_path: Path) -> None:
    """Their figures leave the others out, and a study of such others alone has figures to show."""
    quick = next(record for record in study if record.setting.name == "stream-bfv")
    study.append(replace(quick, online=replace(quick.online, seconds=1e-4, rounds=1)))
    texts = [finding.text for finding in findings(study, read_prices())]
    assert len(texts) == 3
    assert not any("stream" in text for text in texts)
    page = tmp_path / "report.html"
    report.write([record for record in study if record.setting.reveals_order], page, read_prices())
    assert 'id="time-parts-resnet20"' in page.read_text()


def test_idle_energy_is_told_apart(study: list[Record]) -> None:
    rows = figures.energy_parts(tables.of_subject(study, "resnet20", 1))
    idle = {r["network"]: r["value"] for r in rows if r["part"] == "online idle"}
    assert idle["WAN_S"] > 1000 * idle["LAN_S"] > 0


def test_a_wide_area_network_takes_energy_for_bytes(study: list[Record]) -> None:
    records = tables.of_subject(study, "resnet20", 1)
    joules: dict[str, float] = {}
    for row in figures.carried_energy(records):
        joules[row["network"]] = max(joules.get(row["network"], 0.0), row["value"])
    most = max(record.offline.bytes + record.online.bytes for record in records)
    assert 0 < joules["WAN_M"] <= 800 * most / 1e9
    assert joules["LAN_S"] == 0


def test_without_a_base_there_is_no_report(study: list[Record], tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="loopback"):
        report.write(
            [record for record in study if record.link], tmp_path / "r.html", read_prices()
        )


def test_the_commands_read_a_folder(study: list[Record], tmp_path: Path) -> None:
    for record in study:
        record.write(tmp_path)
    page = tmp_path / "page.html"
    result = CliRunner().invoke(app, ["study", "report", str(tmp_path), "-o", str(page)])
    assert result.exit_code == 0, result.output
    assert page.exists()
    result = CliRunner().invoke(app, ["study", "predict", str(tmp_path), "--network", "WAN_S"])
    assert result.exit_code == 0, result.output
    assert "Predicted on WAN_S" in result.output
    result = CliRunner().invoke(app, ["study", "validate", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "median error" in result.output


def test_every_family_has_a_colour_of_its_own() -> None:
    colours = charts.colours(charts.FAMILIES)
    assert set(colours) == set(charts.FAMILIES) >= {suite.name for suite in SUITES}
    assert len(set(colours.values())) == len(colours)
    assert len(set(charts.COLOURS)) == len(charts.COLOURS)
    with pytest.raises(Misuse, match="11 families of settings have 10 colours"):
        charts.colours([str(family) for family in range(11)])


@pytest.mark.browser
def test_the_page_fits_a_phone_and_a_desk(study: list[Record], tmp_path: Path) -> None:
    page_file = tmp_path / "report.html"
    report.write(study, page_file, read_prices())

    async def look(width: int) -> None:
        async with on_a_screen(page_file, width) as page:
            boxes = await page.evaluate(
                "[...document.querySelectorAll('figure svg')].map(it => it.clientWidth)"
            )
            assert len(boxes) == len(NAMES) - TABLES
            assert all(200 < box <= width for box in boxes)
            # The answer comes first: three findings, each above its figure; tables are folded.
            order = await page.evaluate(
                "[...document.querySelectorAll('.finding, figure, details')].map(it => it.tagName)"
            )
            assert order[:7] == ["P", "FIGURE", "P", "FIGURE", "P", "FIGURE", "DETAILS"]
            assert (
                "takes least time a sample with"
                in await page.locator(".finding").first.inner_text()
            )
            assert not await page.locator("#latency table").is_visible()
            await page.locator("#latency summary").focus()
            await page.keyboard.press("Enter")
            assert "WAN_S" in await page.inner_text("#latency")

    for width in (375, 1280):
        asyncio.run(look(width))
