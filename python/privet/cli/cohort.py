"""`privet coordinator` and `privet member`: a cohort of suite `ckks`, one inference at a time."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from privet.cli import options, show
from privet.parties.address import split_address
from privet.parties.homomorphic import Endpoint
from privet.parties.meeting import coordinate, take_part
from privet.suites import COLLECTIVE, Guard, check_scenario, flooding_of, make_policy

PublicHalf = Annotated[
    Path,
    typer.Argument(
        metavar="PROGRAM", help="What `privet compile` wrote: program.json.", exists=True
    ),
]


def coordinator(
    program: PublicHalf,
    keys: options.Keys,
    parties: options.Parties = 3,
    flooding: options.Flooding = None,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where to listen.")
    ] = "127.0.0.1:7400",
    accept: options.Accept = None,
    answers_per_hour: options.AnswersPerHour = None,
    state: options.State = Path("privet-state"),
    memory: options.Memory = None,
    timeout: options.Timeout = 120.0,
    as_json: options.AsJson = False,
) -> None:
    """Run one inference of a cohort, under a key whose parts its members keep; it has no secret."""
    check_scenario("ckks", COLLECTIVE, parties)
    host, port = split_address(listen)
    console = show.make_console()

    def heard(found: dict[str, Any]) -> None:
        if as_json:
            named = {"address": f"{host}:{found['port']}"} if "port" in found else {}
            typer.echo(json.dumps({**found, **named}))
        elif found["event"] == "listening":
            console.print(f"Waiting for {parties} members and a client at {host}:{found['port']}.")
        else:
            console.print(f"{found['event'].capitalize()} in {found['cost']['seconds']:.3f} s.")

    noise = flooding_of("ckks", COLLECTIVE, flooding)
    endpoint = Endpoint(host, port, keys, COLLECTIVE, None, memory, timeout, noise)
    policy = make_policy(accept, flooding=noise, answers_per_hour=answers_per_hour)
    guard = Guard(policy, str(state / "coordinator" / "answers"))
    coordinate(program, parties, endpoint, guard, heard)


def member(
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="The coordinator.")],
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
    parties: options.Parties = 3,
    flooding: options.Flooding = None,
    server_name: options.ServerName = None,
    memory: options.Memory = None,
    timeout: options.Timeout = 120.0,
    as_json: options.AsJson = False,
) -> None:
    """Take part in one inference of a cohort with a share of its key."""
    check_scenario("ckks", COLLECTIVE, parties)
    host, port = split_address(address)
    noise = flooding_of("ckks", COLLECTIVE, flooding)
    endpoint = Endpoint(host, port, keys, COLLECTIVE, server_name, memory, timeout, noise)
    cost = take_part(program, member, parties, endpoint)
    if as_json:
        typer.echo(json.dumps({"event": "helped", "member": member, "cost": asdict(cost)}))
        return
    sent = show.size(cost.bytes_client)
    show.make_console().print(f"Member {member} helped for {cost.seconds:.3f} s, sent {sent}.")
