"""A report of a study: one HTML page, and beside it every table as CSV and every figure as PNG."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import altair as alt

from privet.errors import Misuse
from privet.planner.prices import Prices
from privet.planner.record import Record
from privet.research.page import Page, TableColumn, columns
from privet.research.report import figures, tables
from privet.research.report.charts import drawings
from privet.research.report.findings import findings
from privet.research.report.standard import STUDY
from privet.research.report.tables import Row
from privet.research.report.validate import compare, errors


def write(records: Sequence[Record], output: Path, prices: Prices) -> list[Path]:
    """Writes the page to `output` and CSV and PNG files into its folder; all files written. Raises
    `Misuse` if no record is of the loopback."""
    if not tables.plain(records):
        raise Misuse("there is no record of the loopback to predict from: `privet study measure`")
    output.parent.mkdir(parents=True, exist_ok=True)
    page, paths = Page("What private inference costs", LEGEND), [output]
    figures_drawn = {drawing.name: drawing for drawing in drawings(records, prices)}

    def draw(name: str) -> None:
        figure = figures_drawn.pop(name)
        chart = figure.draw(figure.rows)
        page.figure(figure.name, chart, figure.caption)
        paths.extend([_write_png(output, name, chart), _write_csv(output, name, figure.rows)])

    for finding in findings(records, prices):
        page.finding(finding.text)
        draw(finding.figure)
    page.text(
        "Suites differ in whom they trust and in what they reveal, which no figure here shows: "
        "SECURITY.md has a table."
    )
    page.heading("Tables")
    for name, heading, column_names, rows in _tables(records, prices):
        page.table(name, heading, column_names, rows)
        paths.append(_write_csv(output, name, rows))
    page.heading("More figures, after those of the paper")
    for name in list(figures_drawn):
        draw(name)
    page.heading("Sources")
    _cite(page, records, prices)
    output.write_text(page.render())
    return paths


def _cite(page: Page, records: Sequence[Record], prices: Prices) -> None:
    machines = dict.fromkeys(
        f"{record.machine.get('cpu')}, {record.machine.get('cores')} cores"
        for record in records
        if record.machine
    )
    commits = dict.fromkeys(record.commit for record in records if record.commit)
    page.text(
        f"{len(records)} runs on {'; '.join(machines)}, both parties on the one machine, at "
        f"{', '.join(commits) or 'no commit'}. Times on networks are predicted from them; bytes "
        "and rounds are exact. The paper is Huang, Maeng and Suh, Beyond Latency (2026)."
    )
    page.text(f"Prices of {prices.date}: {prices.source}.")
    for item, origin in prices.sources.items():
        page.text(f"Price of {item}: {origin}.")
    page.text(
        f"A model with {tables.TWIN} at the end of its name has smooth activations and stands in "
        "for the one without it where a suite computes no others. Predictions leave out keys "
        "that serve again. Figure 6 of the paper (latency by sequence length) needs records of "
        f"{', '.join(STUDY.contexts)}."
    )


def _tables(
    records: Sequence[Record], prices: Prices
) -> list[tuple[str, str, Sequence[TableColumn], list[Row]]]:
    predicted = tables.predicted(records, prices)
    tables_of: list[tuple[str, str, Sequence[TableColumn], list[Row]]] = [
        ("measured", "Measured", MEASURED, tables.measured(records)),
        ("latency", "Latency, money and energy on the paper's networks", LATENCY, predicted),
        ("throughput", "Throughput on the paper's networks", THROUGHPUT, predicted),
    ]
    compared = compare(records)
    total = errors(compared)
    if total is not None:
        title = (
            f"Predicted and measured over links that delay: median error {total.median:.1%}, 95th "
            f"percentile {total.percentile_95:.1%}"
        )
        rows = [{**asdict(comparison), "error": 100 * comparison.error} for comparison in compared]
        tables_of.append(("validation", title, VALIDATION, rows))
    for model in tables.drawn_subjects(records):
        title = f"Figure 8 (b): what {model} pays for on WAN_M, by suite"
        rows = figures.main_costs(tables.largest_batches(records, model), prices)
        tables_of.append((f"main-costs-{model}", title, MAIN_COSTS, rows))
    return tables_of


def _write_csv(output: Path, name: str, rows: Sequence[Row]) -> Path:
    path = output.with_name(f"{output.stem}-{name}.csv")
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)
    return path


def _write_png(output: Path, name: str, chart: alt.TopLevelMixin) -> Path:
    path = output.with_name(f"{output.stem}-{name}.png")
    chart.save(path, ppi=110)
    return path


LEGEND = {"measured": "measured", "predicted": "predicted", "paper": "the paper's, on GPUs"}

MEASURED = (
    *columns("", model="model", setting="setting", batch="batch", link="link"),
    *columns("measured", offline_seconds="offline s", online_seconds="online s"),
    *columns("measured", cpu_seconds="CPU s", offline_bytes="offline bytes"),
    *columns("measured", online_bytes="online bytes", rounds="rounds", peak_mb="peak MB"),
    *columns("measured", material_bytes="material bytes", joules="J"),
    *columns("paper", paper_memory_gb="paper, GB"),
)

_NAMES = columns("", model="model", setting="setting", batch="batch", network="network")

LATENCY = (
    *_NAMES,
    *columns("predicted", online_latency="online s"),
    *columns("paper", paper_online_latency="paper"),
    *columns("predicted", latency="offline + online s"),
    *columns("paper", paper_latency="paper"),
    *columns("predicted", dollars_per_sample="$/sample", joules_per_sample="J/sample"),
    *columns("predicted", idle_joules_per_sample="idle J"),
)

THROUGHPUT = (
    *_NAMES,
    *columns("predicted", online_throughput="online/s"),
    *columns("paper", paper_online_throughput="paper, batch 128"),
    *columns("predicted", throughput="offline + online/s"),
    *columns("paper", paper_throughput="paper, batch 128"),
    *columns("predicted", pipelined_throughput="pipelined/s"),
)

VALIDATION = (
    *columns("", model="model", setting="setting", batch="batch", link="link", phase="phase"),
    *columns("measured", measured="measured s"),
    *columns("predicted", predicted="predicted s", error="error, %"),
)

MAIN_COSTS = (
    *columns("", family="suite", what="of", first="largest part"),
    *columns("predicted", first_share="%"),
    *columns("", second="next"),
    *columns("predicted", second_share="%"),
)
