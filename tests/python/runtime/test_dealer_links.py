"""Links to a dealer that stay for another deal: whom they serve, and whom they keep out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.scene import small_model

from privet import keys
from privet.compiler.compile import Compiled
from privet.errors import PeerError, PrivetError
from privet.runtime import Client, Credentials, Dealer, Server, acceptor
from privet.suites import Gmw, make_policy

SUITE = Gmw(rounds="linear", correlations="dealer")


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return small_model()


@pytest.fixture
def failed() -> list[PrivetError]:
    """What went wrong at the dealer."""
    return []


@pytest.fixture
def revoked(tmp_path: Path) -> Path:
    path = tmp_path / "revoked"
    path.touch()
    return path


@pytest.fixture
def dealer(key_folder: Path, revoked: Path, failed: list[PrivetError]) -> Iterator[Dealer]:
    """With few places, as where a process may open few files."""
    credentials = Credentials.from_directory(key_folder, "dealer")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(acceptor, "MAX_SESSIONS", 12)
        dealer = Dealer(
            credentials,
            revoked=revoked,
            on_dealt=lambda deal: failed.append(deal.error) if deal.error else None,
        )
    with dealer:
        yield dealer.start()


@pytest.fixture
def client(
    key_folder: Path, tmp_path: Path, compiled: Compiled, dealer: Dealer
) -> Iterator[Callable[[str], Client]]:
    """Makes sessions with a server, each with a store of its own."""
    options: dict[str, Any] = {"dealer": "{}:{}".format(*dealer.address)}
    policy = make_policy(weaker=SUITE.weaknesses)
    server_credentials = Credentials.from_directory(key_folder, "server")
    credentials = Credentials.from_directory(key_folder, "client")
    with Server(server_credentials, state=tmp_path / "server", policy=policy, **options) as server:
        server.add(compiled.program, compiled.weights)
        address = server.start().address
        yield lambda name: Client(
            *address, credentials, state=tmp_path / name, suite=SUITE, timeout=20, **options
        )


def test_deals_of_a_session_take_one_link_of_each_party(
    client: Callable[[str], Client], dealer: Dealer
) -> None:
    handshakes: list[str] = []
    greet = dealer._acceptor._greet

    def counted(pending: Any) -> None:
        handshakes.append(pending.address)
        greet(pending)

    dealer._acceptor._greet = counted  # type: ignore[method-assign]
    with client("client") as session:
        for _ in range(3):
            session.prepare()
    assert len(handshakes) == 2


@pytest.mark.parametrize("is_revoked", [False, True])
def test_a_party_that_was_revoked_has_no_other_deal(
    client: Callable[[str], Client], key_folder: Path, revoked: Path, is_revoked: bool
) -> None:
    session = client("client")
    session.prepare()
    if is_revoked:
        revoked.write_text(keys.fingerprint(key_folder / "client.pem") + "\n")
        with pytest.raises(PeerError):
            session.prepare()
    else:
        session.prepare()
        session.close()


def test_idle_links_give_way_to_deals_of_their_own_party(
    client: Callable[[str], Client], failed: list[PrivetError]
) -> None:
    idle = [client(f"idle-{number}") for number in range(4)]
    for session in idle:
        session.prepare()
    together = threading.Barrier(5)

    def prepare(number: int) -> None:
        with client(f"client-{number}") as session:
            together.wait(10)
            session.prepare()

    errors: list[BaseException] = []

    def attempt(number: int) -> None:
        try:
            prepare(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (errors, failed) == ([], [])
    for session in idle:
        session.close()


@pytest.mark.parametrize("during", [False, True], ids=["idle", "at work"])
def test_a_dealer_that_was_closed_deals_no_more(
    client: Callable[[str], Client], dealer: Dealer, during: bool
) -> None:
    session = client("client")
    is_closed = threading.Event()

    def close(*_: object) -> None:
        if during and not is_closed.is_set():
            is_closed.set()
            dealer.close()

    session.prepare(progress=close)
    if not during:
        dealer.close()
    with pytest.raises(PeerError):
        session.prepare()
