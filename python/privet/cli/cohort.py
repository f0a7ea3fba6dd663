"""`privet coordinator` and `privet member`: a cohort of suite `ckks`, one inference at a time."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from privet.cli import options, show
from privet.parties.address import split_address
from privet.parties.homomorphic import Endpoint
from privet.parties.meeting import coordinate, take_part
from privet.suites import Guard, make_policy
from privet.suites.ckks import COHORT

Parties = Annotated[int, typer.Option(help="Members of the cohort, 2 to 20.")]
Flooding = Annotated[
    str, typer.Option(metavar="statistical|light", help="Noise on results; `light` is weaker.")
]
PublicHalf = Annotated[
    Path,
    typer.Argument(
        metavar="PROGRAM", help="What `privet compile` wrote: program.json.", exists=True
    ),
]


def coordinator(
    program: PublicHalf,
    keys: options.Keys,
    parties: Parties = COHORT.parties,
    flooding: Flooding = COHORT.flooding,
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
    suite = replace(COHORT, parties=parties, flooding=flooding)
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

    endpoint = Endpoint(host, port, keys, suite, None, memory, timeout)
    policy = make_policy(accept, weaker=suite.weaknesses, answers_per_hour=answers_per_hour)
    guard = Guard(policy, str(state / "coordinator" / "answers"))
    coordinate(program, endpoint, guard, heard)


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
    parties: Parties = COHORT.parties,
    flooding: Flooding = COHORT.flooding,
    server_name: options.ServerName = None,
    memory: options.Memory = None,
    timeout: options.Timeout = 120.0,
    as_json: options.AsJson = False,
) -> None:
    """Take part in one inference of a cohort with a share of its key."""
    suite = replace(COHORT, parties=parties, flooding=flooding)
    host, port = split_address(address)
    endpoint = Endpoint(host, port, keys, suite, server_name, memory, timeout)
    cost = take_part(program, member, endpoint)
    if as_json:
        typer.echo(json.dumps({"event": "helped", "member": member, "cost": asdict(cost)}))
        return
    sent = show.size(cost.bytes_client)
    show.make_console().print(f"Member {member} helped for {cost.seconds:.3f} s, sent {sent}.")
