"""A simulation as one HTML page that needs nothing else: its charts and its table."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from privet.research.simulation.record import Record
from privet.research.simulation.study import Case, Point, Result, compare, points, table_two
from privet.research.simulation.workload import WORKLOADS
from privet.scheduler import Phase

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
        "table": rows(table),
        "sweeps": [
            {"sweep": point.sweep, "x": point.x, **row}
            for (point, _), row in zip(swept, rows([it for _, it in swept]), strict=True)
        ],
    }


def _pictures(
    table: Sequence[Result], swept: Sequence[tuple[Point, Result]]
) -> dict[str, alt.TopLevelMixin]:
    found: dict[str, alt.TopLevelMixin] = {
        f"table-{workload}": beside_paper(table, workload) for workload in WORKLOADS
    }
    for sweep in dict.fromkeys(point.sweep for point, _ in swept):
        at = [(point.x, result) for point, result in swept if point.sweep == sweep]
        found[f"sweep-{sweep}"] = alt.hconcat(
            lines(at, sweep, "delay", "Mean delay D"),
            lines(at, sweep, "delay_95", "Delay of the slowest 5 % begins at"),
        )
    found["timeline"] = timeline(_busiest(table).record)
    return found


def _busiest(table: Sequence[Result]) -> Result:
    return max(table, key=lambda result: result.figures.utilisation)


def _timeline(result: Result) -> dict[str, Any]:
    """Every job of a run with its machine, cores and times in seconds."""
    row = rows([result])[0]
    return {"run": row, "jobs": [vars(job) for job in result.record.jobs]}


def _page(case: Case, table: Sequence[Result], pictures: dict[str, alt.TopLevelMixin]) -> str:
    parts = [
        "<!doctype html><meta charset=utf-8><title>Simulated scheduling</title>",
        f"<style>{STYLE}</style><h1>Simulated scheduling of private inference</h1>",
        f"<p>Profile <b>{html.escape(case.profile.name)}</b>: {html.escape(case.profile.source)}. "
        f"{case.machines} machine(s) of {case.cores} cores and {case.memory / 2**30:.0f} GiB, seed "
        f"{case.seed}. The paper's figures are those of SwiftSNNI, Table 2.</p>",
        _table(rows(table)),
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


#: Colour of each phase in a timeline.
PHASES = {"T_pre": "#4c78a8", "T_on": "#f58518"}
TITLES = {
    "rate": "Arrival rate (requests/s)",
    "notices": "Share of requests with a notice",
    "machines": "Machines",
    "beta": "Beta",
}


def _data(values: list[dict[str, Any]]) -> alt.InlineData:
    return alt.InlineData(values=values)


def rows(results: Sequence[Result]) -> list[dict[str, Any]]:
    """One flat row for each result; times in seconds."""
    return [
        {
            "workload": it.case.workload,
            "policy": it.label,
            "rate": it.case.traffic.rate,
            "notices": it.case.traffic.notices,
            "machines": it.case.machines,
            "beta": it.case.beta,
            "delay": it.figures.delay,
            "wait": it.figures.wait,
            "delay_95": it.figures.delay_95,
            "throughput": it.figures.throughput,
            "makespan": it.figures.makespan,
            "speedup": it.speedup,
            "utilisation": it.figures.utilisation,
            "baseline_delay": it.baseline.delay,
            "paper_delay": it.paper_delay,
            "paper_speedup": it.paper.speedup if it.paper else None,
        }
        for it in results
    ]


def lines(
    results: Sequence[tuple[float, Result]], sweep: str, measure: str, title: str
) -> alt.Chart:
    """`measure` of the policies over a swept axis, on a logarithmic scale."""
    values = [
        {"x": x, "policy": it.case.policy, "y": getattr(it.figures, measure)} for x, it in results
    ]
    chart: alt.Chart = (
        alt.Chart(_data(values), title=title, width=320, height=240)
        .mark_line(point=True)
        .encode(
            x=alt.X("x:Q", title=TITLES[sweep]),
            y=alt.Y("y:Q", title="seconds", scale=alt.Scale(type="log")),
            color=alt.Color("policy:N", title="policy"),
            tooltip=["policy:N", "x:Q", "y:Q"],
        )
    )
    return chart


def beside_paper(results: Sequence[Result], workload: str) -> alt.TopLevelMixin:
    """Delay by policy and rate: dots, with the paper's as diamonds and the baseline's as dashes."""
    values = [
        {**row, "label": f"{row['rate']:g}/s, {row['notices']:.0%} notices"}
        for row in rows(results)
        if row["workload"] == workload
    ]
    base = alt.Chart(_data(values), width=120, height=260)
    scale = alt.Scale(type="log", nice=True)
    place = alt.X("policy:N", title=None, sort=None)
    ours = base.mark_point(filled=True, size=90).encode(
        x=place,
        y=alt.Y("delay:Q", title="mean delay D (s)", scale=scale),
        color=alt.Color("policy:N", legend=None, sort=None),
        tooltip=["policy:N", "delay:Q", "paper_delay:Q"],
    )
    papers = (
        base.mark_point(shape="diamond", size=90, color="black")
        .transform_filter("isValid(datum.paper_delay)")
        .encode(x=place, y=alt.Y("paper_delay:Q", scale=scale))
    )
    sequential = base.mark_rule(color="crimson", strokeDash=[4, 3]).encode(
        y=alt.Y("baseline_delay:Q", scale=scale)
    )
    title = f"Workload {workload}: dots are simulated, diamonds the paper's, dashes the baseline"
    by_load: alt.FacetChart = (
        alt.layer(ours, papers, sequential)
        .facet(column=alt.Column("label:N", title=None))
        .properties(title=title)
    )
    return by_load


def timeline(record: Record, most: int = 100) -> alt.TopLevelMixin:
    """T_pre and T_on on each core until the first `most` requests are served (the paper's
    Figure 5)."""
    first = sorted(record.inputs, key=lambda it: it.arrival)[:most]
    until = max(it.end for it in first)
    values = [
        {
            "core": f"{job.machine}/{core:03d}",
            "start": job.start,
            "end": job.end,
            "phase": "T_pre" if job.phase is Phase.PRE else "T_on",
            "job": job.job,
            "model": job.model,
        }
        for job in record.jobs
        if job.start < until
        for core in job.cores
    ]
    chart: alt.Chart = (
        alt.Chart(
            _data(values),
            title=f"T_pre and T_on per core, {record.policy}",
            width=760,
            height=420,
        )
        .mark_bar()
        .encode(
            x=alt.X("start:Q", title="seconds"),
            x2="end:Q",
            y=alt.Y("core:N", title="core", axis=alt.Axis(labels=False, ticks=False)),
            color=alt.Color(
                "phase:N", scale=alt.Scale(domain=list(PHASES), range=list(PHASES.values()))
            ),
            tooltip=["job:N", "model:N", "start:Q", "end:Q"],
        )
    )
    return chart
