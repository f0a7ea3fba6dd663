"""`privet serve`: offer a model, or a repository of models, to many clients, preparation
overlapped with inference."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from privet import __version__
from privet.cli import options, serve_check, show, single
from privet.cli.configuration import Config
from privet.cli.console import Console
from privet.cli.executors import make_executor
from privet.cli.suite_options import accepted
from privet.compiler.program import caveat
from privet.errors import Misuse
from privet.garbage import collect_seldom
from privet.keys import OPERATOR_NAME
from privet.logs import log_to_stderr
from privet.runtime import hangup
from privet.runtime.listening import RenewedTls
from privet.runtime.quantities import parse_size, split_address
from privet.runtime.revocation import Revoked
from privet.runtime.shortage import take_all_files
from privet.scheduler import Budget, Limits, named
from privet.suites import DEFAULT, STATISTICAL, Policy, make_policy, uncounted
from privet.suites.ckks import COHORT
from privet.suites.policy import accepts_anywhere

if TYPE_CHECKING:
    from privet.service.repository import VersionRow
    from privet.service.service import Service

ANYWHERE = ("0.0.0.0", "::")


def serve(
    models: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL.onnx|REPOSITORY",
            help="A model, or a folder of models: MODEL/config.toml and MODEL/VERSION/model.onnx.",
            exists=True,
        ),
    ],
    keys: options.Keys,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where the control plane listens.")
    ] = "127.0.0.1:7480",
    probe: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Where health and metrics are served to anybody, without TLS: for probes of a "
            "cluster; nowhere by default.",
        ),
    ] = None,
    state: options.State = Path("privet-state"),
    name: single.Name = None,
    suite: single.Suites = None,
    batch: single.Batch = None,
    calibration: single.Calibration = None,
    input_range: single.InputRange = None,
    options_set: single.Options = None,
    executor: Annotated[
        str, typer.Option(metavar="local|ray", help="Where jobs run: here, or on a Ray cluster.")
    ] = "local",
    address: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Ray's address, for --executor ray.")
    ] = None,
    cores: Annotated[
        int | None, typer.Option(min=1, help="Cores that jobs may have; all of this machine's.")
    ] = None,
    jobs_per_core: Annotated[
        int,
        typer.Option(
            min=1,
            max=16,
            help="Jobs that may share a core: a job waits for its client and the link between its "
            "messages.",
        ),
    ] = 1,
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Memory that jobs may have; what is free by default."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Jobs at once at most; by default as many as have a core."),
    ] = None,
    data_host: Annotated[
        str | None,
        typer.Option(metavar="HOST", help="Where workers listen for clients; as --listen if none."),
    ] = None,
    advertise: Annotated[
        str | None,
        typer.Option(
            metavar="HOST",
            help="Where clients reach workers: by default --data-host or, if that is every "
            "address, the name in the certificate.",
        ),
    ] = None,
    first_port: Annotated[
        int,
        typer.Option(min=0, max=65535, help="First of the workers' ports, in a row; 0: any."),
    ] = 0,
    server_name: Annotated[
        str | None,
        typer.Option(help="Name in the server's certificate; found in it if there is one name."),
    ] = None,
    dealer: options.Dealer = None,
    truncation: Annotated[str, accepted(type(DEFAULT), "truncation")] = "exact",
    encrypts: Annotated[str, accepted(type(DEFAULT), "encrypts")] = "masks",
    flooding: Annotated[str, accepted(type(COHORT), "flooding")] = STATISTICAL,
    reveal_values: Annotated[
        bool,
        typer.Option(
            "--reveal-values",
            help="Also serve models of suites that show clients values before activations, in a "
            "random order.",
        ),
    ] = False,
    accept: options.Accept = None,
    answers_per_hour: options.AnswersPerHour = None,
    policy: Annotated[
        str,
        typer.Option(
            help="Order of jobs: `fcfs`, `priority` (length - beta * age) or `deadline`; `fair+` "
            "before it shares cores fairly between clients, `ahead+` also makes material that is "
            "expected to be used, `shared+` gives cores that are free to those that run."
        ),
    ] = "fair+priority",
    beta: Annotated[
        float, typer.Option(min=0, help="For `priority`: what a second of waiting weighs.")
    ] = 0.1,
    ahead: Annotated[
        str, typer.Option(metavar="SIZE", help="Most material on disk that is made ahead.")
    ] = "16GiB",
    tokens: Annotated[
        Path | None,
        typer.Option(
            help="File of SHA-256 of bearer tokens; clients then need one.", dir_okay=False
        ),
    ] = None,
    operator: Annotated[
        list[str] | None,
        typer.Option(
            help="Common name or fingerprint of an operator's certificate; again for more."
        ),
    ] = None,
    requests_per_minute: Annotated[
        float, typer.Option(min=0.1, help="Inferences and notices of one client, on the average.")
    ] = 600.0,
    queue: Annotated[int, typer.Option(min=1, help="Most jobs, running or waiting.")] = 1000,
    material_hours: Annotated[
        float, typer.Option(min=0.01, help="Hours after which unused material is deleted.")
    ] = 24.0,
    max_material: options.MaxMaterial = None,
    grace: Annotated[
        float, typer.Option(min=0.1, help="Seconds in which a client must connect for its job.")
    ] = 15.0,
    absent: Annotated[
        float,
        typer.Option(
            min=1, help="Seconds that jobs wait for a client that has ceased to ask for updates."
        ),
    ] = 30.0,
    poll: Annotated[
        float, typer.Option(min=0.1, help="Seconds between looks at the repository.")
    ] = 5.0,
    audit: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="Write down who asked for which model when, and under which policy, in lines that "
            "are chained by hashes.",
        ),
    ] = None,
    revoked: options.Revoked = None,
    timeout: options.Timeout = 30.0,
    check: Annotated[
        bool,
        typer.Option("--check", help="Check options, files and the address, and serve nothing."),
    ] = False,
    trace: options.Trace = None,
    _config: Config = None,
    as_json: options.AsJson = False,
) -> None:
    """Serve a model, or a repository of models, to many clients, on one machine or several.

    Clients learn predictions, the server learns nothing of their inputs. Clients choose how,
    within what this server accepts: exact truncations, no dealer, weights that stay here and
    statistical noise, unless a flag or a policy accepts something weaker. Logs go to standard
    error, a JSON object a line. SIGTERM or Ctrl-C drains, a second one stops at once; SIGHUP reads
    models, certificates, the policy and tokens again.

    Example: privet serve model.onnx --keys keys --listen 0.0.0.0:7480
    """
    hangup.hold()
    # These libraries are for this command alone.
    from privet.service.control.identity import Gate, certificate_name, tls
    from privet.service.control.listener import serve as serve_control
    from privet.service.driver import ClientEndpoint
    from privet.service.executor.local import LocalExecutor
    from privet.service.limits import ServiceLimits
    from privet.service.repository import Builder
    from privet.service.service import Service, Settings

    source = single.models(
        models,
        name=name,
        suites=suite,
        flooding=flooding,
        options=options_set,
        batch=batch,
        calibration=calibration,
        input_range=input_range,
    )
    host, port = split_address(listen)
    plain = None if probe is None else split_address(probe)
    context = RenewedTls(lambda: tls(keys))
    revocations = Revoked(revoked)
    gate = Gate(operator or [OPERATOR_NAME], tokens or (), revocations)
    certified = server_name or certificate_name(keys / "server.pem")
    data_host = data_host or host
    if executor == "local" and data_host in ANYWHERE:
        advertise = advertise or certified

    def read_policy() -> Policy:
        policy = make_policy(
            accept,
            dealer=dealer is not None,
            truncation=truncation,
            encrypts=encrypts,
            flooding=flooding,
            revealed_values=reveal_values,
            answers_per_hour=answers_per_hour,
        )
        if executor != "local" and accepts_anywhere(policy, "encrypts", "weights"):
            raise Misuse(
                "clients keep the encrypted weights of one machine, and each has keys of its own: "
                "let the policy accept `encrypts` masks alone, or run without Ray"
            )
        return policy

    accepts = read_policy()
    settings = Settings(
        source,
        state,
        ClientEndpoint(certified, grace, dealer),
        named(policy, beta, Budget(bytes=parse_size(ahead, "disk space") or 1)),
        accepts,
        ServiceLimits(requests_per_minute=requests_per_minute, queued=queue),
        Limits(
            material_seconds=material_hours * 3600,
            material_bytes=parse_size(max_material, "disk space"),
            absent_seconds=absent,
        ),
        poll,
        revocations,
        audit,
    )
    executing = make_executor(
        executor,
        address=address,
        keys=keys,
        state=state,
        cores=cores,
        jobs_per_core=jobs_per_core,
        memory=parse_size(memory),
        workers=workers,
        host=data_host,
        advertise=advertise,
        first_port=first_port,
        dealer=dealer,
        max_material=parse_size(max_material, "disk space"),
        policy=uncounted(accepts).text(),
        timeout=timeout,
        revoked=revoked,
        trace=trace,
    )
    console = show.make_console()
    if check:
        addresses = [(host, port), *([] if plain is None else [plain])]
        if isinstance(executing, LocalExecutor):
            addresses += [(data_host, number) for number in executing.ports]
        serve_check.check(source, addresses, state=state, audit=audit, dealer=dealer)
        typer.echo(json.dumps({"event": "checked"}) if as_json else "Nothing is wrong.")
        if not as_json and not source.names():
            typer.echo(_without_models(models))
        return
    log_to_stderr()
    take_all_files()
    if not as_json:
        console.print(f"Loading {models}; what is new is compiled first.", soft_wrap=True)

    def reload() -> Policy:
        policy = read_policy()
        context.reload()
        return policy

    async def main() -> int:
        service = Service(settings, executing, Builder(state / "server" / "programs"), __version__)

        def listening(at: str, on: int) -> None:
            collect_seldom()
            _show(console, service, f"{at}:{on}", accepts, as_json)
            if not as_json and not source.names():
                console.print(_without_models(models), soft_wrap=True)

        follow = asyncio.create_task(_follow(console, service, as_json))
        try:
            return await serve_control(service, gate, context, host, port, listening, reload, plain)
        finally:
            follow.cancel()

    raise typer.Exit(asyncio.run(main()))


def _without_models(repository: Path) -> str:
    return f"{repository} has no models yet: a model is a file {repository}/NAME/1/model.onnx."


async def _follow(console: Console, service: Service, as_json: bool) -> None:
    """Prints the table whenever it changes."""
    while True:
        await service.changes()
        _print(console, service.repository.rows(), as_json)


def _show(console: Console, service: Service, address: str, policy: Policy, as_json: bool) -> None:
    if as_json:
        accepted = json.loads(policy.text())
        typer.echo(json.dumps({"event": "listening", "address": address, "policy": accepted}))
    rows = service.repository.rows()
    _print(console, rows, as_json)
    if not as_json:
        show.policy(console, policy, {suite for row in rows for suite in row.suites})
        console.print(f"Serving at https://{address}; operators' page at /. Stop with Ctrl-C.")


def _print(console: Console, rows: list[VersionRow], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"event": "models", "models": [vars(row) for row in rows]}))
        return
    heads = ("Model", "Version", "Suites", "Ready", "Program (for clients that pin it)")
    table = show.table(heads, ())
    table.columns[-1].overflow = "fold"  # whole, as clients copy it
    for row in rows:
        ready = Text("yes" if row.ready else "no")
        if row.error:
            answer = "earlier files" if row.ready else "no"
            ready = Text.assemble(f"{answer}: ", (row.error, "red"))
        number = "" if row.version is None else str(row.version)
        table.add_row(row.model, number, ", ".join(row.suites), ready, row.program or "")
    console.print(table)
    bases = {row.calibration for row in rows if row.calibration is not None}
    show.warn_uncalibrated(next(filter(caveat, bases), "samples"))
