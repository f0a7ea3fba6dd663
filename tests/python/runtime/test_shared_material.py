"""What clients of a server do with material in a state directory that they share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.scene import INPUT, SOON, small_model

from privet.compiler.compile import Compiled
from privet.errors import MaterialError, Misuse, PeerBusy, StoreFull
from privet.runtime import Client, Credentials, MaterialStore, Server
from privet.runtime import client as client_module
from privet.suites import Gmw

Serve = Callable[..., Server]


@pytest.fixture(scope="module")
def programs() -> dict[str, Compiled]:
    return {name: small_model(seed, name) for seed, name in enumerate(("first", "second"))}


@pytest.fixture
def serve(key_folder: Path, tmp_path: Path, programs: dict[str, Compiled]) -> Iterator[Serve]:
    """Starts servers of both programs, or of those given."""
    with ExitStack() as stack:

        def start(models: dict[str, Compiled] | None = None, **options: Any) -> Server:
            credentials = Credentials.from_directory(key_folder, "server")
            options = {"timeout": SOON, **options}
            server = Server(credentials, state=tmp_path / "server", **options)
            stack.enter_context(server)
            for compiled in (models or programs).values():
                server.add(compiled.program, compiled.weights)
            return server.start()

        yield start


@pytest.fixture
def client(key_folder: Path, tmp_path: Path) -> Callable[..., Client]:
    """Opens clients that share a state directory."""

    def open_client(server: Server, model: str = "first", **options: Any) -> Client:
        credentials = Credentials.from_directory(key_folder, "client")
        options = {"timeout": SOON, "suite": Gmw(rounds="log"), **options}
        host, port = server.address
        return Client(host, port, credentials, state=tmp_path / "client", model=model, **options)

    return open_client


def test_both_sides_limit_their_disk(serve: Serve, client: Callable[..., Client]) -> None:
    server = serve()
    with client(server) as session:
        # A server's entries are a few bytes larger.
        most = session.entry_bytes + 100
    with client(server, max_disk=most) as session:
        session.prepare()
        with pytest.raises(StoreFull, match="raise the limit"):
            session.prepare()
        session.infer([INPUT])
        session.prepare()
    server.close()
    # The entry above is still there.
    server = serve(max_material=most)
    with pytest.raises(PeerBusy, match="store is full"), client(server) as session:
        session.prepare()


def test_a_client_that_waits_outlasts_the_servers_patience(
    serve: Serve, client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "FRESH_SECONDS", 1.0)
    server = serve(timeout=1)
    with client(server, when_dry="wait") as patient:
        results: list[str] = []
        thread = threading.Thread(
            target=lambda: results.append(patient.infer([INPUT]).material), daemon=True
        )
        thread.start()
        time.sleep(2)
        with client(server) as other:
            (material,) = other.prepare()
        thread.join(SOON)
    assert results == [material]


def test_threads_that_share_material_use_every_entry_once(
    serve: Serve, client: Callable[..., Client]
) -> None:
    server, lock = serve(), threading.Lock()
    materials: list[str] = []

    def ask() -> None:
        with client(server, when_dry="wait") as session:
            for _ in range(4):
                material = session.infer([INPUT]).material
                with lock:
                    materials.append(material)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    with client(server) as session:
        entries = session.prepare(12)
    for thread in threads:
        thread.join(SOON)
    assert sorted(materials) == sorted(entries)


def test_an_entry_by_name_is_not_replaced(serve: Serve, client: Callable[..., Client]) -> None:
    server = serve()
    with client(server) as session:
        entry, _ = session.prepare(2)
        session.infer([INPUT], material=entry)
        with pytest.raises(MaterialError):
            session.infer([INPUT], material=entry)


def test_the_stock_is_seen_without_a_server(
    serve: Serve, client: Callable[..., Client], tmp_path: Path
) -> None:
    server = serve()
    for model, count in (("first", 2), ("second", 1)):
        with client(server, model) as session:
            session.prepare(count)
    store = MaterialStore.at(tmp_path / "client")
    holdings = store.holdings()
    assert [(holding.model, holding.ready) for holding in holdings] == [("first", 2), ("second", 1)]
    assert sum(holding.bytes for holding in holdings) == store.bytes()
    assert all(0 <= holding.oldest_seconds < SOON for holding in holdings)
    with pytest.raises(Misuse, match="state directory"):
        MaterialStore.at(tmp_path / "nobody")
