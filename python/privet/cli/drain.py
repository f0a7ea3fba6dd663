"""`privet drain`: takes a machine of a service out, while the others serve."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from privet.cli import options, show
from privet.errors import PrivetError

GLANCE_SECONDS = 0.5


def drain(
    address: options.ControlPlane,
    machine: Annotated[
        str, typer.Argument(metavar="MACHINE", help="Its name, as `privet top` shows it.")
    ],
    keys: options.Keys,
    role: options.OperatorRole = "operator",
    token: options.Token = None,
    server_name: options.ServerName = None,
    timeout: Annotated[
        float, typer.Option(min=0.0, help="Seconds to wait for its jobs; then the exit code is 1.")
    ] = 600.0,
    back: Annotated[
        bool, typer.Option("--back", help="Have the machine take jobs again instead.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Take a machine out of a service: what it has begun ends, the others go on.

    Returns when nothing runs there any more. The machine can then be stopped, or started anew.
    """
    from privet.service.watch import Watch

    watch = Watch(address, Path(keys), role, token, server_name)
    path = f"/v2/machines/{quote(machine, safe='')}/drain"
    if back:
        watch.ask("DELETE", path)
        _print_result(as_json, f"{machine} takes jobs again", machine, drained=False)
        return
    watch.ask("POST", path)
    end = time.monotonic() + timeout
    while True:
        state = watch.state()
        jobs = _jobs(state, machine)
        if jobs is None:
            _print_result(
                as_json, f"{machine} is drained: it can be stopped", machine, drained=True
            )
            return
        if time.monotonic() >= end:
            raise PrivetError(
                f"{machine} still runs {jobs} of its jobs after {timeout:g} s; it takes no others: "
                "wait longer (the same command again), or stop it, and these run again elsewhere"
            )
        time.sleep(GLANCE_SECONDS)


def _jobs(state: dict[str, Any], machine: str) -> int | None:
    """How many jobs run on a machine; None if it is not there."""
    if all(entry["name"] != machine for entry in state["machines"]):
        return None
    return len([job for job in state["running"] if job["machine"] == machine])


def _print_result(as_json: bool, text: str, machine: str, *, drained: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"machine": machine, "drained": drained}))
    else:
        show.make_console().print(text)
