"""Calls of a service's control plane: JSON over TLS, made again while there is hope.

No input and no share ever goes through here: these calls say which model, how, and when.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import random
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NoReturn
from urllib.parse import urlsplit

import aiohttp

from privet import tracing
from privet.errors import (
    MaterialError,
    Misuse,
    NotAccepted,
    PeerBusy,
    PeerError,
    PeerMisbehaved,
    PrivetError,
    printable,
)
from privet.gateway.reach import NotReached, not_reached, refusal
from privet.logs import Seldom
from privet.runtime import Credentials
from privet.runtime.credentials import check_credentials
from privet.runtime.listening import notice_loss
from privet.runtime.revocation import Revoked
from privet.runtime.trust import chain_of

HTTPS_PORT = 443

MOST_BYTES = 64 << 20
"""The largest answer: the public half of a large program is some megabytes."""

ANSWER_SECONDS = 30.0
"""How long an answer may take beyond the time that the call asks the service to wait."""

CONNECT_SECONDS = 4.0
"""How long a connection may take to be made, and a service to show that it is there."""

LIVE = "/v2/health/live"

PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 10.0

LONG_PAUSE_SECONDS = 2.0
"""A pause of which somebody who waits is told, once a minute."""

BUSY = (429, 503, 507)
"""Answers that say to come back later: too much was asked, no place, no room on the disk."""

_log = logging.getLogger(__name__)


class Calls:
    """The control plane at `url` (`https://HOST:PORT`), called within one event loop.

    `server_name` is the name in the service's certificate, if it is not the host's; `token` a
    bearer token, for services that ask for one. A call that meets a busy service (429, 503) or none
    at all is made again, later and later and not before the service says, for `patience` seconds.
    No connection is made to a service whose certificate is one of the `revoked`; `certificates` has
    the certificates, in DER, that it showed for the last stream.

    Raises `Misuse` if `url` is no such address, or the certificates cannot be used.
    """

    def __init__(
        self,
        url: str,
        credentials: Credentials,
        *,
        server_name: str | None = None,
        token: str | None = None,
        patience: float = 60.0,
        revoked: Revoked | None = None,
    ) -> None:
        try:
            parts = urlsplit(url if "//" in url else f"https://{url}")
            port = parts.port or HTTPS_PORT
        except ValueError:  # half a pair of brackets, or a port that is no number or too large
            parts, port = urlsplit(""), 0
        if parts.scheme != "https" or parts.hostname is None or parts.path not in ("", "/"):
            raise Misuse(f"{url!r} is not https://HOST:PORT, such as https://localhost:7480")
        self.host, self.port = parts.hostname, port
        self.server_name = server_name or parts.hostname
        self._base = f"https://{parts.netloc}"
        check_credentials(credentials)
        self._tls = credentials.tls(revoked)
        self.certificates: list[bytes] = []
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._patience = patience
        self._seldom = Seldom()
        self._session: aiohttp.ClientSession | None = None

    async def get(
        self, path: str, hold: float = 0.0, patience: float | None = None, **query: Any
    ) -> Any:
        """What a GET answers: a JSON value. The service may hold it for `hold` seconds."""
        return _parsed(await self._call("GET", path, query=query, hold=hold, patience=patience))

    async def get_bytes(self, path: str) -> bytes:
        """What a GET answers, byte for byte."""
        return await self._call("GET", path)

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        hold: float = 0.0,
        is_needless: Callable[[], Awaitable[bool]] | None = None,
    ) -> Any:
        """What a POST answers: a JSON value. Values of None are left out of `body`. The service may
        hold it for `hold` seconds. It is not made again once it `is_needless`."""
        fields = {name: value for name, value in body.items() if value is not None}
        return _parsed(
            await self._call("POST", path, body=fields, hold=hold, is_needless=is_needless)
        )

    async def delete(self, path: str, patience: float | None = None) -> Any:
        """What a DELETE answers: a JSON value."""
        return _parsed(await self._call("DELETE", path, patience=patience))

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """A WebSocket; it is asked for once. Raises `PeerBusy` and what else the service refuses
        with; `NotReached` if it is not reached."""
        try:
            async with self._open().ws_connect(
                self._base + path,
                headers=tracing.headers(),
                server_hostname=self.server_name,
                max_msg_size=MOST_BYTES,
            ) as link:
                tls = link.get_extra_info("ssl_object")
                self.certificates = [] if tls is None else chain_of(tls)  # none: it is gone again
                yield link
        except aiohttp.WSServerHandshakeError as error:
            if error.status in BUSY:
                raise PeerBusy(f"the service has no place for a session ({error.status})") from None
            if error.status == 403:
                text = "the service's policy accepts no such session with this certificate"
                raise NotAccepted(text) from None
            raise PeerError(f"the service refused a session ({error.status})") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as cause:
            raise await self._not_reached(cause) from cause

    async def reach(
        self, wait: float = 0.0, waiting: Callable[[PrivetError], None] | None = None
    ) -> None:
        """Returns once the service answers. One that is away is tried for `wait` seconds, and
        `waiting` is called once, with why. Raises `NotReached` with its cause, within five seconds
        of the last try; `NotAccepted` if this client's certificate was revoked."""
        limit = time.monotonic() + wait
        while True:
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    await self.get(LIVE, patience=0.0)
                return
            except TimeoutError as cause:
                error = not_reached(self._base, self.server_name, cause)
            except NotReached as cause:
                error = cause
            if not error.is_away or time.monotonic() + PAUSE_SECONDS > limit:
                raise error
            if waiting is not None:
                waiting(error)
                waiting = None
            await asyncio.sleep(PAUSE_SECONDS)

    async def close(self) -> None:
        """Closes the connections."""
        if self._session is not None:
            await self._session.close()

    async def _call(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        hold: float = 0.0,
        patience: float | None = None,
        is_needless: Callable[[], Awaitable[bool]] | None = None,
    ) -> bytes:
        limit = time.monotonic() + (self._patience if patience is None else patience)
        pause = PAUSE_SECONDS
        error: PrivetError
        while True:
            try:
                return await self._once(method, path, body, query or {}, hold)
            except _Busy as busy:
                hint, error = busy.retry_after, busy.error
            except (aiohttp.ClientError, TimeoutError, OSError) as cause:
                failure = await self._not_reached(cause)
                hint, error = 0.0, failure
                if not failure.is_away:
                    raise failure from cause
            # Clients that were turned away together should not come back together.
            pause_seconds = max(hint, pause) * random.uniform(1.0, 1.25)
            if time.monotonic() + pause_seconds > limit:
                raise error
            if pause_seconds >= LONG_PAUSE_SECONDS and self._seldom.due() is not None:
                remaining = limit - time.monotonic()
                _log.warning("%s; asked again for up to %.0f seconds", error, remaining)
            await asyncio.sleep(pause_seconds)
            if is_needless is not None and await is_needless():
                raise error
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _not_reached(self, cause: BaseException) -> NotReached:
        """What broke a connection; a connection that ended without a word is looked at again."""
        failure = not_reached(self._base, self.server_name, cause)
        if failure.is_away and not isinstance(cause, aiohttp.ClientConnectorError | TimeoutError):
            endpoint = (self._base, self.host, self.port, self.server_name, self._tls)
            return await refusal(*endpoint) or failure
        return failure

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._tls, limit=32, socket_factory=_socket),
                headers=self._headers,
            )
        return self._session

    async def _once(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, Any],
        hold: float,
    ) -> bytes:
        async with self._open().request(
            method,
            self._base + path,
            params={name: str(value) for name, value in query.items()},
            json=body,
            headers=tracing.headers(),
            server_hostname=self.server_name,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(
                total=hold + ANSWER_SECONDS, sock_connect=CONNECT_SECONDS
            ),
        ) as answer:
            raw = await _read(answer)
            if answer.status >= 300:
                _refused(answer, raw)
            return raw


