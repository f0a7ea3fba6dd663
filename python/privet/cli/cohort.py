"""`privet cohort`: members on hosts of their own that share a key, one inference at a time."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from privet.cli import options, show
from privet.cli.inputs import read_inputs, read_labels
from privet.cli.suite_options import option_of
from privet.errors import Misuse
from privet.runtime.address import split_address
from privet.runtime.homomorphic import Endpoint, Prediction
from privet.runtime.meeting import CohortClient, coordinate, take_part
from privet.runtime.revocation import Revoked
from privet.suites import Guard, make_policy
from privet.suites.ckks import COHORT
from privet.suites.ckks.account import parameters

app = typer.Typer(
    help="Predict under a key whose parts the members of a cohort keep.", no_args_is_help=True
)

Parties = Annotated[int, option_of(type(COHORT), "parties")]
Flooding = Annotated[str, option_of(type(COHORT), "flooding")]
PublicHalf = Annotated[
    Path,
    typer.Argument(
        metavar="PROGRAM", help="What `privet compile` wrote: program.json.", exists=True
    ),
]


@app.command(name="coordinate")
def coordinate_cohort(
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
    revoked: options.Revoked = None,
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
    coordinate(program, endpoint, guard, heard, Revoked(revoked))


@app.command()
def join(
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
    """Take part in one inference of a cohort as a member, with a share of its key."""
    suite = replace(COHORT, parties=parties, flooding=flooding)
    host, port = split_address(address)
    endpoint = Endpoint(host, port, keys, suite, server_name, memory, timeout)
    cost = take_part(program, member, endpoint)
    if as_json:
        typer.echo(json.dumps({"event": "helped", "member": member, "cost": asdict(cost)}))
        return
    sent = show.size(cost.bytes_client)
    show.make_console().print(f"Member {member} helped for {cost.seconds:.3f} s, sent {sent}.")


@app.command()
def infer(
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="The coordinator.")],
    program: PublicHalf,
    keys: options.Keys,
    input: options.Input = None,
    parties: Parties = COHORT.parties,
    flooding: Flooding = COHORT.flooding,
    server_name: options.ServerName = None,
    labels: options.Labels = None,
    memory: options.Memory = None,
    timeout: options.Timeout = 120.0,
    layers: Annotated[bool, typer.Option("--layers", help="Also print every step's cost.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Get a private prediction from a cohort, of whose key this client has no part."""
    if not input:
        raise Misuse("give --input for a prediction")
    suite = replace(COHORT, parties=parties, flooding=flooding)
    host, port = split_address(address)
    endpoint = Endpoint(host, port, keys, suite, server_name, memory, timeout)
    client = CohortClient(endpoint, program)
    console, names = show.make_console(), read_labels(labels, None)
    shapes = [it.shape for it in client.program.given]
    with show.progress(Console(stderr=True), not as_json and console.is_terminal) as progress:
        found = client.infer(read_inputs(input, shapes, client.program.batch), progress=progress)
    if as_json:
        typer.echo(json.dumps(_as_object(found)))
        return
    softmax = found.program.outputs[0].client is not None
    show.prediction(console, found.outputs, names, softmax, found.program.batch)
    show.costs(console, found.offline, found.online, found.program.batch)
    show.account(console, parameters(found.plan, found.program.program_hash))
    show.calibration(console, found.program.calibration)
    show.weaknesses(console, found.suite.mode)
    if layers:
        show.layers(console, found.layers)


def _as_object(found: Prediction) -> dict[str, Any]:
    program = found.program
    outputs = {name: np.asarray(array).tolist() for name, array in found.outputs.items()}
    return {
        "model": program.model,
        "suite": found.suite.name,
        **show.weaknesses_fields(found.suite.mode),
        "program_hash": program.program_hash,
        "calibration": program.calibration,
        "batch": program.batch,
        "server": found.server,
        "output": next(iter(outputs.values())) if len(outputs) == 1 else outputs,
        "samples": found.samples,
        "offline": asdict(found.offline),
        "online": asdict(found.online),
        "per_sample": show.per_sample(program.batch, offline=found.offline, online=found.online),
        "layers": [asdict(layer) for layer in found.layers],
        "plan": found.plan,
    }
