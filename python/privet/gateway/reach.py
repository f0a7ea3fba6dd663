"""How far a service is, or why it is not reached, in words for whoever asked.

A server's certificate is judged here, during the handshake. In TLS 1.3 a server judges the client's
certificate after the client's own part of the handshake, so a refusal comes as an alert on a
connection that seemed to be open; `refusal` waits for that alert alone, without a call.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator
from urllib.parse import urlsplit

import aiohttp

from privet import _native
from privet.errors import LinkError
from privet.runtime.client import network_of
from privet.runtime.revocation import REVOKED_CODE

ALERT_SECONDS = 2.0
"""How long `refusal` may take, connection included."""

AWAY = "away"

NO_CERTIFICATE_VALID = 9
EXPIRED = 10
OTHER_NAMES = (62, 64)
"""OpenSSL's codes (`X509_V_ERR_...`); what is none of these has another authority."""

ALERTS = {
    "CERTIFICATE_EXPIRED": "its clock says that this client's certificate is not valid now: look "
    "at both clocks, or get a new certificate from the authority",
    "UNKNOWN_CA": "it does not know the authority of this client's certificate: use the --keys "
    "that its operator gave you",
    "CERTIFICATE_REVOKED": "this client's certificate was revoked: ask its operator",
    "CERTIFICATE_REQUIRED": "it wants a certificate, and none was shown",
    "CERTIFICATE_UNKNOWN": "it does not accept this client's certificate: ask its operator",
    "BAD_CERTIFICATE": "it does not accept this client's certificate: ask its operator",
    "DECRYPT_ERROR": "it knows another authority of the same name as that of this client's "
    "certificate: use the --keys that its operator gave you",
}
"""What a server's alerts mean, by their names in OpenSSL."""


class NotReached(LinkError):
    """No service answered. `cause` is `away`, `expired`, `not yet valid`, `other authority`,
    `other name`, `revoked`, `no TLS` or `refused`; waiting helps against `away` alone."""

    def __init__(self, message: str, cause: str) -> None:
        super().__init__(message)
        self.cause = cause

    @property
    def is_away(self) -> bool:
        """Whether the service may come back."""
        return self.cause == AWAY


def not_reached(base: str, name: str, error: BaseException) -> NotReached:
    """What an error of a connection to `base` means, whose certificate must carry `name`."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return NotReached(*_judged(base, name, cause))
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLError) or "[SSL" in str(cause):
            return _alerted(base, str(cause))
    return NotReached(f"{base} cannot be reached: {_away(base, error)}", AWAY)


async def refusal(
    base: str, host: str, port: int, name: str, context: ssl.SSLContext
) -> NotReached | None:
    """Why the service ends connections of this client; None if it does not, or is not there."""
    try:
        async with asyncio.timeout(ALERT_SECONDS):
            reader, writer = await asyncio.open_connection(
                host, port, ssl=context, server_hostname=name
            )
            try:
                await reader.read(1)
            finally:
                writer.transport.abort()
    except ssl.SSLError as error:
        return not_reached(base, name, error)
    except (OSError, TimeoutError):
        pass
    return None


def _judged(base: str, name: str, error: ssl.SSLCertVerificationError) -> tuple[str, str]:
    code = error.verify_code
    if code == EXPIRED:
        return f"the certificate of {base} has expired: ask its operator to renew it", "expired"
    if code == NO_CERTIFICATE_VALID:
        text = "is not valid yet: look at this machine's clock"
        return f"the certificate of {base} {text}", "not yet valid"
    if code == REVOKED_CODE:
        return f"the certificate of {base} is refused here: {error.verify_message}", "revoked"
    if code in OTHER_NAMES:
        return (
            f"the certificate of {base} is for another name than {name}: ask by a name that is in "
            "it, or say which by --server-name",
            "other name",
        )
    return (
        f"the certificate of {base} is of another authority than this client trusts "
        f"({error.verify_message}): use the --keys that its operator gave you",
        "other authority",
    )


def _alerted(base: str, text: str) -> NotReached:
    for alert, meaning in ALERTS.items():
        if f"ALERT_{alert}" in text:
            return NotReached(f"{base} refuses this client: {meaning}", "refused")
    return NotReached(
        f"{base} does not speak TLS 1.3 as a service does ({text}): look at the port", "no TLS"
    )


def _away(base: str, error: BaseException) -> str:
    has_port = urlsplit(base).port is not None
    port = "" if has_port else ", which names no port (`privet serve` takes 7480)"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        why = "there is no host of that name"
    elif isinstance(error, TimeoutError):
        why = "nothing answers there"
    else:
        why = "nobody listens there"
        if not any(isinstance(cause, ConnectionRefusedError) for cause in _causes(error)):
            why = str(error) or type(error).__name__
    return f"{why}. Look at the address{port}, and whether `privet serve` runs there"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Those within an error, and it; aiohttp's own carry no codes of OpenSSL."""
    for name in ("certificate_error", "os_error"):
        with contextlib.suppress(AttributeError):
            inner = getattr(error, name)
            if isinstance(inner, BaseException):
                yield inner
    yield error


TRIALS = 3
ANSWERS = 8
TIMEOUT_SECONDS = 5.0
BUSY_SECONDS = 0.03
"""What the quickest of the answers may take besides the network, on a machine under load."""


async def network_to(
    host: str, port: int, ask: Callable[[], Awaitable[object]]
) -> _native.Link | None:
    """What is taken for the network to a host, by the quickest of some connections and of some
    answers to `ask`; None if there was no connection.

    A TCP connection takes one round trip to whoever accepts it, which behind a proxy or a load
    balancer is not the service. So calls are answered by the service itself, too. An answer takes
    longer than the network does, by what the service is busy with: it counts where it took so much
    longer than the connection that somebody must be in between.
    """
    connect_seconds = await asyncio.to_thread(_round_trip, host, port)
    if connect_seconds is None:
        return None
    await ask()  # the first makes a connection
    answer_seconds = float("inf")
    for _ in range(ANSWERS):
        start = time.monotonic()
        await ask()
        answer_seconds = min(answer_seconds, time.monotonic() - start)
        if answer_seconds <= connect_seconds + BUSY_SECONDS:
            return network_of(connect_seconds)
    return network_of(answer_seconds)


def _round_trip(host: str, port: int) -> float | None:
    """Seconds that a TCP connection takes to be made: one round trip."""
    seconds = []
    with contextlib.suppress(OSError):
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        for _ in range(TRIALS):
            with socket.socket(family, kind, protocol) as connection:
                connection.settimeout(TIMEOUT_SECONDS)
                start = time.monotonic()
                connection.connect(address)
                seconds.append(time.monotonic() - start)
    return min(seconds, default=None)
