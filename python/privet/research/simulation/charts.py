"""Charts of runs, as Altair objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from privet.research.simulation.record import Record
from privet.research.simulation.study import Result
from privet.scheduler import Phase

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
