"""The pool's choices: what it makes first, when it tries again, what it notices."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.scene import INPUT, SOON, small_model

from privet.compiler.compile import Compiled
from privet.errors import (
    LinkError,
    MaterialError,
    Misuse,
    NotAccepted,
    PeerBusy,
    PeerMisbehaved,
    StoreFull,
)
from privet.runtime import (
    Client,
    Credentials,
    MaterialPool,
    MaterialStore,
    PoolEvent,
    Server,
    supply,
)
from privet.runtime import (
    pool as pool_module,
)
from privet.suites import Gmw

Serve = Callable[..., Server]


@pytest.fixture(scope="module")
def programs() -> dict[str, Compiled]:
    return {name: small_model(seed, name) for seed, name in enumerate(("first", "second"))}


@pytest.fixture
def serve(key_folder: Path, tmp_path: Path, programs: dict[str, Compiled]) -> Iterator[Serve]:
    """Starts servers of both programs, or of those given."""
    with ExitStack() as stack:

        def start(offered: dict[str, Compiled] | None = None, **options: Any) -> Server:
            credentials = Credentials.from_directory(key_folder, "server")
            options = {"timeout": SOON, **options}
            server = Server(credentials, state=tmp_path / "server", **options)
            stack.enter_context(server)
            for compiled in (offered or programs).values():
                server.add(compiled.program, compiled.weights)
            return server.start()

        yield start


class Told:
    """What a pool told, and a way to wait for it."""

    def __init__(self) -> None:
        self.events: queue.Queue[PoolEvent] = queue.Queue()
        self.all: list[PoolEvent] = []

    def until(self, found: Callable[[PoolEvent], bool]) -> PoolEvent:
        while True:
            event = self.events.get(timeout=SOON)
            self.all.append(event)
            if found(event):
                return event


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def pool(key_folder: Path, tmp_path: Path, told: Told) -> Iterator[Callable[..., MaterialPool]]:
    """Makes pools of a server; they are closed at the end."""
    with ExitStack() as stack:

        def make(server: Server, levels: dict[str, int], **options: Any) -> MaterialPool:
            options = {"max_disk": "10MB", "suite": Gmw(rounds="log"), "timeout": SOON, **options}
            credentials = Credentials.from_directory(key_folder, "client")
            host, port = server.address
            state = tmp_path / "client"
            made = MaterialPool(
                host,
                port,
                credentials,
                state=state,
                levels=levels,
                on_event=told.events.put,
                **options,
            )
            return stack.enter_context(made)

        yield make


@pytest.fixture
def client(key_folder: Path, tmp_path: Path) -> Callable[..., Client]:
    """Opens clients on the pool's state directory."""

    def open_client(server: Server, model: str = "first", **options: Any) -> Client:
        credentials = Credentials.from_directory(key_folder, "client")
        options = {"timeout": SOON, "suite": Gmw(rounds="log"), **options}
        host, port = server.address
        return Client(host, port, credentials, state=tmp_path / "client", model=model, **options)

    return open_client


def test_the_smallest_part_of_a_level_comes_first(
    serve: Serve, pool: Callable[..., MaterialPool], told: Told
) -> None:
    levels = pool(serve(), {"first": 6, "second": 3}).fill()
    assert [(level.model, level.ready, level.wanted) for level in levels] == [
        ("first", 6, 6),
        ("second", 3, 3),
    ]
    before: dict[str, float] = {"first": 0, "second": 0}
    made = [event for event in told.events.queue if event.kind == "made"]
    assert len(made) == 9
    for event in made:
        assert event.model is not None
        assert before[event.model] == min(before.values())
        before = {level.model: (level.ready or 0) / level.wanted for level in event.levels}


def test_models_share_a_disk_that_is_too_small(
    serve: Serve, pool: Callable[..., MaterialPool], client: Callable[..., Client], told: Told
) -> None:
    server = serve()
    with client(server) as session:
        most = 3 * session.entry_bytes
    levels = pool(server, {"first": 100, "second": 100}, max_disk=most).fill()
    assert all(level.ready for level in levels)
    assert sum(level.bytes for level in levels) <= most
    full = [event.model for event in told.events.queue if event.kind == "full"]
    assert sorted(full) == ["first", "second"]


