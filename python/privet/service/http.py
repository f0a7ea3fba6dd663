"""HTTP at a port, for control plane and gateway: bounded connections, errors that quote nothing.

aiohttp's own handler answers bytes that are no HTTP with the text of its parser's error and logs
it, and that text quotes them. Here such bytes get a fixed answer, and no line in a log.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import PayloadAccessError, RequestHandler, RequestPayloadError

from privet.logs import trace
from privet.runtime.listening import ListenerBounds, Listening, RenewedTls, WrapsTls

IDLE_SECONDS = 75.0
"""How long a connection may stay open without a call; longer than a call may be held."""

BODY_SECONDS = 60.0
"""How long the body of a call may take to arrive; the gateway's bodies may be large."""

UNREAD_SECONDS = 60.0
"""How long a client may read nothing of an answer that waits for it; its connection is cut then."""

READ_BYTES = 16 << 10
"""Connections are read in chunks of so many bytes at most."""

CHUNK_BYTES = 64 << 10
"""Large answers are written in chunks of so many bytes, each when the one before has gone."""

METHODS = frozenset({"GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"})
"""Methods as they are counted and logged; others are `other`, since a client chooses them."""

ENCODINGS = frozenset({"identity", "gzip", "deflate"})
"""How a body may come: what else a caller names would be read as if it named none."""

_log = logging.getLogger(__name__)


class Handler(RequestHandler):
    """A connection of aiohttp whose errors quote nothing, and whose answers do not wait for ever
    until they are read: each holds its memory."""

    __slots__ = ("unread", "waiting")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.waiting: asyncio.Task[Any] | None = None
        self.unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Reads in chunks that the heap has: what asyncio asks for by default comes from the system
        each time, and where that has no more the connection would break off without an answer."""
        if hasattr(transport, "max_size"):
            transport.max_size = READ_BYTES
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Breaks off the call that waits for a client which has gone."""
        self._forget_unread()
        super().connection_lost(exc)
        if self.waiting is not None:
            self.waiting.cancel()

    def pause_writing(self) -> None:
        """From now on the client is expected to read."""
        super().pause_writing()
        self._expect_less_than(math.inf)

    def resume_writing(self) -> None:
        """The client has read."""
        self._forget_unread()
        super().resume_writing()

    def _expect_less_than(self, size: float) -> None:
        """Cuts the connection if no less than so many bytes wait to be read; else looks again."""
        self._forget_unread()
        transport = self.transport
        if not isinstance(transport, asyncio.WriteTransport):
            return
        backlog = transport.get_write_buffer_size()
        if backlog < size:
            loop = asyncio.get_running_loop()
            self.unread = loop.call_later(UNREAD_SECONDS, self._expect_less_than, backlog)
        else:
            transport.abort()

    def _forget_unread(self) -> None:
        if self.unread is not None:
            self.unread.cancel()
            self.unread = None

    def log_exception(self, *_args: Any, **fields: Any) -> None:
        """Tells where a connection broke off, and not what came there."""
        error = fields.get("exc_info")
        frames = trace(error) if isinstance(error, BaseException) else []
        _log.info("a connection broke off", extra={"trace": frames})

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to what is no request, or whose handling broke off."""
        if request.writer is not None and request.writer.output_size > 0:
            raise ConnectionError("an answer has begun already")
        text = "the request is no proper HTTP" if status < 500 else "the request was broken off"
        response = web.json_response({"error": text, "reason": "http"}, status=status)
        response.force_close()
        return response


@asynccontextmanager
async def serving(
    app: web.Application,
    host: str,
    port: int,
    tls: WrapsTls | None,
    *,
    shutdown: float,
    bounds: ListenerBounds | None = None,
    cancel: bool = False,
    count: Callable[[str], None] = lambda outcome: None,
) -> AsyncIterator[tuple[str, int]]:
    """Serves an application meanwhile; gives the address. Calls under way at the end have
    `shutdown` seconds; with `cancel`, a call ends when its client goes. Once `tls` was renewed, a
    connection from before ends with its next answer. `count` is called with the outcome of each
    handshake. Raises `OSError` if the address cannot be had."""
    if isinstance(tls, RenewedTls):
        app.on_response_prepare.append(_last_of_old(tls))
    runner = web.AppRunner(
        app, access_log=None, shutdown_timeout=shutdown, handler_cancellation=cancel
    )
    await runner.setup()
    server = runner.server
    assert server is not None
    loop = asyncio.get_running_loop()

    def handler() -> Handler:
        options: dict[str, Any] = {"access_log": None, "keepalive_timeout": IDLE_SECONDS}
        return Handler(server, loop=loop, **options)

    listening = Listening(handler, tls, bounds, count)
    try:
        yield await listening.listen(host, port)
    finally:
        await listening.close()
        await runner.cleanup()


def _last_of_old(tls: RenewedTls) -> Callable[..., Awaitable[None]]:
    async def end(request: web.Request, response: web.StreamResponse) -> None:
        transport = request.transport
        link = None if transport is None else transport.get_extra_info("ssl_object")
        # A WebSocket is all that its connection has left, and its answer upgrades it.
        upgrades = isinstance(response, web.WebSocketResponse)
        if link is not None and not upgrades and not tls.is_current(link):
            response.force_close()
            # aiohttp has made the headers by now.
            response.headers["Connection"] = "close"

    return end


@contextmanager
def while_connected(request: web.Request) -> Iterator[None]:
    """What is done meanwhile is broken off when the connection of its caller ends."""
    handler, task = request.protocol, asyncio.current_task()
    assert isinstance(handler, Handler)
    assert task is not None
    handler.waiting = task
    if request.transport is None:
        task.cancel()
    try:
        yield
    finally:
        handler.waiting = None


def in_chunks(body: bytes, content_type: str) -> web.Response:
    """A large answer, of which only a few chunks wait for a client that does not read."""

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), CHUNK_BYTES):
            yield body[start : start + CHUNK_BYTES]

    length = {"Content-Length": str(len(body))}
    return web.Response(body=chunks(), headers=length, content_type=content_type)


async def read_body(request: web.Request) -> bytes:
    """The body of a call. Raises `web.HTTPRequestTimeout` if it does not come, `web.HTTPBadRequest`
    if it is no proper HTTP, or is compressed otherwise than it says or than this server reads."""
    encoding = request.headers.get("Content-Encoding", "identity").lower()
    if encoding not in ENCODINGS:
        raise web.HTTPBadRequest(reason="a body may be compressed by gzip or deflate alone")
    try:
        if request.content.is_eof():
            return await request.read()  # It came with its head, and nothing is waited for.
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except TimeoutError:
        raise web.HTTPRequestTimeout from None
    except (PayloadAccessError, RequestPayloadError, HttpProcessingError, OSError):
        # The parser's text quotes what it could not read.
        reason = None if encoding == "identity" else f"the body is no proper {encoding}"
        raise web.HTTPBadRequest(reason=reason) from None
