"""`privet study leakage`: what suite `stream` tells its client about the order of values."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from privet.cli import options, show
from privet.cli.inputs import read_input
from privet.compile import compile
from privet.research.stream.leakage import attacks, correlations
from privet.suites import STREAM_TRUST


def leakage_command(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL.onnx", help="The model.", exists=True, dir_okay=False)
    ],
    input: Annotated[
        list[Path] | None,
        typer.Option(help="Samples to measure on; random ones by default.", dir_okay=False),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="How many random samples.")] = 4,
    as_json: options.AsJson = False,
) -> None:
    """Tell what suite stream's permuted tensors tell: distance correlation, and attacks."""
    compiled = compile(model, smooth="function")
    shapes = [compiled.program.values[it.value].shape for it in compiled.program.inputs]
    given: list[list[Any] | None] = [read_input(path, shapes) for path in input or ()]
    given = given or [None] * samples
    rows, found = correlations(compiled, given), attacks()
    if as_json:
        told = [asdict(row) for row in rows]
        typer.echo(json.dumps({"trust": STREAM_TRUST, "correlations": told, "attacks": found}))
        return
    console = show.make_console()
    table = Table(box=None, pad_edge=False, title="Distance correlation before and after")
    for title in ("length", "tensors", "measured", "paper"):
        table.add_column(title, justify="right")
    for row in rows:
        paper = "" if row.paper is None else f"{row.paper:.4f}"
        table.add_row(f"2^{row.exponent}", str(row.tensors), f"{row.correlation:.4f}", paper)
    console.print(table)
    table = Table(box=None, pad_edge=False, title="Weights found by repeated queries")
    table.add_column("order of each request")
    for attack in next(iter(found.values())):
        table.add_column(attack, justify="right")
    for name, row_found in found.items():
        table.add_row(name, *(f"{it:.2f}" for it in row_found.values()))
    console.print(table)
    console.print("1 is all weights of a dense layer up to order and size, 0 as much as by chance.")
    show.trust(console, STREAM_TRUST)