def test_a_pool_of_threads_and_clients_uses_every_entry_once(
    serve: Serve, pool: Callable[..., MaterialPool], client: Callable[..., Client]
) -> None:
    server, lock = serve(), threading.Lock()
    used: list[str] = []
    pool(server, {"first": 4}).start()

    def ask() -> None:
        with client(server, when_dry="wait") as session:
            for _ in range(4):
                material = session.infer([INPUT]).material
                with lock:
                    used.append(material)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert len(used) == len(set(used)) == 12


def test_a_program_that_changes_is_noticed(
    serve: Serve,
    pool: Callable[..., MaterialPool],
    told: Told,
    programs: dict[str, Compiled],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool_module, "STALE_SECONDS", 0.1)
    server = serve()
    pool(server, {"first": 1}).start()
    told.until(lambda event: event.kind == "made")
    server.close()
    serve({"first": small_model(7, "first")}, port=server.address[1])
    told.until(lambda event: event.levels[0].ready == 0)
    told.until(lambda event: event.kind == "made")


def test_an_unknown_model_holds_up_no_other(
    serve: Serve, pool: Callable[..., MaterialPool], told: Told
) -> None:
    pool(serve(), {"gone": 1, "first": 1}).start()
    waiting = told.until(lambda event: event.kind == "waiting")
    assert waiting.model == "gone"
    assert isinstance(waiting.error, PeerMisbehaved)
    told.until(lambda event: event.kind == "made" and event.model == "first")
    delays = [waiting.seconds]
    for _ in range(2):
        delays.append(told.until(lambda event: event.kind == "waiting").seconds)
    assert delays == [0.5, 1.0, 2.0]


def test_filling_once_fails_where_there_is_nobody(
    serve: Serve, pool: Callable[..., MaterialPool]
) -> None:
    server = serve()
    server.close()
    with pytest.raises(LinkError):
        pool(server, {"first": 1}).fill()


def test_a_wrong_option_ends_a_pool(serve: Serve, pool: Callable[..., MaterialPool]) -> None:
    started = pool(serve(), {"first": 1}, suite="magic").start()
    with pytest.raises(Misuse, match="magic"):
        started.wait(SOON)
    with pytest.raises(Misuse, match="already"):
        started.start()


def test_what_the_policy_does_not_accept_ends_a_pool_at_once(
    serve: Serve, pool: Callable[..., MaterialPool], told: Told
) -> None:
    started = pool(serve(), {"first": 1, "second": 1}, suite=Gmw(truncation="one-bit")).start()
    with pytest.raises(NotAccepted, match="does not accept truncation one-bit"):
        started.wait(SOON)
    assert not any(event.kind == "waiting" for event in told.events.queue)


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
    monkeypatch.setattr(supply, "FRESH_SECONDS", 1.0)
    server = serve(timeout=1)
    with client(server, when_dry="wait") as waiting:
        results: list[str] = []
        thread = threading.Thread(
            target=lambda: results.append(waiting.infer([INPUT]).material), daemon=True
        )
        thread.start()
        time.sleep(2)
        with client(server) as other:
            (material,) = other.prepare()
        thread.join(SOON)
    assert results == [material]


def test_an_entry_by_name_is_not_replaced(serve: Serve, client: Callable[..., Client]) -> None:
    server = serve()
    with client(server) as session:
        spent, _ = session.prepare(2)
        session.infer([INPUT], material=spent)
        with pytest.raises(MaterialError):
            session.infer([INPUT], material=spent)


def test_the_stock_is_seen_without_a_server(
    serve: Serve, pool: Callable[..., MaterialPool], tmp_path: Path
) -> None:
    pool(serve(), {"first": 2, "second": 1}).fill()
    store = MaterialStore.at(tmp_path / "client")
    held = store.holdings()
    assert [(it.model, it.ready) for it in held] == [("first", 2), ("second", 1)]
    assert sum(it.bytes for it in held) == store.bytes()
    assert all(0 <= it.oldest_seconds < SOON for it in held)
    with pytest.raises(Misuse, match="state directory"):
        MaterialStore.at(tmp_path / "nobody")
