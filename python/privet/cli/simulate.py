"""`privet simulate`: the scheduler under a simulated clock, beside the paper's figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from privet.cli import options, show
from privet.cli.console import Console
from privet.research.simulation import overhead, report
from privet.research.simulation.profile_file import read
from privet.research.simulation.report import rows
from privet.research.simulation.study import (
    OURS,
    PAPERS,
    SimulationCase,
    SimulationResult,
    compare,
    points,
    printed,
)
from privet.research.simulation.workload import Traffic
from privet.runtime.quantities import parse_size
from privet.scheduler import named

COLUMNS = (
    ("policy", "{}"),
    ("notices", "{:.0%}"),
    ("delay", "{:.2f}"),
    ("paper_delay", "{:.2f}"),
    ("delay_95", "{:.1f}"),
    ("wait", "{:.2f}"),
    ("throughput", "{:.3f}"),
    ("makespan", "{:.0f}"),
    ("speedup", "{:.2f}x"),
    ("paper_speedup", "{:.2f}x"),
    ("utilisation", "{:.0%}"),
)
SWEPT = ("policy", "delay", "delay_95", "throughput", "makespan", "speedup")
TITLES = {
    "delay": "D s",
    "paper_delay": "paper's D",
    "delay_95": "95 % within s",
    "wait": "W s",
    "throughput": "done/s",
    "makespan": "makespan s",
    "speedup": "speed-up",
    "paper_speedup": "paper's",
    "utilisation": "cores in use",
}


def simulate(
    workload: Annotated[
        str,
        typer.Option(
            metavar="mixed|light|MODEL=N,...",
            help="The paper's workload 1 or 2, or requests of your own.",
        ),
    ] = "mixed",
    rate: Annotated[float, typer.Option(help="Requests a second, on average.")] = 1.0,
    cores: Annotated[int, typer.Option(help="Cores of a machine.", min=1)] = 96,
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Memory of a machine.")] = "256GiB",
    machines: Annotated[int, typer.Option(help="How many of them.", min=1)] = 1,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="`fcfs`, `priority`, `deadline` or `fair`, with `ahead+` (make material ahead) or "
            "`shared+` (cores by load) before it. Several to compare; by default the paper's two "
            "and ours."
        ),
    ] = None,
    notices: Annotated[
        float | None,
        typer.Option(help="Share of requests that are announced; by default none, then 0.25."),
    ] = None,
    lead: Annotated[float, typer.Option(help="Seconds from a notice to its request.")] = 30.0,
    beta: Annotated[float, typer.Option(help="Weight of age in `priority`.")] = 0.1,
    clients: Annotated[int, typer.Option(help="Clients that share the requests.", min=1)] = 1,
    jobs_per_model: Annotated[
        int | None, typer.Option(help="Most jobs of one model at a time (the paper's: 1).", min=1)
    ] = None,
    profile: Annotated[
        str, typer.Option(metavar="paper|ours|FILE", help="What jobs take.")
    ] = "paper",
    suite: Annotated[
        list[str] | None, typer.Option(help="Suites of the profile; by default all.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of arrivals and running times.")] = 1,
    sweep: Annotated[
        bool,
        typer.Option("--sweep", help="Also vary rate, notices, beta, machines, one at a time."),
    ] = False,
    report_to: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="DIR",
            help="Write the paper's whole table and plots there: HTML, PNG and JSON.",
            file_okay=False,
        ),
    ] = None,
    decisions: Annotated[
        int | None,
        typer.Option(metavar="JOBS", help="Only time decisions with that many jobs queued.", min=1),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Simulate the service on a machine that you need not have, and compare policies."""
    console = show.make_console()
    policies = policy or [*PAPERS, *OURS]
    for name in policies:
        named(name, beta)
    if decisions is not None:
        _decisions(console, policies, beta, decisions, as_json)
        return
    case = SimulationCase(
        read(profile),
        workload,
        policies[0],
        Traffic(rate, 0.0, lead, clients),
        tuple(suite or ()),
        cores,
        parse_size(memory) or 1,
        machines,
        beta,
        jobs_per_model,
        seed=seed,
    )
    shares = [notices] if notices is not None else [0.0, 0.25]
    if sweep and report_to is None:
        _swept(console, case, as_json)
        return
    results = list(compare(case.with_policies(policies, shares)))
    if as_json:
        typer.echo(json.dumps(_fields(case, results)))
    else:
        _show(console, case, results)
    if report_to is not None:
        report.write(report_to, case, sweep)
        if not as_json:
            console.print(f"The report is in {report_to / 'report.html'}.")


