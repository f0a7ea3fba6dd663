"""A report of a study: one HTML page, and beside it every table as CSV and every figure as PNG."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import altair as alt
import vl_convert

from privet.errors import Misuse
from privet.planner.prices import Prices
from privet.planner.record import Record
from privet.research.report import figures, tables
from privet.research.report.columns import LATENCY, MAIN_COSTS, MEASURED, THROUGHPUT, VALIDATION
from privet.research.report.drawings import drawings
from privet.research.report.page import Column, Page
from privet.research.report.tables import Row
from privet.research.report.validate import compare, errors


def write(records: Sequence[Record], output: Path, prices: Prices) -> list[Path]:
    """Writes the page to `output` and CSV and PNG files into its folder; all files written.

    # Errors
    `Misuse` if no record is of the loopback.
    """
    if not tables.plain(records):
        raise Misuse("there is no record of the loopback to predict from: `privet study measure`")
    output.parent.mkdir(parents=True, exist_ok=True)
    page, written = Page("What private inference costs"), [output]
    _introduce(page, records, prices)
    for name, heading, columns, rows in _tables(records, prices):
        page.heading(heading)
        page.table(name, columns, rows)
        written.append(_write_csv(output, name, rows))
    page.heading("Figures, after those of the paper")
    for figure in drawings(records, prices):
        chart = figure.draw(figure.rows)
        page.figure(figure.name, vl_convert.vegalite_to_svg(chart.to_dict()), figure.caption)
        written += [_write_png(output, figure.name, chart)]
        written += [_write_csv(output, figure.name, figure.rows)]
    page.text(
        "Figure 6 of the paper (latency by sequence length) and its columns of BERT have no "
        "counterpart: no suite here runs Transformers."
    )
    output.write_text(page.render())
    return written


def _introduce(page: Page, records: Sequence[Record], prices: Prices) -> None:
    machines = dict.fromkeys(
        f"{it.machine.get('cpu')}, {it.machine.get('cores')} cores" for it in records if it.machine
    )
    commits = dict.fromkeys(it.commit for it in records if it.commit)
    page.text(
        f"{len(records)} runs on {'; '.join(machines)}, both parties on the one machine, at "
        f"{', '.join(commits) or 'no commit'}. Times on networks are predicted from them; bytes "
        "and rounds are exact. The paper is Huang, Maeng and Suh, Beyond Latency (2026)."
    )
    page.text(f"Prices of {prices.date}: {prices.source}.")
    for what, origin in prices.sources.items():
        page.text(f"Price of {what}: {origin}.")
    page.text(
        f"A model with {tables.TWIN} at the end of its name has smooth activations and stands in "
        "for the one without it in suite ckks. Its keys are made once and "
        "serve again, so that predictions leave its offline phase out."
    )


def _tables(
    records: Sequence[Record], prices: Prices
) -> list[tuple[str, str, Sequence[Column], list[Row]]]:
    predicted = tables.predicted(records, prices)
    found: list[tuple[str, str, Sequence[Column], list[Row]]] = [
        ("measured", "Measured", MEASURED, tables.measured(records)),
        ("latency", "Latency, money and energy on the paper's networks", LATENCY, predicted),
        ("throughput", "Throughput on the paper's networks", THROUGHPUT, predicted),
    ]
    compared = compare(records)
    told = errors(compared)
    if told is not None:
        title = (
            f"Predicted and measured over links that delay: median error {told.median:.1%}, 95th "
            f"percentile {told.percentile_95:.1%}"
        )
        rows = [{**asdict(it), "error": 100 * it.error} for it in compared]
        found.append(("validation", title, VALIDATION, rows))
    for model in tables.drawn_subjects(records):
        title = f"Figure 8 (b): what {model} pays for on WAN_M, by suite"
        rows = figures.main_costs(tables.largest_batches(records, model), prices)
        found.append((f"main-costs-{model}", title, MAIN_COSTS, rows))
    return found


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
