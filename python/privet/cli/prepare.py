"""`privet prepare`: material for later inferences, made now or kept ready in the background."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from privet import suites
from privet.cli import asking, options, show
from privet.cli.console import Console
from privet.cli.suite_options import Suite
from privet.errors import JobFailed, MaterialError, Misuse
from privet.runtime import Link, MaterialStore
from privet.suites import Progress
from privet.suites import Suite as SuiteConfig
from privet.suites.text import over

if TYPE_CHECKING:
    from privet.gateway import ServiceClient, Terms
    from privet.gateway.ahead import Level, LevelEvent
    from privet.gateway.jobs import Notice


def prepare(
    address: Annotated[
        str | None, typer.Argument(metavar="ADDRESS", help="The service: HOST:PORT.")
    ] = None,
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL[=N]...",
            help="Names of models, with `=N` for so many of one; needed if the service has "
            "several.",
        ),
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(help="Directory that `privet keys` wrote.", file_okay=False),
    ] = None,
    state: options.State = Path("privet-state"),
    count: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Make material for N inferences, and end."),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Keep material for N inferences ready until this is stopped: what is used is made "
            "again.",
        ),
    ] = None,
    max_disk: asking.MaxDisk = None,
    status: Annotated[
        bool, typer.Option("--status", help="Show what is ready, without a connection, and end.")
    ] = False,
    version: asking.Version = None,
    program_hash: asking.ProgramHash = None,
    suite: Suite = suites.DEFAULT,
    dealer: options.Dealer = None,
    link: options.Link = None,
    server_name: options.ServerName = None,
    memory: options.Memory = None,
    timeout: asking.Patience = 300.0,
    wait: asking.Wait = 0.0,
    _trace: options.Trace = None,
    as_json: options.AsJson = False,
) -> None:
    """Make material ahead, for inferences that then take milliseconds.

    It serves all clients on this host that have the same certificate and --state.

    Example: privet prepare service.example.org:7480 --keys keys --keep 10
    """
    from privet.gateway import Terms

    console = show.make_console()
    if status:
        _show_status(console, state, as_json)
        return
    if address is None or keys is None or (count is None) == (keep is None):
        raise Misuse("give ADDRESS, --keys, and --count N or --keep N; or --status")
    terms = Terms(suites.material_suite(suite), version, program_hash)
    amounts = _amounts(models or [], keep or count or 1)

    def connect(progress: Progress | None = None) -> ServiceClient:
        return asking.connect(
            address,
            keys,
            state=state,
            server_name=server_name,
            dealer=dealer,
            link=link,
            memory=memory,
            patience=timeout,
            max_disk=max_disk,
            progress=progress,
        )

    if keep is not None:
        asyncio.run(_keep(console, connect(), amounts, terms, keep, wait, as_json))
        return
    with show.progress(not as_json and console.is_terminal) as progress:
        client = connect(progress)
        batches = asyncio.run(_make(client, amounts, terms, count or 1, timeout, wait, progress))
    for batch in batches:
        _print_batches(console, batch, terms, client.link, as_json)


def _amounts(words: list[str], usual: int) -> dict[str, int]:
    """How much of each model: as `NAME=N` says, or else `usual`."""
    amounts = {}
    for word in words:
        name, equals, amount = word.partition("=")
        if equals and not (amount.isdecimal() and int(amount)):
            raise Misuse(f"{word!r} is no model with a number, such as {name or 'digits'}=10")
        amounts[name] = int(amount) if equals else usual
    return amounts


@dataclass(frozen=True)
class _Batch:
    """What was made of a model: ids of the notices, and how many entries are ready now."""

    model: str
    ids: list[str]
    ready: int
    program_hash: str
    suite: SuiteConfig


async def _make(
    client: ServiceClient,
    amounts: dict[str, int],
    terms: Terms,
    usual: int,
    timeout: float,
    wait: float,
    progress: Progress | None,
) -> list[_Batch]:
    """Makes so many entries of each model. None may take longer than `timeout` after the one
    before, as they come one after the other where the service has few cores. Raises `JobFailed` and
    what else `ServiceClient.notify` raises."""
    batches = []
    async with client:
        await asking.reach(client, wait)
        amounts = amounts or {await client.only_model(): usual}
        notices_of = {
            name: [await client.notify(name, terms=terms, timeout=timeout) for _ in range(count)]
            for name, count in amounts.items()
        }
        ready_count, total = 0, sum(amounts.values())
        for name, notices in notices_of.items():
            for index, notice in enumerate(notices):
                if progress is not None and total > 1:
                    progress("entries", ready_count, total, name)
                notices[index] = await _ready(
                    client, name, notice, terms, timeout, waited=ready_count > 0
                )
                ready_count += 1
            offer, resolved = await client.resolve(name, terms)
            ids, hash = [notice.id for notice in notices], offer.program.program_hash
            batches.append(_Batch(name, ids, await client.stock(name, terms), hash, resolved.suite))
    return batches


async def _ready(
    client: ServiceClient, name: str, notice: Notice, terms: Terms, timeout: float, *, waited: bool
) -> Notice:
    """The notice once its material is ready, or another one in its place."""
    try:
        await notice.ready()
    except MaterialError:
        # What was kept of the program was of no use: it is fetched anew.
        pass
    except JobFailed as error:
        if error.outcome != "timed out" or not waited:
            raise
        # It waited behind others of this command.
    else:
        return notice
    notice = await client.notify(name, terms=terms, timeout=timeout)
    await notice.ready()
    return notice


def _print_batches(
    console: Console, batch: _Batch, terms: Terms, client_link: Link | None, as_json: bool
) -> None:
    facts = batch.suite.facts()
    if as_json:
        fields: dict[str, Any] = {"model": batch.model}
        fields |= {key: facts[key] for key in ("suite", "rounds")}
        fields |= {"program_hash": batch.program_hash, "prepared": batch.ids, "ready": batch.ready}
        typer.echo(json.dumps(fields))
        return
    account = batch.suite.comparisons(terms.suite) + over(client_link)
    count = f"{len(batch.ids)} inference{'s' * (len(batch.ids) != 1)}"
    console.print(f"Made material for {count} of {batch.model}; ready are {batch.ready}.")
    console.print(f"Suite {batch.suite.name} ({facts['security']}), {account}.")
    show.trust(console, batch.suite.trust.caution)


async def _keep(
    console: Console,
    client: ServiceClient,
    amounts: dict[str, int],
    terms: Terms,
    usual: int,
    wait: float,
    as_json: bool,
) -> None:
    from privet.gateway.ahead import Ahead

    last_ready: dict[str, int | None] = {}

    def on_event(event: LevelEvent) -> None:
        for level in event.levels:
            is_changed = event.model is None and last_ready.get(level.model) != level.ready
            if is_changed or event.model == level.model:
                last_ready[level.model] = level.ready
                _print_entry(console, event, level, client.max_disk, as_json)

    async with client:
        # Of models that were named, `Ahead` tries for as long as it runs.
        if wait or not amounts:
            await asking.reach(client, wait)
        amounts = amounts or {await client.only_model(): usual}
        async with Ahead(client, terms, amounts, on_event):
            await asking.until_stopped()
    typer.echo(json.dumps({"event": "stopped"}) if as_json else "Stopped.")


def _print_entry(
    console: Console, event: LevelEvent, level: Level, limit: int | None, as_json: bool
) -> None:
    if as_json:
        fields: dict[str, Any] = {"event": event.kind, "model": level.model, "ready": level.ready}
        fields |= {"wanted": level.wanted, "bytes": event.bytes, "max_disk": limit}
        if event.error is not None:
            fields["error"] = {"type": type(event.error).__name__, "message": str(event.error)}
            fields["seconds"] = event.seconds
        typer.echo(json.dumps(fields))
    elif event.error is not None:
        retry = f"trying again in {event.seconds:.1f} s"
        line = Text.assemble(f"{level.model}: ", (str(event.error), "red"), f"; {retry}")
        console.print(line, soft_wrap=True)
    elif event.kind == "full":
        console.print(f"{level.model}: no room on disk for another entry", soft_wrap=True)
    else:
        room = f" of {show.size(limit)}" if limit is not None else ""
        ready = f"{level.ready}/{level.wanted}"
        console.print(f"{level.model} {ready}; {show.size(event.bytes)}{room}")


def _show_status(console: Console, state: Path, as_json: bool) -> None:
    store = MaterialStore.at(state)
    holdings, count = store.holdings(), store.bytes()
    if as_json:
        typer.echo(json.dumps({"ready": [asdict(holding) for holding in holdings], "bytes": count}))
        return
    if holdings:
        show.holdings(console, holdings)
    console.print(f"{show.size(count)} of material in {state}.")
