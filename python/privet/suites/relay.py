"""A slow link in front of a port: what other processes send through it is delayed for real.

For programs that cannot shape a link themselves, such as that of suite `ckks`. Each direction of a
connection carries bytes at the link's bandwidth, and each byte arrives half a round trip after it
left, as in the shaped links of other suites.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Queue

from privet._native import Link

CHUNK_BYTES = 1 << 16
"""Bytes that travel as one."""

HOST = "127.0.0.1"

Carried = Queue[tuple[float, bytes]]
"""Chunks on their way with the times at which they arrive; an empty one ends the direction."""


@contextmanager
def relayed(port: int, link: Link) -> Iterator[int]:
    """A port of this machine that leads to `port` of this machine over `link`, until the end."""
    with socket.create_server((HOST, 0)) as listener:
        threading.Thread(target=_accept, args=(listener, port, link), daemon=True).start()
        try:
            yield listener.getsockname()[1]
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts


def _accept(listener: socket.socket, port: int, link: Link) -> None:
    while True:
        try:
            near, _ = listener.accept()
        except OSError:  # the relay is closed
            return
        try:
            far = socket.create_connection((HOST, port))
        except OSError:  # nobody listens any more
            near.close()
            continue
        for source, target in ((near, far), (far, near)):
            target.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            carried: Carried = Queue()
            for work, end in ((_depart, source), (_arrive, target)):
                threading.Thread(target=work, args=(end, carried, link), daemon=True).start()


def _depart(source: socket.socket, carried: Carried, link: Link) -> None:
    """Takes what a source sends as fast as the link carries it away."""
    free = 0.0
    while True:
        try:
            chunk = source.recv(CHUNK_BYTES)
        except OSError:
            chunk = b""
        now = time.monotonic()
        free = max(free, now) + 8 * len(chunk) / link.bits_per_second
        carried.put((free + link.rtt / 2, chunk))
        if not chunk:
            return
        time.sleep(max(0.0, free - now))


def _arrive(target: socket.socket, carried: Carried, _link: Link) -> None:
    while True:
        due, chunk = carried.get()
        time.sleep(max(0.0, due - time.monotonic()))
        try:
            if not chunk:
                target.shutdown(socket.SHUT_WR)
                return
            target.sendall(chunk)
        except OSError:  # whoever listened is gone
            return
