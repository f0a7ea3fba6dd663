"""`privet pool`: keep material ready."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from rich.console import Console

from privet import suites
from privet.cli import options, show
from privet.cli.suite_options import Suite
from privet.errors import Misuse
from privet.parties import Credentials, Pool, PoolEvent, Stock
from privet.parties.address import split_address

WATCH_SECONDS = 0.2
"""How often the main thread looks for signals."""


def pool(
    address: Annotated[str | None, typer.Argument(metavar="HOST:PORT", help="The server.")] = None,
    keys: Annotated[
        Path | None,
        typer.Option(help="Directory that `privet keys` wrote.", file_okay=False, exists=True),
    ] = None,
    state: options.State = Path("privet-state"),
    level: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL=COUNT", help="Pieces to keep ready for a model; once for each model."
        ),
    ] = None,
    max_disk: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Most material on disk in --state, such as 10GB."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Fill the pool and end.")] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Show what is ready, without a connection, and end.")
    ] = False,
    suite: Suite = suites.DEFAULT,
    dealer: options.Dealer = None,
    link: options.Link = None,
    server_name: options.ServerName = None,
    memory: options.Memory = None,
    timeout: options.Timeout = 120.0,
    as_json: options.AsJson = False,
) -> None:
    """Keep material ready for clients on this host, up to a level for each model."""
    console = show.make_console()
    if status:
        _show_status(console, state, as_json)
        return
    if address is None or keys is None or not level or max_disk is None:
        raise Misuse("a pool needs HOST:PORT, --keys, --level MODEL=COUNT and --max-disk SIZE")
    host, port = split_address(address)
    limits: list[int] = []

    def on_event(event: PoolEvent) -> None:
        _tell(console, event, limits[0], as_json)

    keeping = Pool(
        host,
        port,
        Credentials.from_directory(keys, "client"),
        state=state,
        levels=_levels(level),
        max_disk=max_disk,
        on_event=on_event,
        suite=suite,
        dealer=dealer,
        link=link,
        server_name=server_name,
        memory=memory,
        timeout=timeout,
    )
    limits.append(keeping.max_disk)
    end = _run(keeping, once)
    if as_json:
        levels = [asdict(level) for level in keeping.levels()]
        typer.echo(json.dumps({"event": end, "levels": levels, "bytes": keeping.bytes()}))
    else:
        console.print(f"{end.capitalize()}.")


def _run(pool: Pool, once: bool) -> str:
    """Runs a pool until it has `filled` up, or a signal has `stopped` it."""
    stopped = threading.Event()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        stopped.set()

    before = {name: signal.signal(name, stop) for name in (signal.SIGINT, signal.SIGTERM)}
    try:
        pool.start(once=once)
        while not stopped.is_set() and not pool.wait(WATCH_SECONDS):
            pass
        pool.close()
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
    return "stopped" if stopped.is_set() else "filled"


def _levels(words: Sequence[str]) -> dict[str, int]:
    levels = {}
    for word in words:
        model, _, count = word.rpartition("=")
        if not model or not count.isdigit() or model in levels:
            raise Misuse(f"--level {word} is not MODEL=COUNT, or names a model again")
        levels[model] = int(count)
    return levels


def _show_status(console: Console, state: Path, as_json: bool) -> None:
    stock = Stock.at(state)
    held, count = stock.holdings(), stock.bytes()
    if as_json:
        typer.echo(json.dumps({"ready": [asdict(it) for it in held], "bytes": count}))
        return
    if held:
        show.holdings(console, held)
    console.print(f"{show.size(count)} of material in {state}.")


def _tell(console: Console, event: PoolEvent, limit: int, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(_as_object(event, limit)))
        return
    if event.error is not None:
        again = f"trying again in {event.seconds:.1f} s"
        console.print(f"{event.model}: [red]{event.error}[/]; {again}", soft_wrap=True)
    elif event.kind == "full":
        console.print(f"{event.model}: no room on disk for another piece", soft_wrap=True)
    else:
        show.levels(console, event.levels, event.bytes, limit)


def _as_object(event: PoolEvent, limit: int) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "event": event.kind,
        "levels": [asdict(level) for level in event.levels],
        "bytes": event.bytes,
        "max_disk": limit,
    }
    if event.model is not None:
        fields["model"] = event.model
    if event.material is not None:
        fields["material"] = event.material
        fields["cost"] = asdict(event.cost) if event.cost else None
    if event.error is not None:
        fields["seconds"] = event.seconds
        fields["error"] = {"type": type(event.error).__name__, "message": str(event.error)}
    return fields
