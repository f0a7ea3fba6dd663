"""A report of simulated runs: figures as JSON, plots as PNG, and one HTML page that needs nothing
else, neither files nor a network."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from privet.research.simulation import charts
from privet.research.simulation.study import Case, Result, compare, table_two
from privet.research.simulation.sweep import Point, points
from privet.research.simulation.workload import WORKLOADS

STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em}
table{border-collapse:collapse;margin:1em 0}td,th{padding:.2em .7em;text-align:right}
th{border-bottom:1px solid #888}td:first-child,th:first-child,td:nth-child(2){text-align:left}
.chart{overflow-x:auto;margin:1.5em 0}"""

HEADINGS = {
    "workload": "workload",
    "policy": "policy",
    "rate": "requests/s",
    "notices": "notices",
    "delay": "D (s)",
    "paper_delay": "paper's D",
    "wait": "W (s)",
    "throughput": "requests done/s",
    "makespan": "makespan (s)",
    "speedup": "speed-up",
    "paper_speedup": "paper's",
    "utilisation": "cores in use",
    "baseline_delay": "baseline's D",
}


def write(folder: Path, case: Case, sweep: bool) -> list[Result]:
    """Runs the cases of the paper's table, and the sweeps if told, and writes the report of them
    into `folder`, with every job of the busiest run. The results of the table."""
    folder.mkdir(parents=True, exist_ok=True)
    table = list(compare(table_two(case)))
    swept = [(point, next(iter(compare([point.case])))) for point in points(case)] if sweep else []
    pictures = _pictures(table, swept)
    for name, picture in pictures.items():
        picture.save(folder / f"{name}.png", ppi=110)
    (folder / "figures.json").write_text(json.dumps(_content(case, table, swept), indent=1))
    (folder / "timeline.json").write_text(json.dumps(_timeline(_busiest(table))))
    (folder / "report.html").write_text(_page(case, table, pictures))
    return table


def _content(
    case: Case, table: Sequence[Result], swept: Sequence[tuple[Point, Result]]
) -> dict[str, Any]:
    return {
        "profile": {"name": case.profile.name, "source": case.profile.source},
        "cores": case.cores,
        "memory": case.memory,
        "seed": case.seed,
        "table": charts.rows(table),
        "sweeps": [
            {"sweep": point.sweep, "x": point.x, **row}
            for (point, _), row in zip(swept, charts.rows([it for _, it in swept]), strict=True)
        ],
    }


def _pictures(
    table: Sequence[Result], swept: Sequence[tuple[Point, Result]]
) -> dict[str, alt.TopLevelMixin]:
    found: dict[str, alt.TopLevelMixin] = {
        f"table-{workload}": charts.beside_paper(table, workload) for workload in WORKLOADS
    }
    for sweep in dict.fromkeys(point.sweep for point, _ in swept):
        at = [(point.x, result) for point, result in swept if point.sweep == sweep]
        found[f"sweep-{sweep}"] = alt.hconcat(
            charts.lines(at, sweep, "delay", "Mean delay D"),
            charts.lines(at, sweep, "delay_95", "Delay of the slowest 5 % begins at"),
        )
    found["timeline"] = charts.timeline(_busiest(table).record)
    return found


def _busiest(table: Sequence[Result]) -> Result:
    return max(table, key=lambda result: result.figures.utilisation)


def _timeline(result: Result) -> dict[str, Any]:
    """Every job of a run with its machine, cores and times in seconds."""
    row = charts.rows([result])[0]
    return {"run": row, "jobs": [vars(job) for job in result.record.jobs]}


def _page(case: Case, table: Sequence[Result], pictures: dict[str, alt.TopLevelMixin]) -> str:
    parts = [
        "<!doctype html><meta charset=utf-8><title>Simulated scheduling</title>",
        f"<style>{STYLE}</style><h1>Simulated scheduling of private inference</h1>",
        f"<p>Profile <b>{html.escape(case.profile.name)}</b>: {html.escape(case.profile.source)}. "
        f"{case.machines} machine(s) of {case.cores} cores and {case.memory / 2**30:.0f} GiB, seed "
        f"{case.seed}. The paper's figures are those of SwiftSNNI, Table 2.</p>",
        _table(charts.rows(table)),
    ]
    version = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    parts.append(
        f"<script>{vl_convert.javascript_bundle('window.vegaEmbed = vegaEmbed;', version)}</script>"
    )
    for name, picture in pictures.items():
        specification = json.dumps(picture.to_dict()).replace("</", "<\\/")
        parts.append(f'<div class=chart id="{name}"></div>')
        parts.append(f'<script>vegaEmbed("#{name}", {specification}, {{actions: false}})</script>')
    return "\n".join(parts)


def _table(rows: Iterable[dict[str, Any]]) -> str:
    head = "".join(f"<th>{title}</th>" for title in HEADINGS.values())
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(key, row[key])}</td>" for key in HEADINGS) + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _cell(key: str, value: Any) -> str:
    if value is None:
        return ""
    if key in ("notices", "utilisation"):
        return f"{value:.0%}"
    return f"{value:.4g}" if isinstance(value, float) else html.escape(str(value))
