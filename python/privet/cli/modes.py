"""`privet run --modes`: one model in several modes of a suite, as a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import typer
from rich.console import Console

from privet.cli import show
from privet.runtime import Run
from privet.runtime.modes import Mode
from privet.suites import Suite


def show_modes(
    console: Console, suite: Suite, runs: Sequence[tuple[Mode, Run]], as_json: bool
) -> None:
    """Prints what each mode promises and took."""
    if as_json:
        typer.echo(json.dumps([_as_object(mode, result) for mode, result in runs]))
        return
    numbers = ("total", "online", "offline", "online", "rounds", "memory", "units off")
    table = show.table(("mode", "guarantee"), numbers)
    for mode, result in runs:
        total = result.offline + result.online
        sent = [
            phase.bytes_client + phase.bytes_server for phase in (result.offline, result.online)
        ]
        memory = max(use.peak_mb for use in result.memory.values())
        table.add_row(
            mode.name,
            mode.guarantee,
            f"{total.seconds:.3f} s",
            f"{result.online.seconds:.3f} s",
            *map(show.size, sent),
            str(result.online.rounds),
            f"{memory:.0f} MB",
            str(result.max_fixed_point_error),
        )
    console.print(table)
    left_out = [name for name in suite.variants if name not in {mode.name for mode, _ in runs}]
    if left_out:
        console.print(f"Not run: {', '.join(left_out)}.")


def _as_object(mode: Mode, result: Run) -> dict[str, Any]:
    facts = result.config.facts()
    return {
        "mode": mode.name,
        "guarantee": mode.guarantee,
        **{key: facts[key] for key in ("rounds", "truncation", "field", "linear")},
        **show.weaknesses_fields(result.mode),
        "argmax_agrees": result.argmax_agrees,
        "max_fixed_point_error": result.max_fixed_point_error,
        "offline": asdict(result.offline),
        "online": asdict(result.online),
        "memory": {party: asdict(use) for party, use in result.memory.items()},
    }
