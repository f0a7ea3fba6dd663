"""A simulation as one HTML page that needs nothing else: its charts and its table."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt

from privet.research.page import Page, cell, columns
from privet.research.simulation.record import SimulationRecord
from privet.research.simulation.study import (
    Point,
    SimulationCase,
    SimulationResult,
    compare,
    points,
    table_two,
)
from privet.scheduler import Phase

LEGEND = {"predicted": "simulated", "paper": "the paper's"}

COLUMNS = (
    *columns("", workload="workload", policy="policy", rate="requests/s", notices="notices, %"),
    *columns("predicted", delay="D, s"),
    *columns("paper", paper_delay="paper's D, s"),
    *columns("predicted", wait="W, s", throughput="requests done/s", makespan="makespan, s"),
    *columns("predicted", speedup="speed-up"),
    *columns("paper", paper_speedup="paper's"),
    *columns("predicted", utilisation="cores in use, %", baseline_delay="baseline's D, s"),
)


def write(folder: Path, case: SimulationCase, sweep: bool) -> list[SimulationResult]:
    """Runs the cases of the paper's table, and the sweeps if asked, and writes the report of them
    into `folder`, with every job of the busiest run. The results of the table."""
    folder.mkdir(parents=True, exist_ok=True)
    table = list(compare(table_two(case)))
    swept = [(point, next(iter(compare([point.case])))) for point in points(case)] if sweep else []
    pictures = draw(table, swept)
    for name, picture in pictures.items():
        picture.save(folder / f"{name}.png", ppi=110)
    (folder / "figures.json").write_text(json.dumps(_content(case, table, swept), indent=1))
    (folder / "timeline.json").write_text(json.dumps(_timeline(_busiest(table))))
    (folder / "report.html").write_text(page(case, table, pictures))
    return table


def _content(
    case: SimulationCase,
    table: Sequence[SimulationResult],
    swept: Sequence[tuple[Point, SimulationResult]],
) -> dict[str, Any]:
    return {
        "profile": {"name": case.profile.name, "source": case.profile.source},
        "cores": case.cores,
        "memory": case.memory,
        "seed": case.seed,
        "table": rows(table),
        "sweeps": [
            {"sweep": point.sweep, "x": point.x, **row}
            for (point, _), row in zip(swept, rows([result for _, result in swept]), strict=True)
        ],
    }


def draw(
    table: Sequence[SimulationResult], swept: Sequence[tuple[Point, SimulationResult]] = ()
) -> dict[str, alt.TopLevelMixin]:
    """The pictures of a report, by name."""
    pictures: dict[str, alt.TopLevelMixin] = {
        f"table-{workload}": beside_paper(table, workload)
        for workload in dict.fromkeys(result.case.workload for result in table)
    }
    for sweep in dict.fromkeys(point.sweep for point, _ in swept):
        at = [(point.x, result) for point, result in swept if point.sweep == sweep]
        pictures[f"sweep-{sweep}"] = alt.vconcat(
            lines(at, sweep, "delay", "Mean delay D"),
            lines(at, sweep, "delay_95", "Delay of the slowest 5 % begins at"),
        )
    busiest = _busiest(table).record
    pictures["timeline"] = timeline(busiest)
    pictures["latency"] = latency(busiest)
    return pictures


def _busiest(table: Sequence[SimulationResult]) -> SimulationResult:
    return max(table, key=lambda result: result.figures.utilisation)


def _timeline(result: SimulationResult) -> dict[str, Any]:
    """Every job of a run with its machine, cores and times in seconds."""
    row = rows([result])[0]
    return {"run": row, "jobs": [vars(job) for job in result.record.jobs]}


def page(
    case: SimulationCase,
    table: Sequence[SimulationResult],
    pictures: Mapping[str, alt.TopLevelMixin],
) -> str:
    """The page of results and of their pictures, by name."""
    result_page, remaining = (
        Page("Simulated scheduling of private inference", LEGEND),
        dict(pictures),
    )
    for text, name in findings(table):
        result_page.finding(text)
        result_page.figure(name, remaining.pop(name), CAPTIONS[name.partition("-")[0]])
    result_page.heading("Every run")
    percent = ("notices", "utilisation")
    table_rows = [row | {key: 100 * row[key] for key in percent} for row in rows(table)]
    result_page.table("table", "Table 2 of the paper, and what was simulated", COLUMNS, table_rows)
    if remaining:
        result_page.heading("More figures")
    for name, picture in remaining.items():
        result_page.figure(name, picture, CAPTIONS[name.partition("-")[0]])
    result_page.heading("Sources")
    result_page.text(
        f"Profile {case.profile.name}: {case.profile.source}. {case.machines} machine(s) of "
        f"{case.cores} cores and {case.memory / 2**30:.0f} GiB, seed {case.seed}. The paper is "
        "SwiftSNNI, its figures those of Table 2; the baseline runs one request after the other."
    )
    return result_page.render()


CAPTIONS = {
    "table": "Dots are simulated, diamonds the paper's, dashes the baseline.",
    "sweep": "Each policy by what is swept.",
    "latency": "The busiest run by the time of arrival: a dot is a request, the line a mean.",
    "timeline": "What each core of the busiest run does until the first hundred requests are done.",
}


def findings(table: Sequence[SimulationResult]) -> list[tuple[str, str]]:
    """What the runs say, each with the name of its picture: how much sooner requests are answered
    than one after the other, which knows no notices either; how far that is from the paper, how
    busy cores are."""
    workloads = list(dict.fromkeys(result.case.workload for result in table))
    texts = []
    for workload in workloads:
        group = [result for result in table if result.case.workload == workload]
        without_notices = [result for result in group if not result.case.traffic.notices]
        best = min(without_notices, key=lambda result: result.figures.delay / result.baseline.delay)
        delay, alone = best.figures.delay, best.baseline.delay
        text = (
            f"Workload {workload}: with {best.case.traffic.rate:g} requests/s and no notices "
            f"policy {best.label} answers after {cell(delay)} s on average; one after the other "
            f"they take {cell(alone)} s, {cell(alone / delay)} times as long."
        )
        ratios = [
            result.figures.delay / result.paper_delay for result in group if result.paper_delay
        ]
        if ratios:
            text += (
                f" The paper has {len(ratios)} of these delays; ours are {min(ratios):.2f} to "
                f"{max(ratios):.2f} times its, {statistics.median(ratios):.2f} in the middle."
            )
        texts.append((text, f"table-{workload}"))
    busiest = _busiest(table)
    text = (
        f"Policy {busiest.label} on {busiest.case.workload} at {busiest.case.traffic.rate:g} "
        f"requests/s keeps most cores in use: {busiest.figures.utilisation:.0%}."
    )
    return [*texts, (text, "timeline")]


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


def rows(results: Sequence[SimulationResult]) -> list[dict[str, Any]]:
    """One flat row for each result; times in seconds."""
    return [
        {
            "workload": result.case.workload,
            "policy": result.label,
            "rate": result.case.traffic.rate,
            "notices": result.case.traffic.notices,
            "machines": result.case.machines,
            "beta": result.case.beta,
            "delay": result.figures.delay,
            "wait": result.figures.wait,
            "delay_95": result.figures.delay_95,
            "throughput": result.figures.throughput,
            "makespan": result.figures.makespan,
            "speedup": result.speedup,
            "utilisation": result.figures.utilisation,
            "baseline_delay": result.baseline.delay,
            "paper_delay": result.paper_delay,
            "paper_speedup": result.printed("speed-up"),
        }
        for result in results
    ]


def lines(
    results: Sequence[tuple[float, SimulationResult]], sweep: str, measure: str, title: str
) -> alt.Chart:
    """`measure` of the policies over a swept axis, on a logarithmic scale."""
    values = [
        {"x": x, "policy": result.case.policy, "y": getattr(result.figures, measure)}
        for x, result in results
    ]
    chart: alt.Chart = (
        alt.Chart(_data(values), title=title, width=280, height=200)
        .mark_line(point=True)
        .encode(
            x=alt.X("x:Q", title=TITLES[sweep]),
            y=alt.Y("y:Q", title="seconds", scale=alt.Scale(type="log")),
            color=alt.Color("policy:N", title="policy"),
            tooltip=["policy:N", "x:Q", "y:Q"],
        )
    )
    return chart


def beside_paper(results: Sequence[SimulationResult], workload: str) -> alt.TopLevelMixin:
    """Delay by policy and rate: dots, with the paper's as diamonds and the baseline's as dashes."""
    values = [
        {**row, "label": f"{row['rate']:g}/s, {row['notices']:.0%} notices"}
        for row in rows(results)
        if row["workload"] == workload
    ]
    base = alt.Chart(_data(values), width=120, height=260)
    scale = alt.Scale(type="log", nice=True)
    place = alt.X("policy:N", title=None, sort=None)
    marks = base.mark_point(filled=True, size=90).encode(
        x=place,
        y=alt.Y("delay:Q", title="mean delay D (s)", scale=scale),
        color=alt.Color("policy:N", legend=None, sort=None),
        tooltip=["policy:N", "delay:Q", "paper_delay:Q"],
    )
    # Screen readers have the paper's delay with ours.
    papers = (
        base.mark_point(shape="diamond", size=90, color="black", aria=False)
        .transform_filter("isValid(datum.paper_delay)")
        .encode(x=place, y=alt.Y("paper_delay:Q", scale=scale))
    )
    sequential = base.mark_rule(color="crimson", strokeDash=[4, 3]).encode(
        y=alt.Y("baseline_delay:Q", scale=scale)
    )
    by_load: alt.FacetChart = alt.layer(marks, papers, sequential).facet(
        facet=alt.Facet("label:N", title=None), columns=2
    )
    return by_load


def delays(record: SimulationRecord, steps: int = 20) -> list[dict[str, float]]:
    """Mean delay of the requests that arrived in each of `steps` equal spans of a run in which any
    did; in seconds."""
    last = max(entry.arrival for entry in record.inputs)
    spans: dict[int, list[float]] = {}
    for item in record.inputs:
        step = min(steps - 1, int(steps * item.arrival / last)) if last else 0
        spans.setdefault(step, []).extend([item.end - item.arrival] * item.count)
    return [
        {"arrival": (step + 0.5) * last / steps, "mean": statistics.fmean(values)}
        for step, values in sorted(spans.items())
    ]


def latency(record: SimulationRecord) -> alt.TopLevelMixin:
    """The delay of each request by the time of its arrival, and the mean over time."""
    values = [
        {"arrival": entry.arrival, "delay": entry.end - entry.arrival, "model": entry.model}
        for entry in record.inputs
    ]
    x = alt.X("arrival:Q", title="arrival (s)")
    # Screen readers have the means, and not a thousand dots.
    dots = (
        alt.Chart(_data(values), width=280, height=200)
        .mark_circle(size=12, opacity=0.5, aria=False)
        .encode(x=x, y=alt.Y("delay:Q", title="delay D (s)"), color=alt.Color("model:N"))
    )
    means = (
        alt.Chart(_data(delays(record)))
        .mark_line(color="black")
        .encode(x=x, y="mean:Q", tooltip=["arrival:Q", "mean:Q"])
    )
    layers: alt.TopLevelMixin = alt.layer(dots, means, title=f"Delay over time, {record.policy}")
    return layers


def timeline(record: SimulationRecord, limit: int = 100) -> alt.TopLevelMixin:
    """T_pre and T_on on each core until the first `limit` requests are served (the paper's
    Figure 5)."""
    first = sorted(record.inputs, key=lambda entry: entry.arrival)[:limit]
    last_end = max(entry.end for entry in first)
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
        if job.start < last_end
        for core in job.cores
    ]
    chart: alt.Chart = (
        alt.Chart(
            _data(values),
            title=f"T_pre and T_on per core, {record.policy}",
            width=280,
            height=320,
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
