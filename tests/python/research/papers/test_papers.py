"""The papers as data, what runs for their items, and the pages made from records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from privet.cli.papers import app
from privet.errors import Misuse
from privet.research.papers import items, swiftsnni
from privet.research.papers.page import page
from privet.research.papers.paper import NAMES, Grid, Item, paper
from privet.research.papers.record import PaperRecord, read
from privet.research.papers.workplace import Workplace
from privet.research.simulation import profile_file, study
from privet.research.simulation.record import figures
from privet.research.simulation.workload import Traffic

PAGES = Path(__file__).parents[4] / "docs" / "reference" / "papers"

HOURS = {("slytherin", item) for item in ("table-2", "figure-5", "table-3")}
"""Items that are large however quick they are asked to be."""

QUICK = [
    ("seconnds", "table-1"),
    ("seconnds", "accuracy"),
    ("swiftsnni", "table-1"),
    ("swiftsnni", "exclusivity"),
    ("swiftsnni", "lengths"),
    ("swiftsnni", "partition"),
    ("beyond-latency", "network"),
    ("ppstream", "table-4"),
    ("ppstream", "table-5"),
    ("ppstream", "table-6"),
    ("slytherin", "accuracy"),
]
"""Items that take a few seconds when asked to be quick; the others run in the slow tests."""

SLOW = [
    (name, item.name)
    for name in NAMES
    for item in paper(name).items
    if not item.absent and (name, item.name) not in {*QUICK, *HOURS}
]


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    return Workplace(tmp_path_factory.mktemp("papers"), quick=True)


@pytest.mark.parametrize("name", NAMES)
def test_every_item_runs_or_says_why_not(name: str) -> None:
    article = paper(name)
    names = [item.name for item in article.items]
    assert len(names) == len(set(names))
    runners = {
        name.replace("_", "-")
        for name, member in vars(items.module_of(article)).items()
        if not name.startswith("_")
        and getattr(member, "__annotations__", None) == {"at": "Workplace", "return": "Grid"}
    }
    assert runners == {item.name for item in article.items if not item.absent}


@pytest.mark.parametrize("name", NAMES)
def test_pages_are_what_their_records_make(name: str) -> None:
    """`privet papers report -o docs/reference/papers/records --pages docs/reference/papers`."""
    assert (PAGES / f"{name}.md").read_text() == page(paper(name), PAGES / "records")


def run(at: Workplace, name: str, item: str) -> Grid:
    article = paper(name)
    record = items.run(article, article.item(item), at)
    assert record.grid.rows
    record.write(at.folder, article, article.item(item))
    assert read(at.folder, article, article.item(item)) == PaperRecord(
        Grid(record.grid.columns, {k: tuple(v) for k, v in record.grid.rows.items()}),
        record.machine,
        record.when,
        record.commit,
        round(record.seconds, 1),
    )
    return record.grid


@pytest.mark.parametrize(("name", "item"), QUICK)
def test_quick_items_run(at: Workplace, name: str, item: str) -> None:
    run(at, name, item)


@pytest.mark.parametrize(
    ("name", "item"),
    [("seconnds", "table-1"), ("swiftsnni", "partition")],
)
def test_what_no_clock_measures_is_what_its_page_says(name: str, item: str, tmp_path: Path) -> None:
    """An older record is made anew by `privet papers run -o docs/reference/papers/records`."""
    article = paper(name)
    record = read(PAGES / "records", article, article.item(item))
    assert record is not None
    rows = items.run(article, article.item(item), Workplace(tmp_path)).grid.rows
    assert {row: list(cells) for row, cells in rows.items()} == {
        row: list(cells) for row, cells in record.grid.rows.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize(("name", "item"), SLOW)
def test_all_items_run(at: Workplace, name: str, item: str) -> None:
    run(at, name, item)


def test_an_order_matters_once_a_queue_stops_at_its_first(at: Workplace) -> None:
    """The page's finding on SwiftSNNI's two policies."""
    grid = run(at, "swiftsnni", "exclusivity")
    for row in ("none", "model"):
        assert grid.cell(row, "mixed, FCFS") == grid.cell(row, "mixed, priority")
    delays = [grid.cell("head of line", f"mixed, {policy}") for policy in ("FCFS", "priority")]
    assert float(delays[0] or 0) > float(delays[1] or 0)


def test_lengths_of_jobs_explain_first_come_first_served() -> None:
    """The page's other finding: the paper's delay and makespan follow from 90 s for VGG-16, and not
    from the lengths that FLOPs imply."""
    table = paper("swiftsnni").item("lengths").printed
    targets = [float(table.cell("mixed, fcfs, 1/s", column) or 0) for column in ("D", "makespan")]
    results = []
    for profile in (swiftsnni._lasting(swiftsnni.IMPLIED), profile_file.read("paper")):
        case = study.SimulationCase(profile, policy="fcfs", traffic=Traffic(1.0), jobs_per_model=1)
        outcome = figures(study.simulate(case))
        results.append([outcome.delay, outcome.makespan])
    assert results[0] == pytest.approx(targets, rel=0.1)
    assert max(a / b for a, b in zip(results[1], targets, strict=True)) < 0.5


def test_the_network_alone_takes_longer_where_it_is_slower(at: Workplace) -> None:
    """More so by its trips for one sample, and by its bytes in the paper's batches."""
    grid = run(at, "beyond-latency", "network")

    def seconds(batch: int, network: str, column: str) -> float:
        return float(grid.cell(f"BERT-Base, batch {batch}, {network}", column) or 0)

    for scheme in ("FSS", "A2B", "`gmw`"):
        slow, fast, near = (
            seconds(1, network, f"{scheme} online") for network in ("WAN_S", "WAN_F", "LAN_F")
        )
        assert slow > fast > 1000 * near > 0
        assert seconds(1, "WAN_S", f"{scheme} both") > slow
        wide = [seconds(128, network, f"{scheme} online") for network in ("WAN_S", "WAN_F")]
        assert wide[1] < fast / 64
        assert slow / fast < wide[0] / wide[1]


