"""`privet study predict`, `validate` and `pool`: what follows from records without running them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from privet.cli import options, show
from privet.errors import Misuse
from privet.planner import key_pool
from privet.planner.measure import measure
from privet.planner.network import parse_network, parse_seconds
from privet.planner.predict import predict
from privet.planner.record import read_record, read_records
from privet.research.report.standard import validation_cases
from privet.research.report.validate import Comparison, by_suite, compare, errors

OnNetwork = Annotated[
    str, typer.Option("--network", metavar="NETWORK", help="A preset, or such as 40ms,400mbps.")
]


def predict_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Records of `measure`.")],
    network: OnNetwork = "WAN_M",
    as_json: options.AsJson = False,
) -> None:
    """Tell latency and throughput of every record on a network."""
    there = parse_network(network)
    guesses = [predict(it, there) for it in read_records(folder) if it.link is None]
    fields = ("online_latency", "latency", "online_throughput", "throughput")
    rows = [
        {
            "model": it.record.model,
            "setting": it.record.setting.name,
            "batch": it.batch,
            **{name: getattr(it, name) for name in (*fields, "pipelined_throughput")},
        }
        for it in guesses
    ]
    if as_json:
        typer.echo(json.dumps({"network": vars(there), "predictions": rows}))
        return
    numbers = ("batch", "online s", "both s", "online/s", "both/s", "pipelined/s")
    table = show.table(("model", "setting"), numbers, f"Predicted on {there.name}")
    for row in rows:
        model, setting, batch, *figures = row.values()
        table.add_row(model, setting, str(batch), *(f"{figure:.3g}" for figure in figures))
    show.make_console().print(table)


def pool_command(
    record: Annotated[
        Path, typer.Argument(metavar="RECORD.json", help="A record.", exists=True, dir_okay=False)
    ],
    network: OnNetwork = "WAN_S",
    interval: Annotated[
        str, typer.Option(metavar="TIME", help="Between arrivals, on average.")
    ] = "10s",
    jobs: Annotated[int, typer.Option(min=1, help="How many arrive.")] = 200,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Arrivals instead: a time in seconds on each line.", exists=True
        ),
    ] = None,
    sizes: Annotated[str, typer.Option(metavar="N,...", help="Pieces in the pool.")] = "0,50,200",
    as_json: options.AsJson = False,
) -> None:
    """Simulate jobs that take material from pools of several sizes, each made after one is used."""
    it = predict(read_record(record), parse_network(network))
    load = key_pool.Load(it.online.seconds, it.offline.seconds)
    arrivals = (
        key_pool.read_trace(trace)
        if trace is not None
        else key_pool.poisson(jobs, parse_seconds(interval, "interval"))
    )
    found = [key_pool.simulate(arrivals, load, size) for size in options.counts(sizes, 0)]
    rows = [
        {
            "pool": each.size,
            "mean": each.mean,
            "p99": each.percentile(0.99),
            "longest_wait": max(each.waits),
            "dry": each.dry,
        }
        for each in found
    ]
    if as_json:
        latencies = [list(each.latencies) for each in found]
        told = {"online": load.online, "offline": load.offline, "latencies": latencies}
        typer.echo(json.dumps({**told, "pools": rows}))
        return
    console = show.make_console()
    console.print(
        f"{len(arrivals)} jobs on {it.network.name}: {load.online:.3f} s each with material, "
        f"{load.offline:.3f} s to make a piece."
    )
    numbers = ("pieces", "mean s", "99 % within s", "longest wait s", "found it dry")
    table = show.table((), numbers)
    for row in rows:
        size, *seconds, dry = row.values()
        table.add_row(str(size), *(f"{each:.3g}" for each in seconds), str(dry))
    console.print(table)


def validate_command(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Records of runs with and without links.")
    ],
    first_run: Annotated[
        bool,
        typer.Option("--run", help="First make the standard study's runs over links, if missing."),
    ] = False,
    suites: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="With --run, these alone. [all]")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare predictions with runs over links that delay, which `measure --networks` makes."""
    if first_run:
        _run(folder, options.words(suites) if suites else ())
    found = compare(read_records(folder))
    if not found:
        raise Misuse(f"{folder} has no case that was measured with a link and without")
    phases = {
        phase: errors([it for it in found if it.phase == phase]) for phase in ("online", "both")
    }
    if as_json:
        told = {phase: asdict(it) for phase, it in phases.items() if it is not None}
        rows = [{**asdict(it), "error": it.error} for it in found]
        typer.echo(json.dumps({"errors": told, "comparisons": rows}))
        return
    console = show.make_console()
    _compared(console, found)
    for phase, it in phases.items():
        if it is not None:
            console.print(
                f"{'Online' if phase == 'online' else 'Offline and online'}: median error "
                f"{it.median:.1%}, 95th percentile {it.percentile_95:.1%}, of {it.count} runs."
            )

    for suite, phase, it in by_suite(found):
        console.print(
            f"  {suite}, {phase}: {it.median:.1%} and {it.percentile_95:.1%} of {it.count}."
        )


def _run(folder: Path, suites: Sequence[str]) -> None:
    told = Console(stderr=True)

    def progress(done: int, total: int, name: str, left: float | None) -> None:
        if name:
            until = "" if left is None else f", about {left / 60:.1f} min left"
            told.print(f"[{done + 1}/{total}{until}] {name}", highlight=False, markup=False)

    cases = validation_cases(folder / "models", suites)
    _, skipped = measure(cases, folder, resume=True, progress=progress)
    for left_out in skipped:
        told.print(f"Not run: {left_out.case}: {left_out.reason}", soft_wrap=True)


def _compared(console: Console, found: list[Comparison]) -> None:
    words = ("model", "setting", "link", "phase")
    table = show.table(words, ("batch", "measured s", "predicted s", "error"))
    for it in found:
        figures = f"{it.measured:.3f}", f"{it.predicted:.3f}", f"{it.error:+.1%}"
        table.add_row(it.model, it.setting, it.link, it.phase, str(it.batch), *figures)
    console.print(table)
