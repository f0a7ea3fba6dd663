"""`privet server` and `privet client` for suite `ckks`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console

from privet.cli import show
from privet.cli.inputs import read_inputs, read_labels
from privet.parties.homomorphic import Endpoint, Prediction, Visitor, serving
from privet.parties.meeting import CohortVisitor
from privet.parties.revocation import Revoked
from privet.suites import Guard, Policy


def serve(
    program: Path,
    endpoint: Endpoint,
    policy: Policy,
    counts: Path,
    revoked: Revoked,
    *,
    as_json: bool,
) -> None:
    """Serves a compiled program by a policy until it is stopped; counts answers in `counts`."""
    console = show.make_console()
    guard = Guard(policy, str(counts))
    with serving(program, endpoint, guard, revoked) as (listening, events):
        address = f"{endpoint.host}:{listening['port']}"
        if as_json:
            _say(
                event="listening",
                address=address,
                scenario=endpoint.scenario,
                policy=json.loads(policy.text()),
                **show.weaknesses_fields(endpoint.mode),
                statistical_bits=listening["statistical_bits"],
                **{name: listening[name] for name in ("model", "program_hash")},
            )
        else:
            console.print(f"Serving [bold]{listening['model']}[/] at {address}; stop with Ctrl-C.")
            console.print(
                f"Scenario {endpoint.scenario}, program {listening['program_hash']}: give this "
                "hash to clients that should pin it."
            )
            show.policy(console, policy)
            show.weaknesses(console, endpoint.mode)
        try:
            for found in events:
                _tell(console, found, as_json)
        except KeyboardInterrupt:
            console.print("Stopped.") if not as_json else _say(event="stopped")


def ask(
    visitor: Visitor | CohortVisitor,
    input: list[Path],
    labels: Path | None,
    *,
    layers: bool,
    as_json: bool,
) -> None:
    """One private prediction."""
    console, program = show.make_console(), visitor.program
    names = read_labels(labels, None)
    shapes = [program.values[entry.value].shape for entry in program.inputs]
    with show.progress(Console(stderr=True), not as_json and console.is_terminal) as progress:
        found = visitor.infer(read_inputs(input, shapes, program.batch), progress=progress)
    if as_json:
        _say(**_as_object(found))
        return
    softmax = program.outputs[0].client is not None
    show.prediction(console, found.outputs, names, softmax, program.batch)
    show.costs(console, found.offline, found.online, program.batch)
    show.homomorphic(console, found.plan, program.program_hash)
    show.calibration(console, program.calibration)
    show.weaknesses(console, found.mode)
    if layers:
        show.layers(console, found.layers)


def _as_object(found: Prediction) -> dict[str, Any]:
    program = found.program
    outputs = {name: np.asarray(array).tolist() for name, array in found.outputs.items()}
    return {
        "model": program.model,
        "suite": "ckks",
        **show.weaknesses_fields(found.mode),
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


def _tell(console: Console, found: dict[str, Any], as_json: bool) -> None:
    """An event of the server's process: what it did for a client, or a session that failed."""
    client, kind = found["client"], found["event"]
    if kind == "failed":
        error = {"type": found["type"], "message": found["message"]}
        if as_json:
            _say(event=kind, client=client, error=error)
        else:
            console.print(f"client {client[:16]}: [red]{error['message']}[/]", soft_wrap=True)
        return
    cost = found["cost"]
    if as_json:
        _say(event=kind, client=client, model=found["model"], cost=cost)
        return
    traffic = f"{show.size(cost['bytes_received'])} in, {show.size(cost['bytes_sent'])} out"
    console.print(
        f"client {client[:16]}: {kind} {found['model']} in {cost['seconds']:.3f} s, {traffic}"
    )


def _say(**fields: Any) -> None:
    typer.echo(json.dumps(fields))
