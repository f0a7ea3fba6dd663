"""Clients that are none, or not ours, get a refusal and keep nobody else waiting."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from tests.attacks.scene import INPUT, SOON, Scene

from privet import _native, keys
from privet.errors import LinkError, PeerError, PeerMisbehaved
from privet.runtime import Credentials, acceptor

PATIENCE = 1.0
"""The server's patience in these tests, in seconds."""


@pytest.fixture(autouse=True)
def short_handshakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor, "HANDSHAKE_SECONDS", PATIENCE)


@contextmanager
def dialled(port: int) -> Iterator[socket.socket]:
    """A plain TCP connection to a server."""
    with closing(socket.create_connection(("localhost", port), timeout=SOON)) as connection:
        yield connection


def drained(connection: socket.socket) -> bytes:
    """What the server still says before it hangs up."""
    reply = b""
    try:
        while part := connection.recv(4096):
            reply += part
    except ConnectionResetError:
        pass
    return reply


@pytest.mark.parametrize(
    "garbage",
    [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x00" * 64, b"\x16\x03\x01\xff\xff" + b"A" * 300],
    ids=["http", "zeros", "broken TLS"],
)
def test_a_connection_that_sends_garbage_is_closed(scene: Scene, garbage: bytes) -> None:
    with scene.server() as server, dialled(server.address[1]) as stranger:
        stranger.sendall(garbage)
        assert b"small" not in drained(stranger)
        assert isinstance(scene.next_failure().error, PeerError)
        scene.assert_serves(server.address[1])


def test_a_silent_client_delays_no_other(scene: Scene) -> None:
    with scene.server() as server, dialled(server.address[1]) as stranger:
        start = time.monotonic()
        scene.assert_serves(server.address[1])
        failure = scene.next_failure()
        assert isinstance(failure.error, LinkError)
        assert failure.client.startswith("127.0.0.1:")
        assert len(drained(stranger)) < 32, "an alert at most"
        assert time.monotonic() - start < SOON


def test_a_client_that_goes_at_once_is_forgotten(scene: Scene) -> None:
    with scene.server() as server:
        for _ in range(2 * acceptor.MAX_SESSIONS):
            with dialled(server.address[1]):
                pass
        scene.assert_serves(server.address[1])


def test_as_many_silent_clients_as_there_are_places_leave_in_time(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acceptor, "MAX_SESSIONS", 3)
    with (
        scene.server() as server,
        dialled(server.address[1]),
        dialled(server.address[1]),
        dialled(server.address[1]),
    ):
        scene.assert_serves(server.address[1])


def test_a_client_that_says_nothing_after_the_handshake_is_disconnected(scene: Scene) -> None:
    native = Credentials.from_directory(scene.keys, "client").native
    with scene.server(timeout=PATIENCE) as server:
        port = server.address[1]
        silent = _native.Connection.connect("localhost", port, native, "localhost", SOON)
        failure = scene.next_failure()
        assert isinstance(failure.error, LinkError)
        assert len(failure.client) == 64, "the fingerprint of its certificate"
        assert silent.peer is not None


def test_a_client_of_another_authority_is_refused(scene: Scene, tmp_path: Path) -> None:
    keys.make(tmp_path / "others")
    (tmp_path / "others" / "ca.pem").write_bytes((scene.keys / "ca.pem").read_bytes())
    with scene.server() as server:
        with pytest.raises(PeerMisbehaved, match="refused"):
            scene.client(server.address[1], keys=tmp_path / "others")
        assert isinstance(scene.next_failure().error, PeerMisbehaved)
        scene.assert_serves(server.address[1])


def test_a_server_of_another_authority_is_refused(scene: Scene, tmp_path: Path) -> None:
    keys.make(tmp_path / "others")
    with scene.server() as server:
        with pytest.raises(PeerMisbehaved, match="certificate"):
            scene.client(server.address[1], keys=tmp_path / "others")
        scene.assert_serves(server.address[1])


def test_a_client_that_asks_and_does_not_read_fills_no_memory(scene: Scene) -> None:
    asked = _frame(b'{"request": "describe"}') * (1 << 14)
    with scene.server() as server:
        # The link ends once answers have filled the sockets, and requests what may wait.
        with closing(_tls(scene.keys, server.address[1])) as flood, suppress(OSError):
            before = _native.resident_memory()
            for _ in range(1 << 10):
                flood.sendall(asked)
                assert _native.resident_memory() - before < 64 << 20
        assert isinstance(scene.next_failure().error, PeerMisbehaved)
        scene.assert_serves(server.address[1])


def _frame(payload: bytes) -> bytes:
    return b"\x01" + len(payload).to_bytes(4, "little") + payload


def _tls(folder: Path, port: int) -> ssl.SSLSocket:
    """A session of a client that has been greeted, with little room for answers."""
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    context.load_cert_chain(folder / "client.pem", folder / "client.key")
    context.set_alpn_protocols(["privet/1"])
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(SOON)
    connection.connect(("localhost", port))
    session = context.wrap_socket(connection, server_hostname="localhost")
    greeting = _frame(b"PRIVET" + _native.PROTOCOL_VERSION.to_bytes(2, "little"))
    session.sendall(greeting)
    # One byte says before it that the server has taken the certificate.
    assert session.recv(1) == b"\x01"
    assert session.recv(len(greeting)) == greeting
    return session


def test_an_unknown_model_is_refused_with_what_there_is(scene: Scene) -> None:
    with scene.server() as server:
        with pytest.raises(PeerMisbehaved, match=r"no model .*resnet.*served here: small"):
            scene.client(server.address[1], model="resnet")
        failure = scene.next_failure()
        assert isinstance(failure.error, PeerMisbehaved)
        scene.assert_serves(server.address[1])


def test_a_client_that_expects_another_program_leaves(scene: Scene) -> None:
    with scene.server() as server:
        with pytest.raises(PeerMisbehaved, match="ask its operator"):
            scene.client(server.address[1], program_hash="0" * 64)
        # The client read nothing of it, and the server hears that it gave up.
        assert isinstance(scene.next_failure().error, PeerMisbehaved)
        pinned = scene.compiled.program.program_hash
        with scene.client(server.address[1], program_hash=pinned) as client:
            scene.check(client.infer([INPUT]))
        assert {scene.finished.get(timeout=SOON).kind for _ in range(3)} == {
            "described",
            "prepared",
            "inferred",
        }
        assert scene.finished.empty()


def test_many_clients_at_once_get_their_own_answers(scene: Scene) -> None:
    problems: list[BaseException] = []

    def ask(number: int) -> None:
        try:
            sample = INPUT * (number + 1) / 4
            with scene.client(server.address[1], state=f"client {number}") as client:
                for _ in range(3):
                    scene.check(client.infer([sample]), sample)
        except BaseException as error:
            problems.append(error)

    with scene.server() as server:
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SOON)
    assert not problems
    kinds = [scene.finished.get_nowait().kind for _ in range(scene.finished.qsize())]
    assert sorted(kinds) == ["described"] * 4 + ["inferred"] * 12 + ["prepared"] * 12
