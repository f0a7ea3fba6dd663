"""The tables of docs/reference/study.md: what they hold, and how they come into a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.python.planner.records import MakeRecord
from typer.testing import CliRunner

from privet.cli import app
from privet.planner import machine, units
from privet.planner.prices import read_prices
from privet.planner.record import Record
from privet.planner.setting import ALL
from privet.planner.units import UnitCosts
from privet.research.report import digest as digests
from privet.research.report.digest import digest, markdown, number, write
from privet.research.report.standard import STUDY

MODEL = Path(__file__).resolve().parents[4] / "zoo" / "models" / "breast-mlp.onnx"
PAGE = Path(__file__).resolve().parents[4] / "docs" / "reference" / "study.md"


@pytest.fixture
def study(record: MakeRecord) -> list[Record]:
    """Both phases of ResNet-20 in some suites, a batch, and a run over a link."""
    return [
        record("gmw-log", model="resnet20", online={"rounds": 100}),
        record("gmw-blocks", model="resnet20", online={"rounds": 60}),
        record("fss", model="resnet20", online={"seconds": 0.1}),
        record("ckks", model="resnet20-silu", online={"seconds": 50.0, "rounds": 1}),
        record("stream-bfv", model="resnet20", online={"seconds": 0.2, "rounds": 20}),
        record("stream-bfv", model="resnet20", batch=8, online={"rounds": 20}),
        record("stream-bfv", model="resnet20", link="40ms,400mbps", online={"seconds": 1.3}),
    ]


def test_every_table_tells_what_was_found(study: list[Record]) -> None:
    made = digest(study, read_prices())
    latency = made["latency"].splitlines()
    assert latency[2].startswith("| ResNet-20, LAN_S | 0.10 | 1.10 |")
    assert (
        latency[3]
        == "| the paper's, on a GPU | 0.024 | 0.21 | 0.058 | 0.074 |  |  | 1.7 |  |  |  |  |  |"
    )
    assert "| ResNet-20 | 10 |  | 60 to 100 | 1 |  | 20 |" in made["rounds"]
    assert made["validation"].count("stream-bfv") == 2
    assert "resnet20, stream-bfv | 8 |" in made["batches"]
    assert "cells won" in made["regimes"]
    assert "resnet20, gmw-blocks" in made["spending"]
    assert digest([], read_prices()) == {}


def test_tables_go_between_their_markers(study: list[Record], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- latency -->\nold\n<!-- end -->\nb\n<!-- other -->\n<!-- end -->\n")
    for it in study:
        it.write(tmp_path)
    done = CliRunner().invoke(app, ["study", "tables", str(tmp_path), "--page", str(page)])
    assert done.exit_code == 0, done.output
    assert "No marker for regimes" in done.output
    text = page.read_text()
    assert "old" not in text
    assert text.startswith("a\n<!-- latency -->\n| Seconds |")
    assert text.endswith("|\n<!-- end -->\nb\n<!-- other -->\n<!-- end -->\n")
    assert write(text, {"latency": "new\n"}).count("new") == 1
    shown = CliRunner().invoke(app, ["study", "tables", str(tmp_path)])
    assert "<!-- regimes -->" in shown.output


def test_the_documentation_has_room_for_every_table(study: list[Record]) -> None:
    page = PAGE.read_text()
    for name in (*digest(study, read_prices()), "costed"):
        assert f"<!-- {name} -->" in page


def test_costs_by_layers_are_put_beside_runs(
    record: MakeRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prices = {
        f"{it.kind} {phase}": {"run": 0.25}
        for it in ALL.values()
        for phase in ("offline", "online")
    }
    here = machine.describe()
    path = tmp_path / "units.json"
    UnitCosts(prices, prices, here["cpu"], here["cores"]).write(path)
    monkeypatch.setenv(units.VARIABLE, str(path))
    costed = {"breast-mlp": ("fss", "stream-bfv")}
    monkeypatch.setattr(digests, "STUDY", replace(STUDY, costed=costed))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / MODEL.name).write_bytes(MODEL.read_bytes())
    record("stream-bfv", model="breast-mlp").write(tmp_path)
    done = CliRunner().invoke(app, ["study", "tables", str(tmp_path), "--costed"])
    assert done.exit_code == 0, done.output
    assert "| breast-mlp, `stream-bfv` | 0.25, 0.25 | 1.00, 1.00 | 0.25, 0.25 |" in done.output


def test_figures_are_short() -> None:
    found = [number(it) for it in (0.01234, 0.5, 1.234, 12.6, 234.0, 12345.0)]
    assert found == ["0.012", "0.50", "1.23", "13", "230", "12,000"]
    assert markdown(("a", "b"), [("c", "d")]) == "| a | b |\n| --- | ---: |\n| c | d |\n"
