"""`privet doctor`: what this machine has, and what to do about what it lacks."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from privet.cli import options
from privet.cli.console import Console
from privet.runtime.quantities import split_address

STYLES = {"ok": "green", "note": "yellow", "wrong": "bold red"}


def doctor(
    keys: Annotated[
        Path | None, typer.Option(help="Folder with certificates and keys to look at.")
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="Folder with state, as of `privet serve`, to look at.")
    ] = None,
    listen: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST:PORT", help="Where a service is to listen; again for more."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Tell what this machine has for private inference, and what to do about what it lacks.

    The exit code is 1 if something is wrong; what is merely slow or absent is a note.

    Example: privet doctor --keys keys --state privet-state --listen 0.0.0.0:7480
    """
    from privet.runtime.doctor import examine

    findings = list(examine(keys, state, [split_address(text) for text in listen or ()]))
    if as_json:
        typer.echo(json.dumps({"findings": [asdict(finding) for finding in findings]}))
    else:
        table = Table(box=None, pad_edge=False, show_header=False)
        for finding in findings:
            advice = f"{finding.found}\n{finding.advice}" if finding.advice else finding.found
            mark = Text(finding.state, style=STYLES[finding.state])
            table.add_row(finding.about, mark, advice)
        Console(highlight=False).print(table)
    raise typer.Exit(1 if any(finding.state == "wrong" for finding in findings) else 0)
