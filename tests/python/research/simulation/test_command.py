"""`privet simulate`, and the report that it writes."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.browser import on_a_screen
from typer.testing import CliRunner

from privet.cli import app
from privet.errors import InputError, Misuse
from privet.research.papers.paper import paper
from privet.research.simulation import report
from privet.research.simulation.profile_file import read
from privet.research.simulation.study import SimulationCase, compare, printed


def run(*options: str) -> str:
    """What the command prints."""
    result = CliRunner().invoke(app, ["simulate", *options], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_the_command_prints_the_papers_figures_beside_ours() -> None:
    output = run("--workload", "light", "--policy", "fcfs", "--policy", "ahead+fcfs")
    assert "makespan 3260 s" in output
    assert re.search(r"^fcfs +0% .* 5\.24 .* 5\.46x", output, re.MULTILINE)
    assert re.search(r"^ahead\+fcfs +25%", output, re.MULTILINE)
    assert "no rule broken" in output


def test_json_is_for_programs() -> None:
    report = json.loads(run("--policy", "priority", "--notices", "0.5", "--rate", "2", "--json"))
    (entry,) = report["runs"]
    assert (entry["policy"], entry["notices"], entry["rate"]) == ("priority", 0.5, 2.0)
    assert entry["ended"] == {"done": 500}
    assert entry["speedup"] == pytest.approx(report["baseline"]["makespan"] / entry["makespan"])
    assert entry["audited_events"] > 3000
    assert set(entry["delay_of"]) == {"m1", "m2", "hinet", "alexnet", "vgg16"}


def test_decisions_are_timed() -> None:
    (entry,) = json.loads(run("--decisions", "500", "--policy", "fcfs", "--json"))
    assert entry["queued"] == 500
    assert entry["decide"] > 0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--workload", "heavy"], InputError),
        (["--policy", "lifo"], Misuse),
        (["--profile", "nowhere.toml"], InputError),
        (["--suite", "ckks"], InputError),
        (["--memory", "much"], Misuse),
        (["--rate", "0"], Misuse),
    ],
)
def test_wrong_options_are_told(options: list[str], error: type[Exception]) -> None:
    with pytest.raises(error):
        CliRunner().invoke(app, ["simulate", *options], catch_exceptions=False)


def test_the_papers_table_is_whole() -> None:
    rows = paper("swiftsnni").item("table-2").printed.rows
    assert len(rows) == 14
    for workload, policy in (row.split(", ", 1) for row in rows):
        speedup, makespan = (printed(workload, policy, name) for name in ("speed-up", "makespan"))
        assert makespan is not None
        if speedup is not None:
            base = printed(workload, "ms-shark", "makespan")
            assert base is not None
            assert speedup == pytest.approx(base / makespan, rel=0.015)
            assert printed(workload, policy, "done/s") == pytest.approx(500 / makespan, abs=0.006)


def test_charts_draw_without_a_browser(tmp_path: Path) -> None:
    case = SimulationCase(read("ours"), "light", "ahead+fcfs")
    (result,) = compare([case])
    for name, chart in (
        ("timeline", report.timeline(result.record)),
        ("latency", report.latency(result.record)),
        ("paper", report.beside_paper([result], "light")),
        ("lines", report.lines([(1.0, result)], "rate", "delay", "delay")),
    ):
        chart.save(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_delays_over_time_add_up_to_the_mean() -> None:
    (result,) = compare([SimulationCase(read("ours"), "light", "ahead+fcfs")])
    record, steps = result.record, report.delays(result.record, steps=1)
    assert [step["mean"] for step in steps] == [pytest.approx(result.figures.delay)]
    later = report.delays(record)
    assert 1 < len(later) <= 20
    arrivals = [step["arrival"] for step in later]
    assert arrivals == sorted(arrivals)
    # A request that waits for ever shows where it arrived, and nowhere else.
    slow = replace(record.inputs[0], end=record.inputs[0].end + 1e6)
    delays = report.delays(replace(record, inputs=[slow, *record.inputs[1:]]))
    assert [a != b for a, b in zip(later, delays, strict=True)].count(True) == 1


def test_findings_compare_with_the_baseline_without_notices() -> None:
    """The baseline knows no notices; with them a policy is quicker for that alone."""
    cases = SimulationCase(read("paper"), "m1=20,m2=20").with_policies(["fcfs"], (0.0, 0.25))
    plain, noticed = compare(cases)
    assert noticed.figures.delay < plain.figures.delay
    text, _ = report.findings([plain, noticed])[0]
    assert f"no notices policy fcfs answers after {plain.figures.delay:.3g} s" in text


@pytest.mark.browser
def test_the_page_fits_a_phone_and_a_desk(tmp_path: Path) -> None:
    cases = [SimulationCase(read("paper"), name, "ahead+fcfs") for name in ("mixed", "light")]
    results = list(compare(cases))
    file = tmp_path / "report.html"
    file.write_text(report.page(cases[0], results, report.draw(results)))

    async def look(width: int) -> None:
        async with on_a_screen(file, width) as page:
            boxes = await page.evaluate(
                "[...document.querySelectorAll('figure svg')].map(it => it.clientWidth)"
            )
            assert len(boxes) == 4
            assert all(150 < box <= width for box in boxes)
            # The answer comes first: a finding for each workload and one of the busiest run, each
            # above its figure; the table is folded.
            order = await page.evaluate(
                "[...document.querySelectorAll('.finding, figure, details')].map(it => it.tagName)"
            )
            assert order == ["P", "FIGURE", "P", "FIGURE", "P", "FIGURE", "DETAILS", "FIGURE"]
            findings = await page.locator(".finding").all_inner_texts()
            assert "Workload mixed" in findings[0]
            assert "times as long" in findings[0]
            assert not await page.locator("#table table").is_visible()
            await page.locator("#table summary").focus()
            await page.keyboard.press("Enter")
            assert "ahead+fcfs" in await page.inner_text("#table")

    for width in (375, 1280):
        asyncio.run(look(width))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_sweep_can_be_printed() -> None:
    output = run("--sweep")
    for name in ("rate", "notices", "machines", "beta"):
        assert re.search(rf"^ *{name} ", output, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_report_needs_nothing_else(tmp_path: Path) -> None:
    report.write(tmp_path / "out", SimulationCase(read("paper")), sweep=True)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<script src" not in page
    assert "<link" not in page
    assert page.count("<figure") == 8
    assert "shared+ahead+urgent" in page
    content = json.loads((tmp_path / "out" / "figures.json").read_text())
    assert len(content["table"]) == 84
    assert {sweep["sweep"] for sweep in content["sweeps"]} == {
        "rate",
        "notices",
        "machines",
        "beta",
    }
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".html", ".json", ".png"}