class OtherProgram(PeerMisbehaved):
    """The service offers another program under a name than the one that was asked for."""


class NotThere(Misuse):
    """The service knows nothing of that name."""


class _Busy(Exception):
    """The service said to come back; `error` is for the caller who cannot."""

    def __init__(self, error: PeerBusy, retry_after: float) -> None:
        super().__init__(str(error))
        self.error = error
        self.retry_after = retry_after


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    parts, size = [], 0
    async for part in answer.content.iter_any():
        size += len(part)
        if size > MOST_BYTES:
            raise PeerMisbehaved(f"the service sent an answer of more than {MOST_BYTES} bytes")
        parts.append(part)
    return b"".join(parts)


def _finite(text: str) -> float:
    """A number; JSON has no other, but Python reads `Infinity` and `1e999`."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is not finite")
    return value


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:
        raise PeerMisbehaved(f"the service's answer is no JSON: {error}") from error


def _socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket for an address that was looked up: a service that vanishes is noticed."""
    connection = socket.socket(*address[:3])
    notice_loss(connection)
    return connection


def _refused(answer: aiohttp.ClientResponse, raw: bytes) -> NoReturn:
    """Raises what a refusal means: `_Busy`, or an error for the caller."""
    message, reason = f"the service answered {answer.status}", ""
    try:
        reply = json.loads(raw)
        message, reason = printable(str(reply["error"])), str(reply.get("reason", ""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    if answer.status in BUSY:
        text = answer.headers.get("Retry-After", "")
        raise _Busy(PeerBusy(message), float(text) if text.isascii() and text.isdigit() else 0.0)
    if answer.status == 409:
        raise OtherProgram(message) if reason == "other program" else MaterialError(message)
    if answer.status == 404:
        raise NotThere(message)
    if answer.status in (400, 405, 413):
        raise Misuse(message)
    if answer.status == 403 and reason in ("policy", "revoked"):
        raise NotAccepted(message)
    if answer.status in (401, 403):
        raise PeerError(message)
    raise PeerMisbehaved(message)
