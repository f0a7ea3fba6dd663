"""Dealt material as three hosts would use it: real processes, real sockets."""

from __future__ import annotations

import json
import os
import queue
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.e2e.test_commands import DIGITS, PRIVET, SEVEN, privet

from privet import keys as key_files
from privet.compiler.compile import compile
from privet.errors import Misuse
from privet.runtime import Client, Credentials, Finished, Server
from privet.suites import Fss, Gmw

TRUST = "needs a dealer that colludes with neither party"


@pytest.fixture(scope="module")
def key_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys") / "made"
    privet("keys", folder)
    return folder


class Listening:
    """A command that listens; `address` is where, and `next` its next line."""

    def __init__(self, process: subprocess.Popen[str], lines: int) -> None:
        self.process = process
        self.address: str = self.next()["address"]
        for _ in range(1, lines):
            self.next()

    def next(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line: dict[str, Any] = json.loads(self.process.stdout.readline())
        return line


@contextmanager
def listening(*words: object, lines: int = 1) -> Iterator[Listening]:
    """Runs a command that prints so many lines before others may connect."""
    command = [*PRIVET, *map(str, words), "--listen", "127.0.0.1:0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Listening(process, lines)
        finally:
            process.terminate()


@contextmanager
def hosts(
    key_folder: Path, folder: Path, dealer_keys: Path | None = None, *options: object
) -> Iterator[tuple[Listening, Listening]]:
    """A dealer and a server that uses it."""
    with ExitStack() as stack:
        dealer = stack.enter_context(
            listening("dealer", "--keys", dealer_keys or key_folder, *options)
        )
        server = stack.enter_context(
            listening(
                *("serve", DIGITS, "--keys", key_folder, "--state", folder / "server"),
                *("--input-range", 0, 1, "--dealer", dealer.address),
                *("--truncation", "one-bit"),
                lines=2,
            )
        )
        yield dealer, server


DEALT = ("--correlations", "dealer")
FSS = ("--suite", "fss")


def ask(
    server: Listening,
    dealer: Listening,
    key_folder: Path,
    folder: Path,
    options: tuple[str, ...] = DEALT,
) -> list[object]:
    """A client's command line for a dealt prediction."""
    words = ["infer", server.address, "--keys", key_folder, "--state", folder / "client"]
    return [*words, "--input", SEVEN, *options, "--dealer", dealer.address]


def stock(words: list[object], count: int) -> dict[str, Any]:
    """Makes material for what a client's command line asks."""
    place = words.index("--input")
    return privet("prepare", *words[1:place], *words[place + 2 :], "--count", count)


@pytest.mark.parametrize("options", [DEALT, FSS, (*FSS, "--truncation", "one-bit")])
def test_three_hosts(options: tuple[str, ...], key_folder: Path, tmp_path: Path) -> None:
    with hosts(key_folder, tmp_path) as (dealer, server):
        command = ask(server, dealer, key_folder, tmp_path, options)
        result = privet(*command)
        assert int(np.argmax(result["output"])) == 7
        assert result["trust"] == TRUST
        assert result["weaknesses"] == [*(["one-bit"] if "one-bit" in options else []), "dealer"]
        event = dealer.next()
        assert event["event"] == "dealt"
        assert event["model"] == "digits-cnn"
        assert event["material"] == result["material"]
        assert result["offline"]["bytes_dealer"] == event["cost"]["bytes_client"]
        key_bytes = sum(layer["bytes_keys"] for layer in result["layers"])
        assert (key_bytes > 0) == (result["suite"] == "fss")
        assert key_bytes < event["cost"]["bytes_client"]
        # The hidden weights are kept, so a second prediction needs no more than the first.
        assert int(np.argmax(privet(*command)["output"])) == 7


def test_an_entry_is_used_once_on_either_side(key_folder: Path, tmp_path: Path) -> None:
    with hosts(key_folder, tmp_path) as (dealer, server):
        words = ask(server, dealer, key_folder, tmp_path)
        first = privet(*words)["material"]
        for side in ("client", "server"):
            spent_folder = tmp_path / side / side / "spent"
            assert [path.name for path in spent_folder.iterdir()] == [first]


def test_dealt_and_made_material_are_not_mixed(key_folder: Path, tmp_path: Path) -> None:
    with hosts(key_folder, tmp_path) as (dealer, server):
        words = ask(server, dealer, key_folder, tmp_path)
        assert stock(words, 2)["ready"] == 2
        by_keys = privet(*ask(server, dealer, key_folder, tmp_path, FSS))
        assert (by_keys["suite"], by_keys["ready"]) == ("fss", 0)
        assert by_keys["offline"]["bytes_dealer"] > 0
        command = ["infer", server.address, "--keys", key_folder, "--state", tmp_path / "client"]
        result = privet(*command, "--input", SEVEN)
        assert result["trust"] is None
        assert result["offline"]["bytes_dealer"] == 0 < result["offline"]["bytes_client"]


def test_a_dealer_of_another_authority_is_refused(key_folder: Path, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    key_files.make(stranger)
    with hosts(key_folder, tmp_path, stranger) as (dealer, server):
        failure = privet(*ask(server, dealer, key_folder, tmp_path), code=4)
        assert "certificate" in failure["error"]["message"]
    # Nothing was kept of an entry that came to nothing.
    for side in ("client", "server"):
        assert not list((tmp_path / side / side / "ready").iterdir())


def test_a_server_posing_as_the_dealer_is_refused(key_folder: Path, tmp_path: Path) -> None:
    posing = tmp_path / "posing"
    posing.mkdir()
    for name, source in {"ca.pem": "ca", "dealer.pem": "server", "dealer.key": "server"}.items():
        suffix = name.rsplit(".", 1)[1]
        os.link(key_folder / f"{source}.{suffix}", posing / name)
    with hosts(key_folder, tmp_path, posing) as (dealer, server):
        failure = privet(*ask(server, dealer, key_folder, tmp_path), code=4)
        assert "privet-dealer" in failure["error"]["message"]


def test_a_dealer_refuses_entries_beyond_its_limit(key_folder: Path, tmp_path: Path) -> None:
    with hosts(key_folder, tmp_path, None, "--most-bytes", 1000) as (dealer, server):
        failure = privet(*ask(server, dealer, key_folder, tmp_path), code=4)
        assert "this dealer's limit is 1000" in failure["error"]["message"]
        assert dealer.next()["event"] == "failed"


def test_a_dealer_that_is_not_there_is_named(key_folder: Path, tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        nowhere = f"127.0.0.1:{listener.getsockname()[1]}"
        with listening(
            *("serve", DIGITS, "--keys", key_folder, "--state", tmp_path / "server"),
            *("--input-range", 0, 1, "--dealer", nowhere),
            lines=2,
        ) as server:
            words = ["infer", server.address, "--keys", key_folder, "--state", tmp_path / "client"]
            for options in (DEALT, FSS, (*DEALT, "--dealer", nowhere)):
                failure = privet(*words, "--input", SEVEN, *options, code=4)
                assert nowhere in failure["error"]["message"]


def test_the_server_counts_what_the_dealer_says_it_sent(key_folder: Path, tmp_path: Path) -> None:
    finished: queue.Queue[Finished] = queue.Queue()
    server_credentials, client_credentials = (
        Credentials.from_directory(key_folder, role) for role in ("server", "client")
    )
    compiled = compile(DIGITS, input_range=(0, 1))
    with listening("dealer", "--keys", key_folder) as dealer:
        options: dict[str, Any] = {"state": tmp_path, "dealer": dealer.address}
        with Server(server_credentials, on_finished=finished.put, **options) as server:
            server.add(compiled.program, compiled.weights)
            host, port = server.start().address
            ways: list[dict[str, Any]] = [{"suite": Gmw(correlations="dealer")}, {"suite": Fss()}]
            for way in ways:
                with pytest.raises(Misuse, match="HOST:PORT"):
                    Client(host, port, client_credentials, state=tmp_path, **way)
                with Client(host, port, client_credentials, **options, **way) as client:
                    client.prepare()
                dealer_cost = dealer.next()["cost"]
                reports = (finished.get(timeout=30) for _ in range(9))
                cost = next(report.cost for report in reports if report.kind == "prepared")
                assert cost is not None
                assert cost.bytes_dealer == dealer_cost["bytes_server"]


def test_run_with_a_dealer_shows_the_weaker_trust() -> None:
    # Exact linear layers without a dealer carry guard bits, so that only one-bit runs send as much.
    words = ["run", DIGITS, "--input", SEVEN, "--rounds", "log", "--truncation", "one-bit"]
    result = privet(*words, "--correlations", "dealer")
    assert int(np.argmax(result["output"])) == 7
    assert result["trust"] == TRUST
    assert result["dealer"]["bytes_server"] > result["dealer"]["bytes_client"] > 0
    report = privet(*words)
    assert report["dealer"] is None
    assert report["trust"] is None
    for kind in ("bytes_client", "bytes_server", "rounds"):
        assert result["online"][kind] == report["online"][kind]
