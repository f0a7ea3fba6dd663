"""`privet infer`: a private prediction from a service, or material for later ones."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console

from privet import suites
from privet.cli import options, show
from privet.cli.inputs import read_inputs, read_labels
from privet.cli.suite_options import Suite
from privet.errors import Misuse
from privet.parties import Credentials, Result

if TYPE_CHECKING:
    from privet.gateway import ServiceClient, Terms

TOKEN = "PRIVET_TOKEN"
"""Environment variable with the bearer token, for services that want one."""


def infer(
    url: Annotated[str, typer.Argument(metavar="URL", help="The service: https://HOST:PORT.")],
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Name of the model.")],
    keys: options.Keys,
    input: options.Input = None,
    prepare: Annotated[
        int, typer.Option(min=0, help="Announce this many inferences; wait for their material.")
    ] = 0,
    notice: Annotated[
        str | None, typer.Option(metavar="ID", help="The announcement to use, as it was printed.")
    ] = None,
    state: options.State = Path("privet-state"),
    version: Annotated[
        int | None, typer.Option(min=1, help="Version of the model; the newest by default.")
    ] = None,
    program_hash: Annotated[
        str | None, typer.Option(help="The program to insist on, as the operator tells it.")
    ] = None,
    suite: Suite = suites.DEFAULT,
    dealer: options.Dealer = None,
    link: options.Link = None,
    server_name: options.ServerName = None,
    labels: options.Labels = None,
    deadline: Annotated[
        float | None, typer.Option(min=0, help="Seconds within which an answer is welcome.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds after which to give up, queues included.")
    ] = 300.0,
    as_json: options.AsJson = False,
) -> None:
    """Get a private prediction from a service; the input stays on this host."""
    from privet.gateway import ServiceClient, Terms

    if not input and not prepare:
        raise Misuse("give --input for a prediction, or --prepare N to announce later ones")
    if prepare and not isinstance(suite, suites.MaterialSuite):
        raise Misuse(f"suite {suite.name} prepares nothing ahead: ask without --prepare")
    terms = Terms(suite, version, program_hash)
    names = read_labels(labels, None)
    console = show.make_console()

    async def main() -> None:
        async with ServiceClient(
            url,
            Credentials.from_directory(keys, "client"),
            state=state,
            token=os.environ.get(TOKEN),
            server_name=server_name,
            dealer=dealer,
            link=link,
            patience=timeout,
        ) as client:
            ids = await _prepare(client, model, terms, prepare, timeout)
            result = None
            if input:
                program = (await client.offer(model, version)).program
                shapes = [program.values[entry.value].shape for entry in program.inputs]
                inputs = read_inputs(input, shapes, max(program.batch, len(input)))
                result = await client.infer(
                    model,
                    inputs,
                    terms=terms,
                    notice=notice or (ids.pop(0) if ids else None),
                    timeout=timeout,
                    deadline=deadline,
                )
            await _tell(client, console, model, version, ids, result, names, as_json)

    asyncio.run(main())


async def _prepare(
    client: ServiceClient, model: str, terms: Terms, count: int, timeout: float
) -> list[str]:
    """Ids of notices whose material is ready."""
    notices = [await client.notify(model, terms=terms, timeout=timeout) for _ in range(count)]
    for notice in notices:
        await notice.ready()
    return [notice.id for notice in notices]


async def _tell(
    client: ServiceClient,
    console: Console,
    model: str,
    version: int | None,
    ids: list[str],
    result: Result | None,
    labels: list[str],
    as_json: bool,
) -> None:
    program = (await client.offer(model, version)).program
    if as_json:
        fields: dict[str, Any] = {"model": model, "program_hash": program.program_hash}
        fields |= {"batch": program.batch, "notices": ids}
        typer.echo(json.dumps(fields | (_as_object(result) if result else {})))
        return
    for id in ids:
        console.print(f"Material is ready: --notice {id}")
    if result is not None:
        softmax = program.outputs[0].client is not None
        several = max(program.batch, result.samples)
        show.prediction(console, result.outputs, labels, softmax, several)
        show.costs(console, result.offline, result.online, program.batch)
        facts = result.config.facts()
        depth = f", rounds {facts['rounds']}" if facts["rounds"] else ""
        console.print(
            f"Suite {facts['suite']} ({facts['security']}){depth}, program "
            f"{program.program_hash[:16]}."
        )
        show.trust(console, result.trust)
        show.weaknesses(console, result.mode)
        show.calibration(console, result.calibration)


def _as_object(result: Result) -> dict[str, Any]:
    outputs = {name: np.asarray(array).tolist() for name, array in result.outputs.items()}
    facts = result.config.facts()
    return {
        **{key: facts[key] for key in ("suite", "security", "rounds", "correlations")},
        "trust": result.trust,
        **show.weaknesses_fields(result.mode),
        "calibration": result.calibration,
        "output": next(iter(outputs.values())) if len(outputs) == 1 else outputs,
        "material": result.material,
        "samples": result.samples,
        "offline": asdict(result.offline) if result.offline else None,
        "online": asdict(result.online),
        "layers": [asdict(layer) for layer in result.layers],
    }
