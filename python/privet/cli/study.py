"""`privet study`: what private inference costs, measured, predicted and told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from privet.cli import options, show
from privet.errors import Misuse
from privet.study import key_pool, report
from privet.study.cases import Case, find_models, plan_cases, time_left
from privet.study.measure import Skipped, measure
from privet.study.network import parse_network, parse_seconds
from privet.study.predict import predict
from privet.study.prices import read_prices
from privet.study.record import Record, read_record, read_records
from privet.study.setting import settings
from privet.study.standard import standard_cases
from privet.study.validate import Comparison, compare, errors

app = typer.Typer(help="What suites cost: measure, predict, report.", no_args_is_help=True)

MODELS = "m1,m2,nn5,resnet20,squeezenet,resnet50"
SUITES = "gmw,gmw-dealer,fss,ckks"

Folder = Annotated[
    Path, typer.Option("-o", "--output", metavar="DIR", help="Where records go.", file_okay=False)
]
Models = Annotated[
    str | None,
    typer.Option(metavar="NAME,...", help=f"Of `privet zoo list`, or ONNX files. [{MODELS}]"),
]
Suites = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help="`gmw`, `gmw-dealer` (each in three depths; `gmw-log` for one), `fss`, "
        f"`fss-malicious`, `ckks`, `ckks-collective-3`, `stream`. [{SUITES}]",
    ),
]


def _split(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _counts(text: str, least: int) -> list[int]:
    try:
        counts = [int(word) for word in _split(text)]
        if not counts or min(counts) < least:
            raise ValueError
    except ValueError as error:
        raise Misuse(f"{text!r} are no counts from {least} on, such as 1,8,64") from error
    return counts


@app.command("measure")
def measure_command(
    output: Folder,
    models: Models = None,
    suites: Suites = None,
    batches: Annotated[
        str | None, typer.Option(metavar="N,...", help="Samples at once. [1]")
    ] = None,
    networks: Annotated[
        str | None,
        typer.Option(
            metavar="NETWORK;...",
            help="Also over links that delay for real: presets (WAN_S, ...) or such as "
            "`40ms,400mbps`, with semicolons between; `none` is the loopback. [none]",
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="The full study, which takes hours.")
    ] = False,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Runs of each; times are medians. [1]")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Leave out what has a record already.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what would run, and for how long.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Run models for real, both parties on this machine, and keep a record of each run.

    Without models, suites, batches or networks, it is the standard study: all suites, batches up to
    128 and links that delay, in less than an hour on two cores.
    """
    chosen = (models, suites, batches, networks)
    if chosen == (None,) * 4:
        cases = standard_cases(output / "models", full=full, repeats=repeats)
    elif full:
        raise Misuse("--full is the whole of a study: leave out models, suites and the like")
    else:
        cases = _product(output / "models", chosen, repeats or 1)
    if dry_run:
        _tell(show.make_console(), cases, as_json)
        return
    told = Console(stderr=True)

    def progress(done: int, total: int, name: str, left: float | None) -> None:
        if name and not as_json:
            until = "" if left is None else f", about {left / 60:.1f} min left"
            told.print(f"[{done + 1}/{total}{until}] {name}", highlight=False, markup=False)

    records, skipped = measure(cases, output, resume=resume, progress=progress)
    if as_json:
        left_out = [{"case": str(it.case), "reason": it.reason} for it in skipped]
        typer.echo(json.dumps({"records": [_fields(it) for it in records], "skipped": left_out}))
        return
    _show(show.make_console(), records, skipped)


def _product(folder: Path, chosen: Sequence[str | None], repeats: int) -> list[Case]:
    """Cases of all combinations of models, suites, batches and networks."""
    defaults = (MODELS, SUITES, "1", "none")
    models, suites, batches, networks = (
        given or usual for given, usual in zip(chosen, defaults, strict=True)
    )
    shapes = [None if it.strip() == "none" else parse_network(it) for it in networks.split(";")]
    wanted, sizes = settings(_split(suites)), _counts(batches, 1)
    return plan_cases(find_models(_split(models), folder), wanted, sizes, shapes, repeats)


