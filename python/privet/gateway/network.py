"""How far a service is, for the choice of a depth of comparisons."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time

from privet import _native
from privet.runtime.client import network_of

TRIALS = 3
TIMEOUT_SECONDS = 5.0


async def network_to(host: str, port: int) -> _native.Link | None:
    """What is taken for the network to a host, by the quickest of some connections; None if there
    was none."""
    return network_of(await asyncio.to_thread(_round_trip, host, port))


def _round_trip(host: str, port: int) -> float | None:
    """Seconds that a TCP connection takes to be made: one round trip."""
    measured = []
    with contextlib.suppress(OSError):
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        for _ in range(TRIALS):
            with socket.socket(family, kind, protocol) as connection:
                connection.settimeout(TIMEOUT_SECONDS)
                started = time.monotonic()
                connection.connect(address)
                measured.append(time.monotonic() - started)
    return min(measured, default=None)