def _fields(case: SimulationCase, results: Sequence[SimulationResult]) -> dict[str, Any]:
    base = results[0].baseline
    return {
        "workload": case.workload,
        "rate": case.traffic.rate,
        "cores": case.cores,
        "memory": case.memory,
        "profile": case.profile.name,
        "seed": case.seed,
        "baseline": {
            "delay": base.delay,
            "wait": base.wait,
            "throughput": base.throughput,
            "makespan": base.makespan,
        },
        "runs": [
            {
                **row,
                "delay_of": dict(result.figures.delay_of),
                "ended": dict(result.figures.ended),
                "audited_events": result.record.audited,
            }
            for row, result in zip(rows(results), results, strict=True)
        ],
    }


def _show(console: Console, case: SimulationCase, results: Sequence[SimulationResult]) -> None:
    base = results[0].baseline
    console.print(
        f"Workload {case.workload}, {base.inputs} requests at {case.traffic.rate:g} a second; "
        f"{case.machines} x {case.cores} cores; profile {case.profile.name}, seed {case.seed}."
    )
    text = f"One by one on all cores of one machine: D {base.delay:.0f} s, W {base.wait:.0f} s, "
    text += f"{base.throughput:.3f} done/s, makespan {base.makespan:.0f} s"
    delay, makespan = (printed(case.workload, "ms-shark", name) for name in ("D", "makespan"))
    if delay is not None and makespan is not None and case.profile.name == "paper":
        text += f" (paper, rate unstated: {delay:.0f} s, {makespan:.0f} s)"
    console.print(f"{text}.", soft_wrap=True)
    lines = rows(results)
    columns = [column for column in COLUMNS if any(row[column[0]] is not None for row in lines)]
    heads = [TITLES.get(name, name) for name, _ in columns if name != "policy"]
    table = show.table(("policy",), heads)
    for row in lines:
        table.add_row(*(form.format(row[k]) if row[k] is not None else "" for k, form in columns))
    console.print(table)
    events = sum(result.record.audited for result in results)
    console.print(f"{events} events and actions audited, no rule broken.")


def _swept(console: Console, case: SimulationCase, as_json: bool) -> None:
    lines = [
        {"sweep": point.sweep, "x": point.x, **row}
        for point in points(case)
        for row in rows(list(compare([point.case])))
    ]
    if as_json:
        typer.echo(json.dumps(lines))
        return
    columns = (
        ("sweep", "{}"),
        ("x", "{:g}"),
        *(column for column in COLUMNS if column[0] in SWEPT),
    )
    table = show.table((), [TITLES.get(name, name) for name, _ in columns])
    for row in lines:
        table.add_row(*(form.format(row[name]) for name, form in columns))
    console.print(table)


def _decisions(
    console: Console, policies: Sequence[str], beta: float, queued: int, as_json: bool
) -> None:
    costs = [overhead.measure(named(name, beta), queued) for name in policies]
    if as_json:
        typer.echo(json.dumps([vars(entry) for entry in costs]))
        return
    numbers = ("queued", "decide ms", "99 % within", "submit ms", "finished ms")
    table = show.table(("policy",), numbers)
    for cost in costs:
        times = (cost.decide, cost.decide_99, cost.submit, cost.finished)
        table.add_row(
            cost.policy, str(cost.queued), *(f"{1000 * seconds:.3f}" for seconds in times)
        )
    console.print(table)
