"""`privet cohort`: a member of a cohort, whose inferences a service coordinates."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from privet.cli import asking, options, show
from privet.cli.suite_options import option_of
from privet.errors import PrivetError
from privet.logs import log_to_stderr
from privet.runtime import Credentials, PhaseCost, hangup
from privet.runtime.hangup import Hangup
from privet.runtime.homomorphic import Endpoint, check_half
from privet.runtime.revocation import Revoked
from privet.suites.ckks import COHORT

app = typer.Typer(
    help="Take part in predictions under a key whose parts the members of a cohort keep.",
    no_args_is_help=True,
)

Parties = Annotated[int, option_of(type(COHORT), "parties")]
Flooding = Annotated[str, option_of(type(COHORT), "flooding")]


@app.callback()
def cohort() -> None:
    """Take part in predictions under a key whose parts the members of a cohort keep."""


@app.command()
def join(
    address: asking.Address,
    program: Annotated[
        Path,
        typer.Argument(
            metavar="PROGRAM",
            help="What `privet compile` wrote: program.json, for member 0 the folder.",
            exists=True,
        ),
    ],
    keys: options.Keys,
    member: Annotated[int, typer.Option(min=0, help="Which member this is; 0 has the model.")],
    model: Annotated[
        str | None, typer.Option(help="Name of the model; needed if the service has several.")
    ] = None,
    version: asking.Version = None,
    parties: Parties = COHORT.parties,
    flooding: Flooding = COHORT.flooding,
    server_name: options.ServerName = None,
    memory: options.Memory = None,
    revoked: options.Revoked = None,
    timeout: options.Timeout = 120.0,
    wait: asking.Wait = 60.0,
    as_json: options.AsJson = False,
) -> None:
    """Take part in a cohort's inferences as a member, with a share of each one's key, until Ctrl-C.

    SIGHUP reads certificates again; an inference under way goes on.

    Example: privet cohort join service.example.org:7480 program.json --keys keys --member 1
    """
    # These libraries are for this command alone.
    from privet.gateway.calls import Calls
    from privet.gateway.catalog import Catalog
    from privet.gateway.sessions import CohortMember, Membership

    hangup.hold()
    log_to_stderr()
    check_half(program, member, parties)
    suite = replace(COHORT, parties=parties, flooding=flooding)
    endpoint = Endpoint(keys, suite, timeout, memory)
    role = f"member-{member}"
    revocation_list = Revoked(revoked)

    def connect(credentials: Credentials) -> Calls:
        token = os.environ.get(asking.TOKEN)
        return Calls(
            address, credentials, server_name=server_name, token=token, revoked=revocation_list
        )

    console = show.make_console()

    def on_ended(outcome: PhaseCost | PrivetError | None) -> None:
        event: dict[str, Any]
        if outcome is None:
            event, text = {"event": "begun", "member": member}, "An inference begins."
        elif isinstance(outcome, PrivetError):
            event = {"event": "failed", "member": member, "message": str(outcome)}
            text = f"An inference failed: {outcome}"
        else:
            event = {"event": "helped", "member": member, "cost": asdict(outcome)}
            size = show.size(outcome.bytes_client)
            text = f"Member {member} helped for {outcome.seconds:.3f} s, sent {size}."
        if as_json:
            typer.echo(json.dumps(event))
        else:
            console.print(text)

    def read() -> Credentials:
        return Credentials.from_directory(keys, role)

    async def main() -> None:
        first_credentials = read()
        calls = connect(first_credentials)
        try:
            await calls.reach(wait)
            catalog = Catalog(calls, None, 0)
            name = model or await catalog.only()
            entry = await catalog.model(name, version)
            place = Membership(name, entry.version, program, member)
            cohort_member = CohortMember(place, endpoint, on_ended, wait, revocation_list)

            async def reload() -> None:
                credentials = await asyncio.to_thread(read)
                await cohort_member.renew(connect(credentials), credentials)

            if not as_json:
                console.print(f"Member {member} waits for inferences of {name}. Stop with Ctrl-C.")
            with Hangup(reload, "certificates"):
                await cohort_member.run(calls, first_credentials)
        finally:
            await calls.close()

    asyncio.run(main())
