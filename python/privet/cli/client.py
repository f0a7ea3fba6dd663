"""`privet client`: ask a server for a private prediction."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from privet import suites
from privet.cli import homomorphic, options, show
from privet.cli.inputs import read_inputs, read_labels
from privet.cli.suite_options import Suite
from privet.errors import Misuse
from privet.parties import Client, Credentials, Result
from privet.parties.address import split_address
from privet.parties.homomorphic import Endpoint, Visitor
from privet.parties.meeting import CohortVisitor
from privet.suites import MaterialSuite, material_suite
from privet.suites.ckks import encrypting
from privet.suites.text import over


def client(
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="The server.")],
    keys: options.Keys,
    input: options.Input = None,
    prepare: Annotated[
        int, typer.Option(min=0, help="Make material for this many inferences ahead of time.")
    ] = 0,
    state: options.State = Path("privet-state"),
    model: Annotated[
        str | None, typer.Option(help="Name of the model; needed if the server has several.")
    ] = None,
    program_hash: Annotated[
        str | None, typer.Option(help="The program to insist on, as its server prints it.")
    ] = None,
    suite: Suite = suites.DEFAULT,
    program: Annotated[
        Path | None,
        typer.Option(
            help="The program.json of a cohort's model, which `privet compile` wrote.", exists=True
        ),
    ] = None,
    dealer: options.Dealer = None,
    when_dry: options.WhenDry = "make",
    link: options.Link = None,
    server_name: options.ServerName = None,
    labels: options.Labels = None,
    memory: options.Memory = None,
    timeout: options.Timeout = 120.0,
    layers: Annotated[bool, typer.Option("--layers", help="Also print every step's cost.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Get a private prediction, or make material for later ones; the input stays on this host."""
    if not input and not prepare:
        raise Misuse("give --input for a prediction, or --prepare N to make material for later")
    host, port = split_address(address)
    if not isinstance(suite, MaterialSuite):
        if prepare or not input:
            raise Misuse(f"suite {suite.name} makes no material ahead of time: give --input")
        config = encrypting(suite)
        endpoint = Endpoint(host, port, keys, config, server_name, memory, timeout)
        visitor = (
            CohortVisitor(endpoint, program)
            if config.collective
            else Visitor(endpoint, model=model, program_hash=program_hash)
        )
        homomorphic.ask(visitor, input, labels, layers=layers, as_json=as_json)
        return
    console = show.make_console()
    names = read_labels(labels, None)
    with (
        Client(
            host,
            port,
            Credentials.from_directory(keys, "client"),
            state=state,
            model=model,
            program_hash=program_hash,
            suite=suite,
            dealer=dealer,
            when_dry=when_dry,
            link=link,
            server_name=server_name,
            memory=memory,
            timeout=timeout,
        ) as session,
        show.progress(Console(stderr=True), not as_json and console.is_terminal) as progress,
    ):
        shapes = [session.program.values[entry.value].shape for entry in session.program.inputs]
        inputs = read_inputs(input, shapes, session.program.batch) if input else None
        made = session.prepare(prepare, progress=progress) if prepare else []
        result = session.infer(inputs, progress=progress) if inputs is not None else None
        ready = len(session.ready())
    if as_json:
        typer.echo(json.dumps(_as_object(session, made, ready, result)))
        return
    if made:
        console.print(f"Made material for {len(made)} inferences.")
    if result is not None:
        softmax = session.program.outputs[0].client is not None
        show.prediction(console, result.outputs, names, softmax, session.program.batch)
        show.costs(console, result.offline, result.online, session.program.batch)
        if layers:
            show.layers(console, result.layers)
    used = result.config if result is not None else session.suite
    depth = material_suite(used).comparisons(suite) + over(session.link)
    console.print(
        f"Suite {used.name} ({used.mode.security}), {depth}, program {session.program_hash[:16]}."
    )
    if result is not None:
        show.dry(console, result.dry)
    show.trust(console, used.trust.caution)
    show.weaknesses(console, used.mode)
    show.calibration(console, session.program.calibration)
    console.print(f"Material for {ready} more inferences is ready in {state}.")


def _as_object(
    session: Client, made: list[str], ready: int, result: Result | None
) -> dict[str, Any]:
    used = result.config if result is not None else session.suite
    facts = used.facts()
    fields: dict[str, Any] = {
        "model": session.program.model,
        "suite": used.name,
        "security": facts["security"],
        "rounds": facts["rounds"],
        "extension": session.extension,
        "correlations": facts["correlations"],
        "trust": used.trust.caution,
        **show.weaknesses_fields(used.mode),
        "calibration": session.program.calibration,
        "link": show.link_fields(session.link),
        "program_hash": session.program_hash,
        "batch": session.program.batch,
        "server": session.server_fingerprint,
        "prepared": made,
        "ready": ready,
    }
    if result is not None:
        outputs = {name: np.asarray(array).tolist() for name, array in result.outputs.items()}
        fields |= {
            "output": next(iter(outputs.values())) if len(outputs) == 1 else outputs,
            "material": result.material,
            "samples": result.samples,
            "dry": asdict(result.dry) if result.dry else None,
            "offline": asdict(result.offline) if result.offline else None,
            "online": asdict(result.online),
            "per_sample": show.per_sample(
                session.program.batch, offline=result.offline, online=result.online
            ),
            "layers": [asdict(layer) for layer in result.layers],
        }
    return fields
