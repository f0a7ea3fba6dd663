"""Every command of `privet` with its options, from the command line's own description."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from privet.cli.commands import COMMANDS


def reference() -> str:
    """One section for each command, in the order of `privet --help`."""
    commands = {name: entry.load(name) for name, entry in COMMANDS.items()}
    return "\n\n".join(_sections(commands, "privet")) + "\n"


def _sections(commands: Mapping[str, Any], path: str) -> Iterator[str]:
    for name, command in commands.items():
        full_name = f"{path} {name}"
        if command.hidden:
            continue
        if isinstance(command, TyperGroup):
            yield f"## `{full_name}`\n\n{(command.help or '').strip()}"
            yield from _sections(command.commands, full_name)
        else:
            assert isinstance(command, TyperCommand)
            yield section(full_name, command)


def section(path: str, command: TyperCommand) -> str:
    """A command's usage, help, arguments and options."""
    context = typer.Context(command, info_name=path)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    records = [param.get_help_record(context) for param in command.params]
    rows = [f"| `{_cell(names)}` | {_cell(text)} |" for names, text in filter(None, records)]
    table = ["| Option | Meaning |", "|---|---|", *rows] if rows else []
    heading = "#" * min(path.count(" ") + 1, 3)
    text = (command.help or "").split("\f")[0].strip()
    return "\n".join([f"{heading} `{path}`", "", f"```\n{usage}\n```", "", text, "", *table])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
