"""`privet plan`: which suite for a model, a network, a load and a budget, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from privet.cli import options, show
from privet.cli.console import Console
from privet.cli.suite_options import AnySuite
from privet.errors import Misuse
from privet.planner import advise
from privet.planner.advise import Advice
from privet.planner.choice import SettingChoice
from privet.planner.prices import read_prices
from privet.runtime.calibration import read_samples

NOTHING_FITS = 2
"""Exit code if no setting fits what was asked for."""


def plan(
    model: options.Model,
    rtt: Annotated[str, typer.Option(metavar="TIME", help="Round trip, such as 40ms.")] = "40ms",
    bandwidth: Annotated[
        str, typer.Option(metavar="RATE", help="Each way, such as 400Mbit.")
    ] = "400Mbit",
    rate: Annotated[
        str, typer.Option(metavar="N/s", help="Samples on average: 2/s, 30/min, 500/h.")
    ] = "1/s",
    batch: Annotated[
        str, typer.Option(metavar="N,...", help="Samples at once; several to choose from.")
    ] = "1",
    max_latency: Annotated[
        str | None, typer.Option(metavar="TIME", help="Most time for 99 of 100 answers.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(metavar="DOLLARS/month", help="Most for the service's side.")
    ] = None,
    no_dealer: Annotated[
        bool, typer.Option("--no-dealer", help="There is no third party to trust.")
    ] = False,
    threat: Annotated[
        str,
        typer.Option(help="Parties that only look (`semi-honest`) or deviate too (`malicious`)."),
    ] = "semi-honest",
    order_leak: Annotated[
        bool,
        typer.Option(
            "--allow-order-leak",
            help="The client may see values inside the network in a random order.",
        ),
    ] = False,
    parties: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="The host that evaluates sees neither model nor data: N parties share their key.",
        ),
    ] = None,
    cores: Annotated[
        int | None, typer.Option(min=1, help="Cores that the server has at most.")
    ] = None,
    suite: AnySuite = None,
    calibration: options.Calibration = None,
    shape: options.Shapes = None,
    input_range: options.InputRange = None,
    reveal: options.Reveal = "outputs",
    client_side: options.ClientSide = False,
    records: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Records of `privet study measure`; without any of this model, its layers are "
            "costed.",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    prices: options.Prices = None,
    price_table: options.PriceTable = "cpu",
    as_toml: Annotated[
        bool, typer.Option("--toml", help="Print the answer as a config.toml for `privet serve`.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Tell which suite and settings suit a model, what rules the others out, and what it costs.

    Ends with exit code 2 if nothing fits. The first plan on a machine finds its unit costs first.
    """
    advice = advise.plan(
        model,
        rtt=rtt,
        bandwidth=bandwidth,
        rate=_rate(rate),
        batch=options.counts(batch, 1),
        max_latency=max_latency,
        budget=_budget(budget),
        dealer=not no_dealer,
        threat=threat,
        order_leak=order_leak,
        parties=parties or 0,
        cores=cores,
        suite=suite,
        calibration=read_samples(calibration) if calibration else None,
        input_shapes=options.shapes(shape),
        input_range=input_range,
        reveal=reveal,
        client_side=client_side,
        records=records,
        prices=read_prices(price_table, prices),
        progress=show.steps(show.UNIT_COSTS, not as_json),
    )
    if as_toml:
        typer.echo(advice.config(), nl=False)
    elif as_json:
        typer.echo(json.dumps(advice.as_object()))
    else:
        _show(show.make_console(), advice)
    if advice.recommended is None:
        raise typer.Exit(NOTHING_FITS)


def _rate(text: str) -> float:
    number, _, unit = text.partition("/")
    seconds = {"": 1, "s": 1, "min": 60, "h": 3600, "day": 86400}.get(unit.strip())
    try:
        if seconds is None:
            raise ValueError
        return float(number) / seconds
    except ValueError as error:
        raise Misuse(f"{text!r} is no rate, such as 2/s, 30/min, 500/h or 1000/day") from error


def _budget(text: str | None) -> float | None:
    if text is None:
        return None
    number, _, unit = text.strip().lstrip("$").partition("/")
    try:
        if unit.strip() not in ("", "month"):
            raise ValueError
        return float(number)
    except ValueError as error:
        raise Misuse(f"{text!r} is no budget, such as 100/month") from error


def _show(console: Console, advice: Advice) -> None:
    question = advice.question
    suffix = f" over {question.network.name}, {question.rate:.3g} samples a second:"
    console.print(Text.assemble((advice.model, "bold"), suffix))
    numbers = ("batch", "online", "99 %", "offline", "pool", "cores", "sent/sample", "$/month")
    table = show.table(("", "setting"), numbers)
    table.add_column("ruled out by", max_width=48)
    for choice in advice.choices:
        is_recommended = choice is advice.recommended
        mark = (
            Text("*", "bold green") if is_recommended else Text("" if choice.fits else "x", "red")
        )
        table.add_row(mark, choice.setting.name, *_figures(choice), "; ".join(choice.against))
    console.print(table)
    for reason in advice.reasons:
        console.print(reason, soft_wrap=True)


def _figures(choice: SettingChoice) -> list[str]:
    if choice.online is None:
        return [""] * 8
    return [
        str(choice.batch),
        _seconds(choice.online),
        _seconds(choice.latency),
        _seconds(choice.offline),
        "" if choice.pool is None else str(choice.pool),
        str(choice.cores),
        "" if choice.bytes_per_sample is None else show.size(choice.bytes_per_sample),
        "" if choice.dollars_per_month is None else f"{choice.dollars_per_month:,.0f}",
    ]


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} s" if value < 100 else f"{value:.0f} s"
