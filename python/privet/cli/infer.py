"""`privet infer`: a private prediction from a service."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from privet import suites
from privet.cli import asking, options, show
from privet.cli.inputs import read_inputs, read_labels
from privet.cli.suite_options import Suite
from privet.compiler.executor.codec import Inputs
from privet.errors import MaterialError, Misuse
from privet.runtime import Link, Result
from privet.runtime.route import MAKE, REFUSE, WAIT
from privet.suites import MaterialSuite, Progress
from privet.suites.text import over

if TYPE_CHECKING:
    from privet.compiler.program import Program
    from privet.gateway import ServiceClient, Terms


LOOK_SECONDS = 1.0
"""How often is looked for material that somebody else makes."""


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
    when_dry: Annotated[
        str,
        typer.Option(
            metavar="make|wait|refuse",
            help="Without prepared material: make it first, wait until `privet prepare` has made "
            "some, or end with an error.",
        ),
    ] = MAKE,
    deadline: Annotated[
        float | None, typer.Option(min=0, help="Seconds within which an answer is welcome.")
    ] = None,
    timeout: asking.Patience = 300.0,
    wait: asking.Wait = 0.0,
    layers: Annotated[bool, typer.Option("--layers", help="Also print every step's cost.")] = False,
    _trace: options.Trace = None,
    as_json: options.AsJson = False,
) -> None:
    """Get a private prediction from a service; the input stays on this host.

    Example: privet infer service.example.org:7480 --keys keys --input x.npy
    """
    from privet.gateway import Terms

    if not input:
        raise Misuse("give --input for a prediction; `privet prepare` makes material for later")
    if when_dry not in (MAKE, WAIT, REFUSE):
        raise Misuse(f"--when-dry is {when_dry!r}; possible are {MAKE}, {WAIT}, {REFUSE}")
    terms = Terms(suite, version, program_hash)
    names = read_labels(labels, None)
    console = show.make_console()

    keeps = isinstance(suite, MaterialSuite)

    async def main(progress: Progress | None) -> _Answer:
        async with asking.connect(
            address,
            keys,
            state=state,
            server_name=server_name,
            dealer=dealer,
            link=link,
            memory=memory,
            patience=timeout,
            progress=progress,
        ) as client:
            await asking.reach(client, wait)
            name = model or await client.only_model()
            program = (await client.offer(name, version)).program
            shapes = {entry.name: entry.shape for entry in program.given}
            inputs = read_inputs(input, shapes, max(program.batch, len(input)))
            ask = partial(_ask, client, name, inputs, terms, notice, timeout, deadline)
            if when_dry == WAIT and notice is None:
                result = await _when_ready(client, name, terms, timeout, partial(ask, ready=True))
            else:
                result = await ask(ready=when_dry != MAKE)
            ready = await client.stock(name, terms) if keeps else 0
            return _Answer(name, program, result, ready, client.link)

    with show.progress(not as_json and console.is_terminal) as progress:
        answer = asyncio.run(main(progress))
    if as_json:
        typer.echo(json.dumps(_as_object(answer)))
        return
    program, result = answer.program, answer.result
    several = max(program.batch, result.samples)
    show.prediction(console, result.outputs, names, program.outputs[0].client is not None, several)
    show.costs(console, result.offline, result.online, program.batch)
    if layers:
        show.layers(console, result.layers)
    show.account(console, account_of(result, program, suite, answer.link))
    show.trust(console, result.trust)
    show.weaknesses(console, result.mode)
    show.calibration(console, result.calibration)
    if keeps:
        console.print(f"Material for {answer.ready} more inferences is ready.")


@dataclass(frozen=True)
class _Answer:
    """What came of asking: the model, its program, the result, how much material is left, and what
    the network was taken for."""

    model: str
    program: Program
    result: Result
    ready: int
    link: Link | None


async def _when_ready(
    client: ServiceClient,
    model: str,
    terms: Terms,
    patience: float,
    ask: Callable[[], Awaitable[Result]],
) -> Result:
    """What `ask` gives once material lies ready, where the suite takes any. Raises `MaterialError`
    if there is none within `patience` seconds, or others took it."""
    end = time.monotonic() + patience
    takes = isinstance(terms.suite, MaterialSuite) and terms.suite.prepares_ahead
    while True:
        if not takes or await client.stock(model, terms) or time.monotonic() >= end:
            try:
                return await ask()
            except MaterialError:
                if time.monotonic() >= end:
                    raise
        await asyncio.sleep(LOOK_SECONDS)


async def _ask(
    client: ServiceClient,
    model: str,
    inputs: Inputs,
    terms: Terms,
    notice: str | None,
    timeout: float,
    deadline: float | None,
    ready: bool,
) -> Result:
    """A prediction on what was prepared for it, if anything was; `ready`: or else none. Raises
    `MaterialError` then."""
    if notice is None and isinstance(terms.suite, MaterialSuite) and terms.suite.prepares_ahead:
        for prepared in await client.prepared(model, terms=terms):
            try:
                return await client.infer(
                    model,
                    inputs,
                    notice=prepared,
                    timeout=timeout,
                    deadline=deadline,
                    ready=ready,
                )
            except MaterialError:
                # Another process was quicker, or this side's half is gone.
                continue
    try:
        return await client.infer(
            model,
            inputs,
            terms=terms,
            notice=notice,
            timeout=timeout,
            deadline=deadline,
            ready=ready,
        )
    except MaterialError as error:
        if not ready or notice is not None:
            raise
        raise MaterialError(
            f"{error} (model {model}): `privet prepare` makes some, or leave out --when-dry"
        ) from error


def account_of(
    result: Result, program: Program, suite: suites.Suite, link: Link | None
) -> list[str]:
    """What there is to say of how a prediction was made."""
    summary = result.config.summary(result.plan, program.program_hash) if result.plan else ()
    facts = result.config.facts()
    comparisons = result.config.comparisons(suite)
    options = f", {comparisons}{over(link)}" if comparisons else ""
    name = f"Suite {facts['suite']} ({facts['security']}){options}, program "
    return [*summary, f"{name}{program.program_hash[:16]}."]


def _as_object(answer: _Answer) -> dict[str, Any]:
    program, result = answer.program, answer.result
    outputs = {name: np.asarray(array).tolist() for name, array in result.outputs.items()}
    return {
        "model": answer.model,
        **result.config.facts(),
        "trust": result.trust,
        **show.weaknesses_fields(result.mode),
        "calibration": result.calibration,
        "program_hash": program.program_hash,
        "batch": program.batch,
        "ready": answer.ready,
        "output": next(iter(outputs.values())) if len(outputs) == 1 else outputs,
        "material": result.material,
        "samples": result.samples,
        "offline": asdict(result.offline) if result.offline else None,
        "online": asdict(result.online),
        "per_sample": show.per_sample(program.batch, offline=result.offline, online=result.online),
        "layers": [asdict(layer) for layer in result.layers],
        **({} if result.plan is None else {"plan": result.plan}),
    }
