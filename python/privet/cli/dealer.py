"""`privet dealer`: make material for pairs of parties."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.text import Text

from privet.cli import options, show
from privet.cli.asking import until_stopped
from privet.cli.configuration import Config
from privet.cli.console import Console
from privet.logs import log_to_stderr
from privet.runtime import Credentials, Dealer, Dealt, hangup
from privet.runtime.dealer import MOST_BYTES, PATIENCE_SECONDS
from privet.runtime.hangup import Hangup
from privet.runtime.quantities import split_address
from privet.runtime.shortage import take_all_files


def dealer(
    keys: options.Keys,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where to listen.")
    ] = "127.0.0.1:7401",
    most_bytes: Annotated[
        int, typer.Option(min=1, help="Refuse entries that take more bytes than this.")
    ] = MOST_BYTES,
    patience: Annotated[
        float, typer.Option(min=0.1, help="Seconds that a party waits for the other one.")
    ] = PATIENCE_SECONDS,
    revoked: options.Revoked = None,
    timeout: options.Timeout = 120.0,
    _trace: options.Trace = None,
    _config: Config = None,
    as_json: options.AsJson = False,
) -> None:
    """Deal material to clients and servers; run it where neither of them has a say.

    SIGHUP reads certificates again; deals under way go on. SIGTERM or Ctrl-C stops it.
    """
    hangup.hold()
    log_to_stderr()
    take_all_files()
    host, port = split_address(listen)
    lock = threading.Lock()
    console = show.make_console()

    def on_dealt(dealt: Dealt) -> None:
        with lock:
            _show(console, dealt, as_json)

    def credentials() -> Credentials:
        return Credentials.from_directory(keys, "dealer")

    with Dealer(
        credentials(),
        host=host,
        port=port,
        timeout=timeout,
        most_bytes=most_bytes,
        patience=patience,
        revoked=revoked,
        on_dealt=on_dealt,
    ) as dealing:

        async def reload() -> None:
            dealing.renew(await asyncio.to_thread(credentials))

        async def main() -> None:
            with Hangup(reload, "certificates"):
                address = "{}:{}".format(*dealing.address)
                if as_json:
                    typer.echo(json.dumps({"event": "listening", "address": address}))
                else:
                    console.print(f"Dealing at {address}; stop with Ctrl-C.")
                await _until_stopped(dealing)
            typer.echo(json.dumps({"event": "stopped"}) if as_json else "Stopped.")

        asyncio.run(main())


async def _until_stopped(dealing: Dealer) -> None:
    serving = asyncio.create_task(asyncio.to_thread(dealing.serve_forever))
    stopped = asyncio.create_task(until_stopped())
    await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    dealing.close()
    await serving


def _show(console: Console, dealt: Dealt, as_json: bool) -> None:
    if as_json:
        fields: dict[str, Any] = {"event": "failed" if dealt.error else "dealt", "peer": dealt.peer}
        if dealt.error is not None:
            fields["error"] = {"type": type(dealt.error).__name__, "message": str(dealt.error)}
        if dealt.cost is not None:
            fields |= {"model": dealt.model, "material": dealt.material, "cost": asdict(dealt.cost)}
        typer.echo(json.dumps(fields))
    elif dealt.error is not None:
        line = Text.assemble(f"party {dealt.peer[:16]}: ", (str(dealt.error), "red"))
        console.print(line, soft_wrap=True)
    elif dealt.cost is not None:
        cost = dealt.cost
        console.print(
            f"dealt {dealt.model} {dealt.material} in {cost.seconds:.3f} s: "
            f"{show.size(cost.bytes_client)} to the client, {show.size(cost.bytes_server)} to the "
            "server"
        )
