"""Sessions of suite `ckks` at a service: the program `privet-ckks` on this host, and a relay to it.

The service knows sessions by the certificates of their WebSockets, and relays them; key and data
stay in the program on this host, which speaks to a Unix socket here. What a session computes waits
in the service's queues like other jobs.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aiohttp import ClientWebSocketResponse, WSMsgType

from privet.compiler.executor.codec import Inputs
from privet.errors import LinkError, PeerBusy, PrivetError
from privet.gateway.calls import Calls
from privet.gateway.catalog import version_path
from privet.gateway.model import Offer, Terms
from privet.runtime import Credentials, Result
from privet.runtime.homomorphic import Endpoint, ask, take_part
from privet.suites import Progress
from privet.suites.ckks import encrypting
from privet.suites.costs import PhaseCost

LINGER_SECONDS = 5.0
"""How long the program here may take to read why a session has ended."""

CHUNK_BYTES = 2**16
"""The most that goes into one message; the service takes twice as much."""


@asynccontextmanager
async def relay(calls: Calls, path: str) -> AsyncIterator[Path]:
    """A Unix socket each of whose connections is a session at the service.

    The program here first reads there the SHA-256 of the certificate that the service showed. A
    `LinkError` meanwhile becomes what the service said, if it said anything.
    """
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
            yield socket
        except LinkError as error:
            raise (failures[0] if failures else error) from error
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


SILENCE = 120.0
"""Seconds that this side waits for each message if nothing else is said."""


async def infer_encrypted(
    calls: Calls,
    credentials: Credentials,
    path: str,
    offer: Offer,
    inputs: Inputs,
    terms: Terms,
    timeout: float,
    progress: Progress | None = None,
) -> Result:
    """The private predictions for real inputs, up to the program's batch, by the model at `path`,
    in the scenario of `terms` and with no less noise on results than they say. Raises `InputError`
    before anything is sent if an input does not fit; `Misuse` without the program `privet-ckks`;
    `PeerBusy`, `LinkError`, `PeerError`."""
    with tempfile.TemporaryDirectory(prefix="privet-") as keys:
        credentials.link_into(Path(keys), "client")
        async with relay(calls, path + "/session") as socket:
            endpoint = Endpoint(Path(keys), encrypting(terms.suite), timeout, socket=socket)
            return await asyncio.to_thread(ask, endpoint, offer.program, inputs, progress=progress)


PAUSE_SECONDS = 0.5

OnInference = Callable[[PhaseCost | PrivetError | None], None]
"""Is called when an inference has begun (None), what it has cost, or why it failed."""


@dataclass(frozen=True)
class Membership:
    """Where a member takes part: a version of a model at a service, as member `member`, with its
    `program` (of member 0 both halves)."""

    model: str
    version: int
    program: Path
    member: int


async def join_cohort(
    calls: Calls, membership: Membership, endpoint: Endpoint, on_inference: OnInference, wait: float
) -> None:
    """Takes part in inferences as a member of a cohort, one after the other, until it is cancelled.

    Each is a process with a new share of a new key; nothing is kept between two. One that failed,
    for instance because another party left, is told of, and the next is waited for; a service that
    is away is tried for `wait` seconds.

    Raises what the service refuses the member for; `LinkError` if it stays away.
    """
    path = version_path(membership.model, membership.version) + "/session"
    limit = time.monotonic() + wait
    while True:
        began, begun = time.monotonic(), threading.Event()

        def begins(begun: threading.Event = begun) -> None:
            begun.set()
            on_inference(None)

        try:
            on_inference(await _once(calls, path, membership, endpoint, begins))
        except PrivetError as error:
            if begun.is_set():
                on_inference(error)
            elif not isinstance(error, LinkError | PeerBusy):
                raise
            elif time.monotonic() - began > PAUSE_SECONDS:  # it was there before
                limit = time.monotonic() + wait
            elif time.monotonic() > limit:
                raise
            await asyncio.sleep(PAUSE_SECONDS)
            await calls.reach(wait)
        else:
            limit = time.monotonic() + wait


async def _once(
    calls: Calls, path: str, membership: Membership, endpoint: Endpoint, begins: Callable[[], None]
) -> PhaseCost:
    async with relay(calls, path) as socket:
        where = replace(endpoint, socket=socket)
        return await asyncio.to_thread(
            take_part, membership.program, membership.member, where, begins
        )
