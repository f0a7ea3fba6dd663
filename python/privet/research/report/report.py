"""A report of a study: one HTML page, and beside it every table as CSV and every figure as PNG."""

from __future__ import annotations

import csv
import html
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from privet.errors import Misuse
from privet.planner.prices import Prices
from privet.planner.record import Record
from privet.research.report import figures, tables
from privet.research.report.charts import drawings
from privet.research.report.findings import findings
from privet.research.report.standard import STUDY
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
    figures_drawn = {it.name: it for it in drawings(records, prices)}

    def draw(name: str) -> None:
        figure = figures_drawn.pop(name)
        chart = figure.draw(figure.rows)
        page.figure(figure.name, vl_convert.vegalite_to_svg(chart.to_dict()), figure.caption)
        written.extend([_write_png(output, name, chart), _write_csv(output, name, figure.rows)])

    for found in findings(records, prices):
        page.finding(found.text)
        draw(found.figure)
    page.text(
        "Suites differ in whom they trust and in what they reveal, which no figure here shows: "
        "SECURITY.md has a table."
    )
    page.heading("Tables")
    for name, heading, columns, rows in _tables(records, prices):
        page.table(name, heading, columns, rows)
        written.append(_write_csv(output, name, rows))
    page.heading("More figures, after those of the paper")
    for name in list(figures_drawn):
        draw(name)
    page.heading("Sources")
    _cite(page, records, prices)
    output.write_text(page.render())
    return written


def _cite(page: Page, records: Sequence[Record], prices: Prices) -> None:
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
        "for the one without it where a suite computes no others. Predictions leave out keys "
        "that serve again. Figure 6 of the paper (latency by sequence length) needs records of "
        f"{', '.join(STUDY.contexts)}."
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
    total = errors(compared)
    if total is not None:
        title = (
            f"Predicted and measured over links that delay: median error {total.median:.1%}, 95th "
            f"percentile {total.percentile_95:.1%}"
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


STYLE = """:root{color-scheme:light}
body{font:16px/1.5 system-ui,sans-serif;max-width:1000px;margin:1em auto;padding:0 1em;
color:#1c1c1c;background:#fff}
h1{font-size:1.5em;line-height:1.2}h2{font-size:1.2em;margin-top:2em}
.wide{overflow:auto;max-height:75vh}table{border-collapse:collapse;font-size:.85em;white-space:nowrap}
td,th{padding:.15em .6em;text-align:right}th{border-bottom:1px solid #888}
td:first-child,th:first-child,td:nth-child(2),th:nth-child(2){text-align:left}
.finding{font-size:1.15em;margin-top:1.5em}summary{cursor:pointer;padding:.3em 0}
p,figcaption,summary{overflow-wrap:anywhere}
figure{margin:1em 0}figure svg{max-width:100%;height:auto}figcaption{color:#555;font-size:.9em}
.measured{background:#e8f1e4}.predicted{background:#eaf0f8}.paper{background:#f6efdf}
.key span{padding:.1em .5em;margin-right:.5em}"""


@dataclass(frozen=True)
class Column:
    """A column of a table: `kind` is `measured`, `predicted`, `paper` or empty."""

    key: str
    title: str
    kind: str = ""


@dataclass
class Page:
    """A page as it grows, part by part."""

    title: str
    parts: list[str] = field(default_factory=list)

    def heading(self, text: str) -> None:
        self.parts.append(f"<h2>{html.escape(text)}</h2>")

    def text(self, text: str) -> None:
        self.parts.append(f"<p>{html.escape(text)}</p>")

    def finding(self, text: str) -> None:
        self.parts.append(f"<p class=finding>{html.escape(text)}</p>")

    def table(
        self, name: str, title: str, columns: Sequence[Column], rows: Iterable[dict[str, Any]]
    ) -> None:
        """A table that is folded away and scrolls sideways on a narrow screen; empty columns are
        left out."""
        filled = list(rows)
        shown = [it for it in columns if any(row.get(it.key) is not None for row in filled)]
        head = "".join(f'<th class="{it.kind}">{html.escape(it.title)}</th>' for it in shown)
        body = "".join(
            "<tr>"
            + "".join(f'<td class="{it.kind}">{cell(row.get(it.key))}</td>' for it in shown)
            + "</tr>"
            for row in filled
        )
        self.parts.append(
            f'<details id="{name}"><summary>{html.escape(title)}</summary><div class=wide '
            f'tabindex=0 role=group aria-label="{html.escape(title)}"><table><thead><tr>{head}</tr>'
            f"</thead><tbody>{body}</tbody></table></div></details>"
        )

    def figure(self, name: str, svg: str, caption: str) -> None:
        self.parts.append(
            f'<figure id="{name}">{svg}<figcaption>{html.escape(caption)}</figcaption></figure>'
        )

    def render(self) -> str:
        key = (
            "<p class=key><span class=measured>measured</span><span class=predicted>predicted"
            "</span><span class=paper>the paper's, on GPUs</span></p>"
        )
        head = (
            "<!doctype html><html lang=en><meta charset=utf-8>"
            '<meta name=viewport content="width=device-width,initial-scale=1">'
            f"<title>{html.escape(self.title)}</title><style>{STYLE}</style>"
            f"<main><h1>{html.escape(self.title)}</h1>"
        )
        return head + key + "\n".join(self.parts) + "</main>\n"


def cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else html.escape(str(value))


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

MAIN_COSTS = (
    Column("family", "suite"),
    Column("what", "of"),
    Column("first", "largest part"),
    Column("first_share", "%", "predicted"),
    Column("second", "next"),
    Column("second_share", "%", "predicted"),
)
