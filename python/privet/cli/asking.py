"""What `privet infer`, `prepare` and `gateway` share: options, and the service's client."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privet.cli.console import Console
from privet.errors import PrivetError
from privet.runtime import Credentials
from privet.suites import Progress

if TYPE_CHECKING:
    from privet.gateway import ServiceClient

TOKEN = "PRIVET_TOKEN"
"""Environment variable with the bearer token, for services that want one."""

Address = Annotated[str, typer.Argument(metavar="ADDRESS", help="The service: HOST:PORT.")]
Model = Annotated[
    str | None,
    typer.Argument(metavar="MODEL", help="Name of the model; needed if the service has several."),
]
Version = Annotated[
    int | None, typer.Option(min=1, help="Version of the model; the newest by default.")
]
ProgramHash = Annotated[
    str | None, typer.Option(help="The program to insist on, as its server prints it.")
]
Patience = Annotated[
    float, typer.Option(min=0.1, help="Seconds after which to give up, queues included.")
]
READY_SECONDS = 0.5
"""Between questions whether a service that is starting is ready."""

Wait = Annotated[
    float,
    typer.Option(
        min=0, metavar="SECONDS", help="How long to wait for a service that is away; else an error."
    ),
]
MaxDisk = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Most material and kept weights in --state, such as 10GB."),
]


async def until_stopped() -> None:
    """Waits for SIGINT or SIGTERM."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    await stopped.wait()


async def reach(client: ServiceClient, wait: float) -> None:
    """Waits until the service answers, and says so on standard error if it takes waiting. For what
    is left of `wait`, one that is starting may load its models. Raises what `ServiceClient.reach`
    does."""

    stderr = Console(stderr=True, highlight=False)

    def waiting(error: PrivetError) -> None:
        stderr.print(f"{error}. Waiting for {wait:g} s.", soft_wrap=True)

    limit = time.monotonic() + wait
    await client.reach(wait, waiting)
    while time.monotonic() < limit and not await client.ready():
        await asyncio.sleep(READY_SECONDS)


def client_credentials(keys: Path) -> Credentials:
    """What the folder `keys` has for clients. Raises `Misuse` if it cannot be used."""
    return Credentials.from_directory(keys, "client")


def connect(
    address: str,
    keys: Path | Credentials,
    *,
    state: Path,
    server_name: str | None,
    dealer: str | None,
    link: str | None,
    patience: float,
    memory: str | None = None,
    max_disk: str | None = None,
    offers: bool = False,
    progress: Progress | None = None,
) -> ServiceClient:
    """A client of the service at an address, with the certificate in the folder `keys` and the
    token of this process. Raises `Misuse` if the address or the certificates are none."""
    from privet.gateway import ServiceClient

    if isinstance(keys, Path):
        keys = client_credentials(keys)
    return ServiceClient(
        address,
        keys,
        state=state,
        token=os.environ.get(TOKEN),
        server_name=server_name,
        dealer=dealer,
        link=link,
        memory=memory,
        max_disk=max_disk,
        patience=patience,
        offers=offers,
        progress=progress,
    )
