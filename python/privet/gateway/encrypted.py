"""Models of suite `ckks` at a service: a session of the program `privet-ckks`, which runs here.

The service relays sessions by WebSocket and knows their certificates; key and data stay in the
program on this host. What a session computes waits in the service's queues like other jobs.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import ClientWebSocketResponse, WSMsgType

from privet.compiler.executor.codec import Inputs
from privet.errors import LinkError, PrivetError
from privet.gateway.calls import Calls
from privet.gateway.model import Offer, Terms
from privet.runtime import Result
from privet.runtime.homomorphic import Endpoint, Prediction, ask
from privet.suites import Progress
from privet.suites.ckks import encrypting

SILENCE = 120.0
"""Seconds that this side waits for each message if it is not reply."""

LINGER_SECONDS = 5.0
"""How long the program here may take to read why a session has ended."""

CHUNK_BYTES = 2**16
"""The most that goes into one message; the service takes twice as much."""


async def infer_encrypted(
    calls: Calls,
    path: str,
    offer: Offer,
    inputs: Inputs,
    terms: Terms,
    timeout: float,
    progress: Progress | None = None,
) -> Result:
    """The private predictions for real inputs, up to the program's batch, by the model at `path`,
    in the scenario of `terms` and with no less noise on results than they say.

    # Errors
    `InputError` before anything is sent if an input does not fit; `Misuse` without the program
    `privet-ckks`; `PeerBusy`, `LinkError`, `PeerError`.
    """
    async with _relay(calls, path + "/session") as (socket, failures):
        suite = encrypting(terms.suite)
        endpoint = Endpoint("", 0, Path(), timeout=timeout, suite=suite, socket=socket)
        try:
            found = await asyncio.to_thread(ask, endpoint, offer.program, inputs, progress=progress)
        except LinkError as error:
            # What broke the link is what the service said, if it said anything.
            raise (failures[0] if failures else error) from error
    return _result(found, offer.program.calibration)


def _result(found: Prediction, calibration: str) -> Result:
    return Result(
        outputs=found.outputs,
        integers=found.integers,
        material="",
        config=found.suite,
        calibration=calibration,
        dry=None,
        offline=found.offline,
        online=found.online,
        layers=found.layers,
        samples=found.samples,
        plan=found.plan,
    )


@asynccontextmanager
async def _relay(calls: Calls, path: str) -> AsyncIterator[tuple[Path, list[PrivetError]]]:
    """A Unix socket each of whose connections is a session at the service, and why some failed."""
    failures: list[PrivetError] = []
    open: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open.add(task)
        try:
            async with calls.stream(path) as link:
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
