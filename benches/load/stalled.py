"""Peers that take places of a service and then say nothing, come again whenever they are cut off.

`handshakes` connect and never begin TLS. `protocols` finish the handshake, with a certificate of a
client, and then say nothing to a worker, or half a call to the control plane. Both go to the
control plane and to the workers in turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

from benches.load.place import Place, Running
from privet.errors import PrivetError
from privet.runtime import Credentials

KINDS = ("handshakes", "protocols")
PAUSE_SECONDS = 0.5
BEGINNING = b"GET /v2/jobs HTTP/1.1\r\nHost: "

Stall = Callable[[int], Awaitable[None]]


@contextlib.asynccontextmanager
async def stalled(
    kind: str, count: int, place: Place, service: Running, first: int
) -> AsyncIterator[None]:
    """So many peers that stall meanwhile, with the certificates from the client `first` on."""
    ports = (int(service.address.rpartition(":")[2]), *service.ports)

    roles = [place.role(first + number) for number in range(count)]
    contexts = [Credentials.from_directory(place.keys, role).tls() for role in roles]

    async def handshake(number: int) -> None:
        await _hold(ports[number % len(ports)])

    async def protocol(number: int) -> None:
        port = ports[number % len(ports)]
        await _hold(port, contexts[number], BEGINNING if port == ports[0] else b"")

    stalls: dict[str, Stall] = {"handshakes": handshake, "protocols": protocol}
    tasks = [asyncio.create_task(_again(stalls[kind], number)) for number in range(count)]
    try:
        await asyncio.sleep(2 * PAUSE_SECONDS)
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _again(stall: Stall, number: int) -> None:
    while True:
        with contextlib.suppress(OSError, PrivetError):
            await stall(number)
        await asyncio.sleep(PAUSE_SECONDS)


async def _hold(port: int, tls: ssl.SSLContext | None = None, beginning: bytes = b"") -> None:
    """Connects, and returns when the other side has hung up."""
    name = None if tls is None else "localhost"
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname=name)
    try:
        writer.write(beginning)
        await reader.read()
    finally:
        writer.close()
