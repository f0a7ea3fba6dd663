"""`privet audit-log`: check the chain of a service's audit log."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from privet.cli import options
from privet.service.audit_log import check


def audit_log(
    file: Annotated[Path, typer.Argument(help="The file of `privet serve --audit`.", exists=True)],
    head: Annotated[
        str | None,
        typer.Option(help="A hash that this command printed before: the file must go on from it."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Check that nobody has changed the audit log of a service.

    Keep the hash that it prints elsewhere: with it as --head, lines that were cut off at the end
    are seen, too. The exit code is 1 if something is wrong.
    """
    report = check(file, head)
    if as_json:
        typer.echo(json.dumps(asdict(report)))
    else:
        for problem in report.problems:
            typer.echo(f"wrong: {problem}")
        cut = f", {report.cut} of them cut short by crashes" if report.cut else ""
        typer.echo(f"{report.lines} lines{cut}; the last has the hash {report.head}")
    raise typer.Exit(1 if report.problems else 0)
