"""A relay delays what goes through it, and loses nothing."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from privet.runtime import Link
from privet.suites.relay import HOST, relayed


def echo(listener: socket.socket) -> None:
    """Sends back what one peer sends, until it ends."""
    peer, _ = listener.accept()
    with peer:
        while data := peer.recv(1 << 16):
            peer.sendall(data)


def receive(link: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count and (part := link.recv(count - len(data))):
        data += part
    return data


@pytest.fixture
def listener() -> socket.socket:
    server = socket.create_server((HOST, 0))
    threading.Thread(target=echo, args=(server,), daemon=True).start()
    return server


@contextmanager
def linked(listener: socket.socket, link: str) -> Iterator[socket.socket]:
    """A connection to the listener over a link."""
    with (
        closing(listener),
        relayed(listener.getsockname()[1], Link(link)) as port,
        socket.create_connection((HOST, port)) as peer,
    ):
        yield peer


def test_a_round_trip_takes_its_time(listener: socket.socket) -> None:
    with linked(listener, "60ms,1Gbit") as peer:
        start = time.monotonic()
        peer.sendall(b"ping")
        assert receive(peer, 4) == b"ping"
        assert 0.06 <= time.monotonic() - start < 5
        peer.shutdown(socket.SHUT_WR)
        assert peer.recv(1) == b""  # the end goes round, too


def test_bytes_come_whole_and_no_faster_than_the_link(listener: socket.socket) -> None:
    data = bytes(range(256)) * 2000  # 4 Mbit
    with linked(listener, "10ms,20Mbit") as peer:
        start = time.monotonic()
        threading.Thread(target=peer.sendall, args=(data,)).start()
        assert receive(peer, len(data)) == data
        assert 0.2 <= time.monotonic() - start < 10
