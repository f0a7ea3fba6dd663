"""`privet zoo`: the benchmark models."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from privet import zoo as models
from privet.cli import options, show
from privet.errors import Misuse

app = typer.Typer(help="The benchmark models, built as ONNX files.", no_args_is_help=True)


@app.command("list")
def list_models(as_json: options.AsJson = False) -> None:
    """List the models that can be built."""
    entries = [models.describe(name) for name in models.names()]
    if as_json:
        typer.echo(json.dumps([asdict(entry) for entry in entries]))
        return
    words = ("name", "model", "input", "weights")
    table = show.table(words, ("parameters", "multiply-adds", "ReLUs"))
    for entry in entries:
        table.add_row(
            entry.name,
            entry.title,
            "x".join(map(str, entry.input_shape)),
            entry.weights,
            f"{entry.parameters:,}",
            f"{entry.multiply_accumulates:,}",
            f"{entry.relus:,}",
        )
    show.make_console().print(table)


@app.command()
def build(
    name: Annotated[str, typer.Argument(help="A name from `privet zoo list`.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Directory to write to.", file_okay=False)
    ] = Path(),
    as_json: options.AsJson = False,
) -> None:
    """Build a model with seeded random weights: it shows speed, never accuracy."""
    if name not in models.names():
        raise Misuse(f"there is no model {name!r}; `privet zoo list` shows the names")
    path = models.build(name, output)
    if as_json:
        typer.echo(json.dumps({"path": str(path), "bytes": path.stat().st_size}))
    else:
        typer.echo(f"{path} ({show.size(path.stat().st_size)})")