def _tell(console: Console, cases: Sequence[Case], as_json: bool) -> None:
    seconds = time_left(cases, 0, 0.0)
    if as_json:
        typer.echo(json.dumps({"cases": [str(case) for case in cases], "seconds": seconds}))
        return
    for case in cases:
        about = "" if case.seconds is None else f", {case.repeats} times: {case.seconds:.0f} s"
        console.print(f"{case}{about}", highlight=False, markup=False)
    total = "" if seconds is None else f", about {seconds / 60:.0f} min on two cores"
    console.print(f"{len(cases)} cases{total}.")


def _fields(record: Record) -> dict[str, object]:
    return {**asdict(record), "setting": record.setting.name, "layers": len(record.layers)}


def _show(console: Console, records: list[Record], skipped: list[Skipped]) -> None:
    table = Table(box=None, pad_edge=False)
    for title in ("model", "setting"):
        table.add_column(title)
    for title in ("batch", "offline s", "online s", "CPU s", "sent", "rounds", "peak MB"):
        table.add_column(title, justify="right")
    for it in records:
        phases = (it.offline, it.online)
        processors = sum(phase.cpu_seconds or 0.0 for phase in phases)
        table.add_row(
            it.model,
            it.setting.name,
            str(it.batch),
            f"{it.offline.seconds:.3f}",
            f"{it.online.seconds:.3f}",
            f"{processors:.3f}",
            show.size(sum(phase.bytes for phase in phases)),
            str(it.online.rounds),
            f"{max(it.peak_mb.values(), default=0.0):.0f}",
        )
    console.print(table)
    for left_out in skipped:
        console.print(f"Not run: {left_out.case}: {left_out.reason}", soft_wrap=True)


@app.command("validate")
def validate_command(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Records of runs with and without links.")
    ],
    as_json: options.AsJson = False,
) -> None:
    """Compare predictions with runs that `measure --networks` made over links that delay."""
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


def _compared(console: Console, found: list[Comparison]) -> None:
    table = Table(box=None, pad_edge=False)
    for title in ("model", "setting", "link", "phase"):
        table.add_column(title)
    for title in ("batch", "measured s", "predicted s", "error"):
        table.add_column(title, justify="right")
    for it in found:
        figures = f"{it.measured:.3f}", f"{it.predicted:.3f}", f"{it.error:+.1%}"
        table.add_row(it.model, it.setting, it.link, it.phase, str(it.batch), *figures)
    console.print(table)


@app.command("report")
def report_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Records of `measure`.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The page.", dir_okay=False)
    ] = Path("report.html"),
    prices: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Prices of your own (TOML).", exists=True)
    ] = None,
    price_table: Annotated[str, typer.Option(help="Which table of the price file.")] = "cpu",
    as_json: options.AsJson = False,
) -> None:
    """Write one HTML page with every table and figure, and CSV and PNG files beside it."""
    written = report.write(read_records(folder), output, read_prices(price_table, prices))
    if as_json:
        typer.echo(json.dumps([str(path) for path in written]))
    else:
        show.make_console().print(f"{output}, and {len(written) - 1} files beside it.")


@app.command("predict")
def predict_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Records of `measure`.")],
    network: Annotated[
        str, typer.Option(metavar="NETWORK", help="A preset, or such as 40ms,400mbps.")
    ] = "WAN_M",
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
    table = Table(box=None, pad_edge=False, title=f"Predicted on {there.name}")
    for title in ("model", "setting"):
        table.add_column(title)
    for title in ("batch", "online s", "both s", "online/s", "both/s", "pipelined/s"):
        table.add_column(title, justify="right")
    for row in rows:
        model, setting, batch, *figures = row.values()
        table.add_row(model, setting, str(batch), *(f"{figure:.3g}" for figure in figures))
    show.make_console().print(table)


@app.command("pool")
def pool_command(
    record: Annotated[
        Path, typer.Argument(metavar="RECORD.json", help="A record.", exists=True, dir_okay=False)
    ],
    network: Annotated[
        str, typer.Option(metavar="NETWORK", help="A preset, or such as 40ms,400mbps.")
    ] = "WAN_S",
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
    found = [key_pool.simulate(arrivals, load, size) for size in _counts(sizes, 0)]
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
    table = Table(box=None, pad_edge=False)
    for title in ("pieces", "mean s", "99 % within s", "longest wait s", "found it dry"):
        table.add_column(title, justify="right")
    for row in rows:
        size, *seconds, dry = row.values()
        table.add_row(str(size), *(f"{each:.3g}" for each in seconds), str(dry))
    console.print(table)
