"""A relay between a program on this host and a session at a service.

The service knows sessions by the certificates of their WebSockets. The program here speaks to a
Unix socket, where it first reads the SHA-256 of the certificate that the service showed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import ClientWebSocketResponse, WSMsgType

from privet.errors import LinkError, PrivetError
from privet.gateway.calls import Calls

LINGER_SECONDS = 5.0
"""How long the program here may take to read why a session has ended."""

CHUNK_BYTES = 2**16
"""The most that goes into one message; the service takes twice as much."""


@asynccontextmanager
async def relay(calls: Calls, path: str) -> AsyncIterator[tuple[Path, list[PrivetError]]]:
    """A Unix socket each of whose connections is a session at the service, and why some failed."""
    failures: list[PrivetError] = []
    open: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open.add(task)
        try:
            async with calls.stream(path) as link:
                writer.write(_fingerprint(link))
                await _join(link, reader, writer)
        except PrivetError as error:
            failures.append(error)
        finally:
            open.discard(task)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    with tempfile.TemporaryDirectory(prefix="privet-") as folder:
        socket = Path(folder) / "relay"
        server = await asyncio.start_unix_server(serve, socket)
        try:
            yield socket, failures
        finally:
            server.close()
            # Whoever gives up ends the session as well: the service computes for nobody then.
            for task in (left := list(open)):
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)


async def _join(
    link: ClientWebSocketResponse, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Passes on what comes, until either side ends. What the service said last arrives: the program
    here would not read it if nobody took what it still sends."""

    async def up() -> None:
        while data := await reader.read(CHUNK_BYTES):
            with contextlib.suppress(ConnectionError):
                await link.send_bytes(data)

    async def down() -> None:
        async for message in link:
            if message.type is not WSMsgType.BINARY:
                return
            writer.write(message.data)
            await writer.drain()

    tasks = [asyncio.create_task(up()), asyncio.create_task(down())]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    if tasks[1].done():
        with contextlib.suppress(OSError):
            writer.write_eof()
        await asyncio.wait(tasks[:1], timeout=LINGER_SECONDS)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _fingerprint(link: ClientWebSocketResponse) -> bytes:
    """The SHA-256 of the certificate that the service showed."""
    tls = link.get_extra_info("ssl_object")
    certificate = None if tls is None else tls.getpeercert(binary_form=True)
    if certificate is None:
        raise LinkError("the service showed no certificate")
    return hashlib.sha256(certificate).digest()
