"""A report of a study: one HTML page, and beside it every table as CSV and every figure as PNG."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import altair as alt
import vl_convert

from privet.errors import Misuse
from privet.study import charts, figures, tables
from privet.study.page import Column, Page
from privet.study.prices import Prices
from privet.study.record import Record
from privet.study.tables import Row
from privet.study.validate import compare, errors

MEASURED = (
    Column("model", "model"),
    Column("setting", "setting"),
    Column("batch", "batch"),
    Column("link", "link"),
    Column("offline_seconds", "offline s", "measured"),
    Column("online_seconds", "online s", "measured"),
    Column("cpu_seconds", "CPU s", "measured"),
    Column("offline_bytes", "offline bytes", "measured"),
    Column("online_bytes", "online bytes", "measured"),
    Column("rounds", "rounds", "measured"),
    Column("peak_mb", "peak MB", "measured"),
    Column("material_bytes", "material bytes", "measured"),
    Column("joules", "J", "measured"),
    Column("paper_memory_gb", "paper, GB", "paper"),
)

_NAMES = (
    Column("model", "model"),
    Column("setting", "setting"),
    Column("batch", "batch"),
    Column("network", "network"),
)

LATENCY = (
    *_NAMES,
    Column("online_latency", "online s", "predicted"),
    Column("paper_online_latency", "paper", "paper"),
    Column("latency", "offline + online s", "predicted"),
    Column("paper_latency", "paper", "paper"),
    Column("dollars_per_sample", "$/sample", "predicted"),
    Column("joules_per_sample", "J/sample", "predicted"),
    Column("idle_joules_per_sample", "idle J", "predicted"),
)

THROUGHPUT = (
    *_NAMES,
    Column("online_throughput", "online/s", "predicted"),
    Column("paper_online_throughput", "paper, batch 128", "paper"),
    Column("throughput", "offline + online/s", "predicted"),
    Column("paper_throughput", "paper, batch 128", "paper"),
    Column("pipelined_throughput", "pipelined/s", "predicted"),
)

VALIDATION = (
    Column("model", "model"),
    Column("setting", "setting"),
    Column("batch", "batch"),
    Column("link", "link"),
    Column("phase", "phase"),
    Column("measured", "measured s", "measured"),
    Column("predicted", "predicted s", "predicted"),
    Column("error", "error, %", "predicted"),
)


@dataclass(frozen=True)
class Figure:
    """A figure: its file name, rows, how to draw them, and what to say below."""

    name: str
    rows: list[Row]
    draw: Callable[[Sequence[Row]], alt.TopLevelMixin]
    caption: str


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
    for figure in _figures(records, prices):
        chart = figure.draw(figure.rows)
        page.figure(figure.name, vl_convert.vegalite_to_svg(chart.to_dict()), figure.caption)
        written += [_write_png(output, figure.name, chart)]
        written += [_write_csv(output, figure.name, figure.rows)]
    page.text(
        "Figure 6 of the paper (sequence length) is missing: no suite here runs Transformers yet."
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
    return found


def _figures(records: Sequence[Record], prices: Prices) -> list[Figure]:
    model = tables.main_subject(records)
    swept = tables.swept_subject(records)
    found: list[Figure] = []
    if swept is not None:
        rows = figures.batch_sweep(records, swept)
        text = f"Figure 1: throughput of {swept} by batch on WAN_F."
        found.append(Figure("batch-sweep", rows, charts.batch_sweep, text))
    hungry = figures.hungriest(records)
    if hungry is not None:
        text = (
            f"Figure 2: {figures.JOBS} jobs of {hungry.model} in batches of {hungry.batch} under "
            f"{hungry.setting.name} on WAN_S, by the size of the pool (simulated)."
        )
        found.append(Figure("pools", figures.pools(hungry), charts.pools, text))
    if model is None:
        return found
    cost = figures.cost_parts(records, model, prices)
    dollars = f"dollars a sample, prices {prices.name}"
    return [
        *found,
        Figure(
            "time-parts",
            figures.time_parts(records, model),
            charts.shares,
            f"Figure 3: where the time of {model} goes, batch 1, predicted.",
        ),
        Figure(
            "cost-parts",
            cost,
            lambda rows: charts.amounts(rows, dollars),
            f"Figure 4: what {model} costs, predicted.",
        ),
        Figure(
            "energy-parts",
            figures.energy_parts(records, model),
            lambda rows: charts.amounts(rows, "joules a sample"),
            f"Figure 5: energy of {model} by the paper's power table, idle apart, predicted.",
        ),
        Figure(
            "speed-sweep",
            figures.speed_sweep(records, model),
            charts.speed_sweep,
            f"Figure 7: latency of {model} on WAN_M if computing alone went faster, predicted.",
        ),
        Figure(
            "regimes",
            figures.regimes(records, model),
            charts.regimes,
            f"Figure 8: the quickest suite for {model}, batch 1, predicted.",
        ),
        Figure(
            "computing-regimes",
            figures.computing_regimes(records, model),
            charts.computing_regimes,
            f"Figure 8 by computing: the quickest suite for {model} at 70 ms, batch 1, predicted.",
        ),
    ]


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