def test_what_cannot_run_says_why(at: Workplace) -> None:
    article = paper("slytherin")
    absent = replace(article.item("figure-5"), absent="it takes two machines")
    with pytest.raises(Misuse, match="it takes two machines"):
        items.run(article, absent, at)
    with pytest.raises(Misuse, match="has no item 'table-9'; it has table-1"):
        article.item("table-9")
    with pytest.raises(Misuse, match="there is no paper 'sigma'"):
        paper("sigma")


def test_a_row_has_a_cell_for_each_column() -> None:
    with pytest.raises(ValueError, match="row 'a' has 1 cells, not 2"):
        Grid(("x", "y"), {"a": [1.0]})


def test_a_record_that_is_none_is_refused(tmp_path: Path) -> None:
    article = paper("swiftsnni")
    item: Item = article.item("figure-2")
    (tmp_path / article.name).mkdir()
    (tmp_path / article.name / "figure-2.json").write_text("{}")
    with pytest.raises(Misuse, match="is no record of an item"):
        read(tmp_path, article, item)


def test_the_commands_list_run_and_report(tmp_path: Path) -> None:
    listing = CliRunner().invoke(app, ["list", "seconnds"])
    assert "table-3" in listing.output
    result = CliRunner().invoke(app, ["run", "swiftsnni", "figure-2", "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    second = CliRunner().invoke(
        app, ["run", "swiftsnni", "figure-2", "--resume", "-o", str(tmp_path)]
    )
    assert second.exit_code == 0, second.output
    report = CliRunner().invoke(app, ["report", "-o", str(tmp_path), "--pages", str(tmp_path)])
    assert report.exit_code == 0, report.output
    text = (tmp_path / "swiftsnni.md").read_text()
    assert "| one by one |" in text
    assert "`privet papers run swiftsnni table-2` takes" in text
