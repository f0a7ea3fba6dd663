"""A client's sessions with workers between two jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.attacks.scene import INPUT, small_model
from tests.python.gateway.test_attempt import GO, offer_of

from privet.compiler.compile import Compiled
from privet.errors import LinkError, MaterialError, NotAccepted
from privet.gateway import attempt as module
from privet.gateway.attempt import Attempt, WorkerClient, read_lease
from privet.gateway.client import encode_portions
from privet.gateway.idle import IdleSessions
from privet.gateway.model import Terms
from privet.runtime import Credentials, Server
from privet.runtime.session import Session


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return small_model()


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[Session]:
    """Sessions that were opened."""
    opened: list[Session] = []

    class Counted(Session):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            opened.append(self)

    monkeypatch.setattr(module, "Session", Counted)
    return opened


@pytest.fixture
def server(key_folder: Path, tmp_path: Path, compiled: Compiled) -> Iterator[Server]:
    """In the place of a worker."""
    credentials = Credentials.from_directory(key_folder, "server")
    with Server(credentials, state=tmp_path / "server") as server:
        server.add(compiled.program, compiled.weights)
        yield server.start()


@pytest.fixture
def attempt(
    key_folder: Path, tmp_path: Path, compiled: Compiled, server: Server
) -> Callable[..., Attempt]:
    """Attempts of one client."""
    credentials = Credentials.from_directory(key_folder, "client")
    client = WorkerClient(credentials, tmp_path / "client", "localhost")

    def make(**fields: Any) -> Attempt:
        offer = offer_of(compiled)
        usual = {"port": server.address[1], "program": compiled.program.program_hash}
        return Attempt(read_lease({**GO, **usual, **fields}), client, offer, offer.resolve(Terms()))

    return make


def infer(attempt: Callable[..., Attempt], compiled: Compiled, material: str) -> str:
    """The material that an inference took."""
    (portion,) = encode_portions(compiled.program, [INPUT])
    return attempt(phase="infer", material=material).infer(portion.payload)[0][0]


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers end sessions right after the client has looked whether they have."""
    resume = Session.resume
    monkeypatch.setattr(Session, "resume", lambda *arguments: resume(*arguments) or True)


def break_connections(server: Server) -> None:
    """As a worker does with sessions that are idle."""
    for _, stopper in list(server._acceptor._open.values()):
        assert stopper is not None
        stopper.stop()


def test_jobs_one_after_the_other_take_one_connection(
    attempt: Callable[..., Attempt], compiled: Compiled, sessions: list[Session]
) -> None:
    for _ in range(3):
        material, _ = attempt().prepare()
        assert infer(attempt, compiled, material) == material
    assert len(sessions) == 1


@pytest.mark.parametrize("is_late", [False, True])
def test_a_connection_that_the_worker_has_ended_costs_no_material(
    attempt: Callable[..., Attempt],
    compiled: Compiled,
    server: Server,
    sessions: list[Session],
    request: pytest.FixtureRequest,
    is_late: bool,
) -> None:
    if is_late:
        request.getfixturevalue("late")
    material, _ = attempt().prepare()
    break_connections(server)
    assert infer(attempt, compiled, material) == material
    assert len(sessions) == 2
    # Whether it asked where nobody was.
    assert sessions[0].was_left == is_late
    break_connections(server)
    assert attempt().prepare()[0] != material
    with pytest.raises(MaterialError, match="used"):
        infer(attempt, compiled, material)


def test_a_connection_that_breaks_later_fails_the_attempt(
    attempt: Callable[..., Attempt], compiled: Compiled, sessions: list[Session]
) -> None:
    material, _ = attempt().prepare()
    (portion,) = encode_portions(compiled.program, [INPUT])
    second = attempt(phase="infer", material=material)

    def stop(phase: str, done: int, *_: object) -> None:
        if (phase, done) == ("online", 1):
            second.stop()

    object.__setattr__(second._worker_client, "progress", stop)
    with pytest.raises(LinkError):
        second.infer(portion.payload)
    object.__setattr__(second._worker_client, "progress", None)
    with pytest.raises(MaterialError, match="used"):
        infer(attempt, compiled, material)
    assert len(sessions) == 2


def test_an_attempt_that_was_stopped_leaves_no_session(
    attempt: Callable[..., Attempt], sessions: list[Session]
) -> None:
    first = attempt()
    first.prepare()
    # It is done: whose the session is now, it does not break.
    first.stop()
    attempt().prepare()
    assert len(sessions) == 1


def test_another_dealer_store_or_worker_has_sessions_of_its_own() -> None:
    idle = IdleSessions()
    session = cast(Session, SimpleNamespace(leave=lambda: None))
    idle.put("here", session)
    assert idle.take("there") is None
    assert idle.take("here") is session
    assert idle.take("here") is None


def test_sessions_that_are_idle_for_long_are_left() -> None:
    idle, left = IdleSessions(), []
    for name in ("a", "b"):
        session = SimpleNamespace(leave=lambda name=name: left.append(name))
        idle.put(name, cast(Session, session))
        time.sleep(0.2)
    assert idle.tidy(0.3)
    assert left == ["a"]
    assert not idle.tidy(0.0)
    assert left == ["a", "b"]


@pytest.mark.usefixtures("late")
def test_a_half_whose_yes_was_lost_does_not_stay(
    attempt: Callable[..., Attempt],
    compiled: Compiled,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker refuses whoever comes again after a yes: its half is spent."""
    first = attempt()
    material, _ = first.prepare()
    store = first._worker_client.store
    break_connections(server)
    # It comes in, and is refused.
    answers = iter([None, "there is no grant"])
    monkeypatch.setattr(server._revoked, "refuses", lambda _: next(answers))
    with pytest.raises(NotAccepted):
        infer(attempt, compiled, material)
    assert store.entries() == []
