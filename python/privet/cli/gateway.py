"""`privet gateway`: a local endpoint of the Open Inference Protocol before a private service."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import typer

from privet import suites
from privet.cli import options, show
from privet.cli.asking import MaxDisk, client_credentials, connect, until_stopped
from privet.cli.configuration import Config
from privet.cli.suite_options import Suite
from privet.errors import Misuse
from privet.logs import log_to_stderr
from privet.runtime import Credentials, hangup
from privet.runtime.hangup import Hangup
from privet.runtime.quantities import split_address
from privet.runtime.revocation import Revoked
from privet.runtime.shortage import take_all_files


def gateway(
    server: Annotated[str, typer.Option(metavar="URL", help="The service: https://HOST:PORT.")],
    keys: options.Keys,
    state: options.State = Path("privet-state"),
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where to listen for REST; `off` for nowhere.")
    ] = "127.0.0.1:8000",
    grpc: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where to listen for gRPC; `off` for nowhere.")
    ] = "127.0.0.1:8001",
    tls_certificate: Annotated[
        Path | None,
        typer.Option(help="The endpoint's own certificate, to listen beyond this machine."),
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its key.")] = None,
    tls_clients: Annotated[
        Path | None, typer.Option(help="Authority of the certificates that clients must show.")
    ] = None,
    revoked: options.Revoked = None,
    ahead: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL=N", help="Keep material for N inferences ready; again for more models."
        ),
    ] = None,
    batch_delay: Annotated[
        float,
        typer.Option(
            metavar="MILLISECONDS",
            min=0,
            help="How long a request may wait for others of its model, to be answered with them in "
            "one inference where the model takes several samples at once.",
        ),
    ] = 0.0,
    suite: Suite = suites.DEFAULT,
    dealer: options.Dealer = None,
    link: options.Link = None,
    server_name: options.ServerName = None,
    max_disk: MaxDisk = None,
    patience: Annotated[
        float, typer.Option(min=0, help="Seconds to try again while the service is busy or away.")
    ] = 60.0,
    _trace: options.Trace = None,
    _config: Config = None,
    as_json: options.AsJson = False,
) -> None:
    """Answer the Open Inference Protocol here, by private inference at a service.

    Inputs come in the clear to this process and leave it only as messages of the protocol: run it
    where the data is. SIGHUP reads certificates again; calls under way go on. SIGTERM or Ctrl-C
    stops it.
    """
    hangup.hold()
    # The core of gRPC writes a line for each handshake that fails.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # These libraries are for this command alone.
    from privet.gateway import Terms
    from privet.gateway.ahead import Ahead
    from privet.gateway.endpoint import (
        EndpointKeys,
        EndpointTls,
        check_place,
        serve_grpc,
        serve_rest,
    )
    from privet.gateway.oip.backend import Backend
    from privet.gateway.oip.exchange import Exchange

    log_to_stderr()
    take_all_files()
    levels = dict(_level(text) for text in ahead or ())
    places = {
        name: None if text == "off" else split_address(text)
        for name, text in (("rest", listen), ("grpc", grpc))
    }
    if not any(places.values()):
        raise Misuse("--listen and --grpc are both off: give an address to one of them")
    if tls_certificate is None or tls_key is None:
        if (tls_certificate, tls_key, tls_clients) != (None, None, None):
            raise Misuse("TLS needs both --tls-certificate and --tls-key")
        tls = None
    else:
        tls = EndpointTls(EndpointKeys(tls_certificate, tls_key, tls_clients))
    if revoked is not None and tls_clients is None:
        raise Misuse("--revoked needs --tls-clients: callers show no certificate without it")
    revocations = Revoked(revoked)
    for place in places.values():
        if place is not None:
            check_place(place[0], tls)
    terms = Terms(suite)
    console = show.make_console()

    def backend(credentials: Credentials) -> Backend:
        client = connect(
            server,
            credentials,
            state=state,
            server_name=server_name,
            dealer=dealer,
            link=link,
            max_disk=max_disk,
            patience=patience,
            offers=True,
        )
        return Backend(client, Ahead(client, terms, levels))

    async def main() -> None:
        current = client_credentials(keys)
        exchange = Exchange(await backend(current).open(), terms, batch_delay=batch_delay / 1000)

        def read() -> Credentials:
            credentials = client_credentials(keys)
            credentials.tls()  # What cannot be used is noticed before anything has changed.
            return credentials

        async def reload() -> None:
            nonlocal current
            credentials = await asyncio.to_thread(read)
            is_changed = credentials.digest != current.digest
            replacement = await backend(credentials).open() if is_changed else None
            try:
                if tls is not None:
                    await asyncio.to_thread(tls.reload)
            except BaseException:
                if replacement is not None:
                    await replacement.close()
                raise
            if replacement is not None:
                exchange.renew(replacement)
                current = credentials

        async with AsyncExitStack() as stack:
            stack.push_async_callback(exchange.close)
            stack.enter_context(Hangup(reload, "certificates"))
            ports = {}
            for name, serve in (("rest", serve_rest), ("grpc", serve_grpc)):
                place = places[name]
                if place is not None:
                    listener = serve(exchange, *place, tls, revocations)
                    ports[name] = f"{place[0]}:{await stack.enter_async_context(listener)}"
            if as_json:
                typer.echo(json.dumps({"event": "listening", **ports}))
            else:
                for name, at in ports.items():
                    console.print(f"Open Inference Protocol ({name}) at {at}.")
                console.print(f"For {server}; stop with Ctrl-C.")
            await until_stopped()

    asyncio.run(main())


def _level(text: str) -> tuple[str, int]:
    model, _, count = text.rpartition("=")
    if not model or not count.isdigit():
        raise Misuse(f"{text!r} is not MODEL=N, such as digits=4")
    return model, int(count)
