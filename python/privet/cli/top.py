"""`privet top`: a service's state in a terminal, as it changes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from privet.cli import options, show
from privet.errors import LinkError

PRE, ON, FETCH, BAD = "blue", "dark_orange", "cyan", "red"
PHASES = {"pre": ("T_pre", PRE), "on": ("T_on", ON), "fetch": ("fetch", FETCH)}
WIDTH = 60
"""Characters of the timeline."""

SPAN_SECONDS = 60.0
"""What the timeline shows."""


def top(
    address: options.ControlPlane,
    keys: options.Keys,
    role: options.OperatorRole = "operator",
    token: options.Token = None,
    server_name: options.ServerName = None,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Look once and stop.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Watch a service: queues, jobs on each core, stock and machines."""
    from privet.service.watch import Watch

    console = show.make_console()
    watch = Watch(address, Path(keys), role, token, server_name)
    if as_json:
        typer.echo(json.dumps(watch.state()))
        return
    if once:
        console.print(picture(watch.state()))
        return
    with Live(picture(watch.state()), console=console, screen=True, auto_refresh=False) as live:
        try:
            while True:
                time.sleep(every)
                try:
                    live.update(picture(watch.state()), refresh=True)
                except LinkError as error:
                    live.update(Text(str(error), style=BAD), refresh=True)
        except KeyboardInterrupt:
            return


def picture(state: dict[str, Any]) -> RenderableType:
    """One look at a service."""
    return Group(
        _head(state),
        Columns([_queues(state), _stock(state), _ended(state)], padding=(0, 2)),
        _cores(state),
        _running(state),
    )


def _head(state: dict[str, Any]) -> RenderableType:
    health = "draining" if state["draining"] else state["not_ready"] or "ready"
    style = "green" if health == "ready" else BAD
    text = Text.assemble(("Privet ", "bold"), (health, style))
    for machine in state["machines"]:
        text.append(
            f"\n{machine['name']}: {machine['cores_taken']}/{machine['cores']} cores, "
            f"{show.size(machine['memory_taken'])} of {show.size(machine['memory'])}"
            f"{', is drained' if machine['draining'] else ''}"
        )
    last = state["last"]
    if last["mean_delay"] is not None:
        text.append(
            f"\nlast {last['seconds']:.0f} s: {last['per_second']:.2f} done a second, delay "
            f"{last['mean_delay']:.2f} s (95 % within {last['delay_95']:.2f} s), wait "
            f"{last['mean_wait']:.2f} s, cores {last['utilisation']:.0%} busy"
        )
    up = int(state["now"] - state["started"])
    text.append(f"\npolicy {state['policy']}, up {up // 3600} h {up // 60 % 60} min", "dim")
    return text


def _table(title: str, *heads: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, title_style="bold")
    for head in heads:
        table.add_column(head.lstrip("#"), justify="right" if head[0] == "#" else "left")
    return table


def _queues(state: dict[str, Any]) -> Table:
    table = _table("Queues", "queue", "#jobs", "#oldest s")
    for name, queue in state["queues"].items():
        since = [job["since"] for job in queue["first"]]
        oldest = f"{state['now'] - min(since):.1f}" if since else ""
        table.add_row(name, str(queue["length"]), oldest)
    return table


def _stock(state: dict[str, Any]) -> Table:
    table = _table("Stock", "model", "suite", "#entries")
    for row in state["stock"]:
        table.add_row(row["model"], row["suite"], str(row["entries"]))
    return table


def _ended(state: dict[str, Any]) -> Table:
    table = _table("Ended", "how", "#jobs")
    for outcome, count in state["counts"]["ended"].items():
        table.add_row(outcome, str(count), style="" if outcome == "done" else BAD)
    return table


def _running(state: dict[str, Any]) -> Table:
    table = _table("Running", "job", "phase", "model", "suite", "core", "#seconds", "#of about")
    for job in state["running"]:
        phase, style = PHASES[job["phase"]]
        table.add_row(
            job["job"],
            Text(phase, style=style),
            job["model"],
            job["suite"],
            f"{job['machine']} {','.join(map(str, job['cores']))}",
            f"{state['now'] - job['started']:.1f}",
            f"{job['expected_end'] - job['started']:.1f}",
        )
    return table


def _cores(state: dict[str, Any]) -> Panel:
    """The last minute of each core: what it did most of the time in each step."""
    rows: dict[tuple[str, int], list[str]] = {
        (machine["name"], core): [""] * WIDTH
        for machine in state["machines"]
        for core in range(machine["cores"])
    }
    start, step = state["now"] - SPAN_SECONDS, SPAN_SECONDS / WIDTH
    running = [{**job, "ended": state["now"], "failure": None} for job in state["running"]]
    for job in [*state["timeline"], *running]:
        style = BAD if job["failure"] else PHASES[job["phase"]][1]
        first = max(0, int((job["started"] - start) / step))
        for core in job["cores"]:
            row = rows.get((job["machine"], core))
            if row is not None and job["ended"] > start:
                last = min(WIDTH - 1, int((job["ended"] - start) / step))
                row[first : last + 1] = [style] * (last + 1 - first)
    text = Text()
    for (machine, core), row in rows.items():
        text.append(f"{machine} {core:>3} ", "dim")
        for style in row:
            text.append("█" if style else "·", style or "dim")
        text.append("\n")
    text.append(f"{SPAN_SECONDS:.0f} s  ", "dim")
    for name, style in PHASES.values():
        text.append(f"█ {name}  ", style)
    text.append("█ failed", BAD)
    return Panel(text, title="Cores", title_align="left", expand=False)
