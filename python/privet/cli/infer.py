"""`privet infer`: a private prediction from a service."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console

from privet import suites
from privet.cli import asking, options, show
from privet.cli.inputs import read_inputs, read_labels
from privet.cli.suite_options import Suite
from privet.compiler.executor.codec import Inputs
from privet.errors import MaterialError, Misuse
from privet.runtime import Link, Result
from privet.suites import MaterialSuite
from privet.suites.text import over

if TYPE_CHECKING:
    from privet.compiler.program import Program
    from privet.gateway import ServiceClient, Terms


def infer(
    address: asking.Address,
    keys: options.Keys,
    model: asking.Model = None,
    input: options.Input = None,
    notice: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="The preparation to use, as `privet prepare` printed it; any by default.",
        ),
    ] = None,
    state: options.State = Path("privet-state"),
    version: asking.Version = None,
    program_hash: asking.ProgramHash = None,
    suite: Suite = suites.DEFAULT,
    dealer: options.Dealer = None,
    link: options.Link = None,
    server_name: options.ServerName = None,
    labels: options.Labels = None,
    memory: options.Memory = None,
    deadline: Annotated[
        float | None, typer.Option(min=0, help="Seconds within which an answer is welcome.")
    ] = None,
    timeout: asking.Patience = 300.0,
    layers: Annotated[bool, typer.Option("--layers", help="Also print every step's cost.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Get a private prediction from a service; the input stays on this host."""
    from privet.gateway import Terms

    if not input:
        raise Misuse("give --input for a prediction; `privet prepare` makes material for later")
    asking.check_asked(suite)
    terms = Terms(suite, version, program_hash)
    names = read_labels(labels, None)
    console = show.make_console()

    keeps = isinstance(suite, MaterialSuite)

    async def main() -> None:
        async with asking.connect(
            address,
            keys,
            state,
            server_name=server_name,
            dealer=dealer,
            link=link,
            memory=memory,
            patience=timeout,
        ) as client:
            name = model or await client.only_model()
            program = (await client.offer(name, version)).program
            shapes = [program.values[entry.value].shape for entry in program.inputs]
            inputs = read_inputs(input, shapes, max(program.batch, len(input)))
            result = await _ask(client, name, inputs, terms, notice, timeout, deadline)
            ready = await client.stock(name, terms) if keeps else 0
        if as_json:
            typer.echo(json.dumps(_as_object(name, program, result, ready)))
            return
        several = max(program.batch, result.samples)
        softmax = program.outputs[0].client is not None
        show.prediction(console, result.outputs, names, softmax, several)
        show.costs(console, result.offline, result.online, program.batch)
        if layers:
            show.layers(console, result.layers)
        _describe(console, program, result, client, suite)
        if keeps:
            console.print(f"Material for {ready} more inferences is ready.")

    asyncio.run(main())


async def _ask(
    client: ServiceClient,
    model: str,
    inputs: Inputs,
    terms: Terms,
    notice: str | None,
    timeout: float,
    deadline: float | None,
) -> Result:
    """A prediction on what was prepared for it, if anything was."""
    if notice is None and isinstance(terms.suite, MaterialSuite) and terms.suite.prepares_ahead:
        for prepared in await client.prepared(model, terms=terms):
            try:
                return await client.infer(
                    model, inputs, notice=prepared, timeout=timeout, deadline=deadline
                )
            except MaterialError:
                # Another process was quicker, or this side's half is gone.
                continue
    return await client.infer(
        model, inputs, terms=terms, notice=notice, timeout=timeout, deadline=deadline
    )


def _describe(
    console: Console,
    program: Program,
    result: Result,
    client: ServiceClient,
    asked: suites.Suite,
) -> None:
    """How a result was made, and what it does not promise."""
    show.account(console, account_of(result, program, asked, client.link))
    show.trust(console, result.trust)
    show.weaknesses(console, result.mode)
    show.calibration(console, result.calibration)


def account_of(
    result: Result, program: Program, asked: suites.Suite, link: Link | None
) -> list[str]:
    """What there is to say of how a prediction was made."""
    ran = result.config.told(result.plan, program.program_hash) if result.plan else ()
    facts = result.config.facts()
    how = result.config.comparisons(asked)
    told = f", {how}{over(link)}" if how else ""
    name = f"Suite {facts['suite']} ({facts['security']}){told}, program "
    return [*ran, f"{name}{program.program_hash[:16]}."]


def _as_object(model: str, program: Program, result: Result, ready: int) -> dict[str, Any]:
    outputs = {name: np.asarray(array).tolist() for name, array in result.outputs.items()}
    facts = result.config.facts()
    return {
        "model": model,
        **{key: facts[key] for key in ("suite", "security", "rounds", "correlations")},
        "trust": result.trust,
        **show.weaknesses_fields(result.mode),
        "calibration": result.calibration,
        "program_hash": program.program_hash,
        "batch": program.batch,
        "ready": ready,
        "output": next(iter(outputs.values())) if len(outputs) == 1 else outputs,
        "material": result.material,
        "samples": result.samples,
        "offline": asdict(result.offline) if result.offline else None,
        "online": asdict(result.online),
        "per_sample": show.per_sample(program.batch, offline=result.offline, online=result.online),
        "layers": [asdict(layer) for layer in result.layers],
        **({} if result.plan is None else {"plan": result.plan}),
    }
