"""Fixtures: a server with a model, and a client session with it, over loopback TLS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from privet import keys
from privet.compiler.compile import Compiled
from privet.runtime import Client, Credentials, Finished, Server
from privet.suites import Gmw, make_policy
from privet.suites.options import fields_of

Session = Callable[..., Client]


@pytest.fixture(scope="session")
def key_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of a server and a client."""
    folder = tmp_path_factory.mktemp("keys")
    keys.make(folder, (), force=True)
    return folder


@pytest.fixture
def session(key_folder: Path, tmp_path: Path) -> Iterator[Session]:
    """Opens a client's session with a new server of the given program, in suite `gmw` with the
    options that are its fields; all are closed at the end.

    A session that failed at the server fails the test.
    """
    failures: list[Finished] = []

    def hear(finished: Finished) -> None:
        if finished.error is not None:
            failures.append(finished)

    with ExitStack() as stack:

        def start(compiled: Compiled, rounds: str = "linear", **settings: Any) -> Client:
            names = {field.name for field in fields_of(Gmw)}
            suite_options = {name: value for name, value in settings.items() if name in names}
            options = {name: value for name, value in settings.items() if name not in names}
            suite = Gmw(rounds=rounds, **suite_options)
            server = Server(
                Credentials.from_directory(key_folder, "server"),
                state=tmp_path,
                policy=make_policy(weaker=suite.weaknesses),
                on_finished=hear,
            )
            stack.enter_context(server)
            server.add(compiled.program, compiled.weights)
            server.start()
            host, port = server.address
            credentials = Credentials.from_directory(key_folder, "client")
            client = Client(host, port, credentials, state=tmp_path, suite=suite, **options)
            return stack.enter_context(client)

        yield start
    assert not failures
