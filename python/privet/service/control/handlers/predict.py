"""For browsers: the page that asks a model of suite `ckks`, its module, and the relay of sessions.

What passes here are public evaluation keys and ciphertexts: the key that opens them is made in the
page and stays there.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from privet.errors import Misuse, NotAccepted, PeerBusy, PrivetError
from privet.service.control.calls import (
    Answer,
    Call,
    Refusal,
    bad_request,
    check_origin,
    check_takes_jobs,
    not_found,
    too_many,
    unavailable,
)
from privet.service.control.handlers.models import find
from privet.service.model_server import SILENCE_SECONDS, Streams

POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' blob:; worker-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""The page's Content-Security-Policy, and its worker's: nothing inline, nothing from elsewhere.
Only here may WebAssembly be compiled."""

MESSAGE_BYTES = 2**17
"""The most that a client may put into one message of a WebSocket; what a session carries is cut."""

CHUNK_BYTES = 2**16

_HEADERS = {"Content-Security-Policy": POLICY}


async def page(call: Call[Any]) -> Answer:
    return await asset(call, "predict.html")


async def asset(call: Call[Any], name: str | None = None) -> Answer:
    """A file of the page: scripts, or the module, compressed where the browser takes that."""
    name = name or call.path["file"]
    if name in ("ckks.wasm", "ckks.js"):
        return await _module(call, name)
    page = call.pages.file(name)
    if page is None:
        raise not_found("there is no such file")
    kind, text = page
    return web.Response(text=text, content_type=kind, headers=_HEADERS)


async def _module(call: Call[Any], name: str) -> Answer:
    try:
        module = await asyncio.to_thread(call.pages.module)
    except Misuse as error:
        raise Refusal(404, "no module", str(error)) from error
    if name == "ckks.js":
        return web.Response(text=module.script, content_type="text/javascript", headers=_HEADERS)
    headers = {**_HEADERS, "Vary": "Accept-Encoding"}
    body = module.code
    if "gzip" in call.request.headers.get("Accept-Encoding", ""):
        body, headers["Content-Encoding"] = module.compressed, "gzip"
    return web.Response(body=body, content_type="application/wasm", headers=headers)


async def session(call: Call[Any]) -> Answer:
    """Relays a session with the version's process, as a stream of bytes in binary messages."""
    version = find(call)
    model_server = call.service.model_servers.find(version)
    if model_server is None:
        raise bad_request(f"model {version.name} is not served in sessions")
    check_takes_jobs(call.service)
    check_origin(call.request)
    partner = version.partner(call.caller.certified)
    if partner is None:
        try:
            call.service.admit(call.caller.client, call.caller.certified, version.session.mode, 0)
        except NotAccepted as error:
            raise Refusal(403, "policy", str(error)) from error
    rates = (call.service.limits.requests_per_minute, version.config.limits.requests_per_minute)
    per_minute = max(1, int(min(rate for rate in rates if rate is not None)))
    try:
        with model_server.place(call.caller.client, partner):
            await model_server.start()
            session = call.service.sessions.open(
                call.caller.client, model_server, call.caller.certified, partner
            )
            try:
                streams = await model_server.connect(
                    session.client, session.name, per_minute, session.number
                )
                return await _relay(call, streams, session.closing)
            finally:
                call.service.sessions.close(session)
    except PeerBusy as error:
        raise too_many(str(error), 5.0, "sessions") from error
    except (PrivetError, OSError) as error:
        raise unavailable(
            f"the model's process does not answer: {error}", 5.0, "process"
        ) from error


async def _relay(call: Call[Any], streams: Streams, closing: asyncio.Event) -> Answer:
    reader, writer = streams
    socket = web.WebSocketResponse(max_msg_size=MESSAGE_BYTES, compress=False)
    try:
        await socket.prepare(call.request)
        down = asyncio.create_task(_down(reader, socket))
        tasks: list[asyncio.Task[Any]] = [down, asyncio.create_task(_up(socket, writer))]
        tasks += [asyncio.create_task(event.wait()) for event in (call.service.closing, closing)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if closing.is_set():
            # The process finds the end of what the client said, and says no more.
            with contextlib.suppress(OSError):
                writer.write_eof()
            await asyncio.wait([down], timeout=SILENCE_SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        if socket.prepared:
            await socket.close(code=WSCloseCode.OK)
    return socket


async def _up(socket: web.WebSocketResponse, writer: asyncio.StreamWriter) -> None:
    async for message in socket:
        if message.type is not WSMsgType.BINARY:
            return
        writer.write(message.data)
        await writer.drain()


async def _down(reader: asyncio.StreamReader, socket: web.WebSocketResponse) -> None:
    while data := await reader.read(CHUNK_BYTES):
        async with asyncio.timeout(SILENCE_SECONDS):
            await socket.send_bytes(data)
