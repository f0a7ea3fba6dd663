"""How far a service is, for the choice of a depth of comparisons.

A TCP connection takes one round trip to whoever accepts it, which behind a proxy or a load balancer
is not the service. So calls are answered by the service itself, too. An answer takes
longer than the network does, by what the service is busy with: it counts where it took so much
longer than the connection that somebody must be in between.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Awaitable, Callable

from privet import _native
from privet.runtime.client import network_of

TRIALS = 3
ANSWERS = 8
TIMEOUT_SECONDS = 5.0
BUSY_SECONDS = 0.03
"""What the quickest of the answers may take besides the network, on a machine under load."""


async def network_to(
    host: str, port: int, ask: Callable[[], Awaitable[object]]
) -> _native.Link | None:
    """What is taken for the network to a host, by the quickest of some connections and of some
    answers to `ask`; None if there was no connection."""
    connected = await asyncio.to_thread(_round_trip, host, port)
    if connected is None:
        return None
    await ask()  # the first makes a connection
    answered = float("inf")
    for _ in range(ANSWERS):
        started = time.monotonic()
        await ask()
        answered = min(answered, time.monotonic() - started)
        if answered <= connected + BUSY_SECONDS:
            return network_of(connected)
    return network_of(answered)


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
