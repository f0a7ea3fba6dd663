"""`privet study`: what private inference costs, measured, predicted and told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from privet.cli import digest, leakage, options, predictions, show
from privet.errors import Misuse
from privet.planner.cases import Case, find_models, plan_cases, time_left
from privet.planner.measure import Skipped, measure
from privet.planner.network import parse_network
from privet.planner.prices import read_prices
from privet.planner.record import Record, read_records
from privet.planner.setting import settings
from privet.research.report import report
from privet.research.report.standard import standard_cases

app = typer.Typer(help="What suites cost: measure, predict, report.", no_args_is_help=True)
app.command("predict")(predictions.predict_command)
app.command("validate")(predictions.validate_command)
app.command("pool")(predictions.pool_command)
app.command("tables")(digest.tables_command)
app.command("leakage")(leakage.leakage_command)

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
        "`fss-malicious`, `ckks`, `ckks-collective-3`, `stream`, `stream-packed`, "
        f"`stream-bfv`. [{SUITES}]",
    ),
]


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
    input_range: options.InputRange = None,
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
        cases = _product(output / "models", chosen, repeats or 1, input_range)
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


def _product(
    folder: Path,
    chosen: Sequence[str | None],
    repeats: int,
    input_range: tuple[float, float] | None,
) -> list[Case]:
    """Cases of all combinations of models, suites, batches and networks."""
    defaults = (MODELS, SUITES, "1", "none")
    models, suites, batches, networks = (
        given or usual for given, usual in zip(chosen, defaults, strict=True)
    )
    shapes = [None if it.strip() == "none" else parse_network(it) for it in networks.split(";")]
    wanted, sizes = settings(options.words(suites)), options.counts(batches, 1)
    files = find_models(options.words(models), folder)
    return plan_cases(files, wanted, sizes, shapes, repeats, input_range=input_range)


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
    numbers = ("batch", "offline s", "online s", "CPU s", "sent", "rounds", "peak MB")
    table = show.table(("model", "setting"), numbers)
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


@app.command("report")
def report_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Records of `measure`.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The page.", dir_okay=False)
    ] = Path("report.html"),
    prices: options.Prices = None,
    price_table: options.PriceTable = "cpu",
    as_json: options.AsJson = False,
) -> None:
    """Write one HTML page with every table and figure, and CSV and PNG files beside it."""
    written = report.write(read_records(folder), output, read_prices(price_table, prices))
    if as_json:
        typer.echo(json.dumps([str(path) for path in written]))
    else:
        show.make_console().print(f"{output}, and {len(written) - 1} files beside it.")
