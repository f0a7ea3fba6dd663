"""`privet study`: what private inference costs, measured, predicted and reported."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from privet.cli import options, show
from privet.cli.console import Console
from privet.cli.inputs import read_input
from privet.compiler.compile import compile
from privet.errors import Misuse
from privet.planner import key_pool
from privet.planner.cases import Case, find_models, plan_cases, time_left
from privet.planner.measure import Skipped, measure
from privet.planner.network import parse_network, parse_seconds
from privet.planner.predict import predict
from privet.planner.prices import read_prices
from privet.planner.record import Record, read_record, read_records
from privet.planner.setting import ALL, settings
from privet.research.report import report
from privet.research.report.standard import standard_cases, validation_cases
from privet.research.report.validate import Comparison, by_suite, compare, errors
from privet.research.stream.leakage import attacks, correlations
from privet.suites import STREAM_TRUST

app = typer.Typer(help="What suites cost: measure, predict, report.", no_args_is_help=True)

FAMILIES = tuple(dict.fromkeys(setting.family for setting in ALL.values()))
MODELS = "m1,m2,nn5,resnet20,squeezenet,resnet50"

Models = Annotated[
    str | None,
    typer.Option(metavar="NAME,...", help=f"Of `privet zoo list`, or ONNX files. [{MODELS}]"),
]
Suites = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help=f"Families of settings or single ones: {', '.join(FAMILIES)}; "
        "with a depth of comparisons at its end, one setting of a family. [all between two that "
        "reveal nothing]",
    ),
]


@app.command("measure")
def measure_command(
    output: options.Records,
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
            "`40ms,400Mbit`, with semicolons between; `none` is the loopback. [none]",
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
    choices = (models, suites, batches, networks)
    if choices == (None,) * 4:
        cases = standard_cases(output / "models", full=full, repeats=repeats)
    elif full:
        raise Misuse("--full is the whole of a study: leave out models, suites and the like")
    else:
        cases = _product(output / "models", choices, repeats or 1, input_range)
    if dry_run:
        _print_cases(show.make_console(), cases, as_json)
        return
    progress = show.steps(show.CASES, not as_json)
    records, skipped = measure(cases, output, resume=resume, progress=progress)
    if as_json:
        left_out = [{"case": str(entry.case), "reason": entry.reason} for entry in skipped]
        typer.echo(
            json.dumps({"records": [_fields(record) for record in records], "skipped": left_out})
        )
        return
    _show(show.make_console(), records, skipped)


def _product(
    folder: Path,
    choices: Sequence[str | None],
    repeats: int,
    input_range: tuple[float, float] | None,
) -> list[Case]:
    """Cases of all combinations of models, suites, batches and networks."""
    usual_settings = ",".join(setting.name for setting in ALL.values() if setting.usual)
    defaults = (MODELS, usual_settings, "1", "none")
    models, suites, batches, networks = (
        choice or usual for choice, usual in zip(choices, defaults, strict=True)
    )
    shapes = [
        None if text.strip() == "none" else parse_network(text) for text in networks.split(";")
    ]
    suite_settings, sizes = settings(options.words(suites)), options.counts(batches, 1)
    files = find_models(options.words(models), folder)
    return plan_cases(files, suite_settings, sizes, shapes, repeats, input_range=input_range)


def _print_cases(console: Console, cases: Sequence[Case], as_json: bool) -> None:
    seconds = time_left(cases, 0, 0.0)
    if as_json:
        typer.echo(json.dumps({"cases": [str(case) for case in cases], "seconds": seconds}))
        return
    for case in cases:
        about = "" if case.seconds is None else f", {case.repeats} times: {case.seconds:.0f} s"
        console.print(f"{case}{about}", highlight=False)
    total = "" if seconds is None else f", about {seconds / 60:.0f} min on two cores"
    console.print(f"{len(cases)} cases{total}.")


def _fields(record: Record) -> dict[str, object]:
    return {**asdict(record), "setting": record.setting.name, "layers": len(record.layers)}


def _show(console: Console, records: list[Record], skipped: list[Skipped]) -> None:
    numbers = ("batch", "offline s", "online s", "CPU s", "sent", "rounds", "peak MB")
    table = show.table(("model", "setting"), numbers)
    for record in records:
        phases = (record.offline, record.online)
        processors = sum(phase.cpu_seconds or 0.0 for phase in phases)
        table.add_row(
            record.model,
            record.setting.name,
            str(record.batch),
            f"{record.offline.seconds:.3f}",
            f"{record.online.seconds:.3f}",
            f"{processors:.3f}",
            show.size(sum(phase.bytes for phase in phases)),
            str(record.online.rounds),
            f"{max(record.peak_mb.values(), default=0.0):.0f}",
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
    paths = report.write(read_records(folder), output, read_prices(price_table, prices))
    if as_json:
        typer.echo(json.dumps([str(path) for path in paths]))
    else:
        show.make_console().print(f"{output}, and {len(paths) - 1} files beside it.")


OnNetwork = Annotated[
    str, typer.Option("--network", metavar="NETWORK", help="A preset, or such as 40ms,400Mbit.")
]


@app.command("predict")
def predict_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Records of `measure`.")],
    network: OnNetwork = "WAN_M",
    as_json: options.AsJson = False,
) -> None:
    """Tell latency and throughput of every record on a network."""
    link = parse_network(network)
    guesses = [predict(record, link) for record in read_records(folder) if record.link is None]
    fields = ("online_latency", "latency", "online_throughput", "throughput")
    rows = [
        {
            "model": guess.record.model,
            "setting": guess.record.setting.name,
            "batch": guess.batch,
            **{name: getattr(guess, name) for name in (*fields, "pipelined_throughput")},
        }
        for guess in guesses
    ]
    if as_json:
        typer.echo(json.dumps({"network": vars(link), "predictions": rows}))
        return
    numbers = ("batch", "online s", "both s", "online/s", "both/s", "pipelined/s")
    table = show.table(("model", "setting"), numbers, f"Predicted on {link.name}")
    for row in rows:
        model, setting, batch, *figures = row.values()
        table.add_row(model, setting, str(batch), *(f"{figure:.3g}" for figure in figures))
    show.make_console().print(table)


@app.command("pool")
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
    sizes: Annotated[
        str, typer.Option(metavar="N,...", help="Material entries in the pool.")
    ] = "0,50,200",
    as_json: options.AsJson = False,
) -> None:
    """Simulate jobs that take material from pools of several sizes, each made after one is used."""
    cost = predict(read_record(record), parse_network(network))
    load = key_pool.PoolLoad(cost.online.seconds, cost.offline.seconds)
    arrivals = (
        key_pool.read_trace(trace)
        if trace is not None
        else key_pool.poisson(jobs, parse_seconds(interval, "interval"))
    )
    outcomes = [key_pool.simulate(arrivals, load, size) for size in options.counts(sizes, 0)]
    rows = [
        {
            "pool": outcome.size,
            "mean": outcome.mean,
            "p99": outcome.percentile(0.99),
            "longest_wait": max(outcome.waits),
            "dry": outcome.empty,
        }
        for outcome in outcomes
    ]
    if as_json:
        latencies = [list(outcome.latencies) for outcome in outcomes]
        document = {"online": load.online, "offline": load.offline, "latencies": latencies}
        typer.echo(json.dumps({**document, "pools": rows}))
        return
    console = show.make_console()
    console.print(
        f"{len(arrivals)} jobs on {cost.network.name}: {load.online:.3f} s each with material, "
        f"{load.offline:.3f} s to make an entry."
    )
    numbers = ("entries", "mean s", "99 % within s", "longest wait s", "found it empty")
    table = show.table((), numbers)
    for row in rows:
        size, *seconds, empty = row.values()
        table.add_row(str(size), *(f"{duration:.3g}" for duration in seconds), str(empty))
    console.print(table)


@app.command("validate")
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
    cases = compare(read_records(folder))
    if not cases:
        raise Misuse(f"{folder} has no case that was measured with a link and without")
    phases = {
        phase: errors([case for case in cases if case.phase == phase])
        for phase in ("online", "both")
    }
    if as_json:
        document = {phase: asdict(cost) for phase, cost in phases.items() if cost is not None}
        rows = [{**asdict(case), "error": case.error} for case in cases]
        typer.echo(json.dumps({"errors": document, "comparisons": rows}))
        return
    console = show.make_console()
    _compared(console, cases)
    for phase, off in phases.items():
        if off is not None:
            console.print(
                f"{'Online' if phase == 'online' else 'Offline and online'}: median error "
                f"{off.median:.1%}, 95th percentile {off.percentile_95:.1%}, of {off.count} runs."
            )

    for suite, phase, off in by_suite(cases):
        console.print(
            f"  {suite}, {phase}: {off.median:.1%} and {off.percentile_95:.1%} of {off.count}."
        )


def _run(folder: Path, suites: Sequence[str]) -> None:
    cases = validation_cases(folder / "models", suites)
    _, skipped = measure(cases, folder, resume=True, progress=show.steps(show.CASES))
    for left_out in skipped:
        Console(stderr=True).print(f"Not run: {left_out.case}: {left_out.reason}", soft_wrap=True)


def _compared(console: Console, cases: list[Comparison]) -> None:
    words = ("model", "setting", "link", "phase")
    table = show.table(words, ("batch", "measured s", "predicted s", "error"))
    for case in cases:
        figures = f"{case.measured:.3f}", f"{case.predicted:.3f}", f"{case.error:+.1%}"
        table.add_row(case.model, case.setting, case.link, case.phase, str(case.batch), *figures)
    console.print(table)


@app.command("leakage")
def leakage_command(
    model: options.Model,
    input: Annotated[
        list[Path] | None,
        typer.Option(help="Samples to measure on; random ones by default.", dir_okay=False),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="How many random samples.")] = 4,
    as_json: options.AsJson = False,
) -> None:
    """Tell what suite stream's permuted tensors tell: distance correlation, and attacks."""
    compiled = compile(model, smooth="function")
    shapes = {entry.name: entry.shape for entry in compiled.program.given}
    inputs: list[list[Any] | None] = [read_input(path, shapes) for path in input or ()]
    inputs = inputs or [None] * samples
    rows, rates = correlations(compiled, inputs), attacks()
    if as_json:
        document = [asdict(row) for row in rows]
        typer.echo(json.dumps({"trust": STREAM_TRUST, "correlations": document, "attacks": rates}))
        return
    console = show.make_console()
    numbers = ("length", "tensors", "measured", "paper")
    table = show.table((), numbers, "Distance correlation before and after")
    for row in rows:
        paper = "" if row.paper is None else f"{row.paper:.4f}"
        table.add_row(f"2^{row.exponent}", str(row.tensors), f"{row.correlation:.4f}", paper)
    console.print(table)
    names = list(next(iter(rates.values())))
    table = show.table(("order of each request",), names, "Weights found by repeated queries")
    for name, row_found in rates.items():
        table.add_row(name, *(f"{rate:.2f}" for rate in row_found.values()))
    console.print(table)
    console.print("1 is all weights of a dense layer up to order and size, 0 as much as by chance.")
    show.trust(console, STREAM_TRUST)
