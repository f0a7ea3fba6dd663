"""Times that the native part is told, which may come from a peer."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.python.compiler.graph.single import single

import privet
from privet import _native
from privet.errors import LinkError, Misuse
from privet.runtime import Client, Credentials, Server
from privet.runtime.session import Line


@pytest.fixture
def connect(key_folder: Path) -> Callable[[float], Line]:
    """Connects to a port at which nobody listens, within so many seconds."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    credentials = Credentials.from_directory(key_folder, "client")

    def to(seconds: float) -> Line:
        name = "localhost"
        return Line("127.0.0.1", port, credentials, link=None, server_name=name, timeout=seconds)

    return to


@pytest.mark.parametrize("seconds", [-1.0, math.nan, -math.inf])
def test_what_is_no_time_is_refused(connect: Callable[[float], Line], seconds: float) -> None:
    with pytest.raises(Misuse, match="are no time to wait"):
        connect(seconds)
    with pytest.raises(Misuse, match="are no time to wait"):
        _native.Dealer(1 << 20, seconds)


def test_a_peer_that_waited_too_long_says_so(key_folder: Path, tmp_path: Path) -> None:
    """It "had an internal error", and this side took it for a peer that misbehaves."""
    server_credentials, client_credentials = (
        Credentials.from_directory(key_folder, role) for role in ("server", "client")
    )
    compiled = privet.compile(single("Relu", [(1, 3)]))
    with Server(server_credentials, state=tmp_path / "server", timeout=0.2) as server:
        server.add(compiled.program, compiled.weights)
        server.start()

        def come_late() -> None:
            with Client(*server.address, client_credentials, state=tmp_path / "client") as client:
                time.sleep(1)
                client.prepare()

        with pytest.raises(LinkError, match="longer than its timeout; a longer one can be set"):
            come_late()


@pytest.mark.parametrize("seconds", [1e18, math.inf])
def test_a_time_without_end_is_long(connect: Callable[[float], Line], seconds: float) -> None:
    with pytest.raises(LinkError):
        connect(seconds)
