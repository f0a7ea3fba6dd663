"""What a process is short of is told, without a path; and a peer that cannot be accepted hears."""

from __future__ import annotations

import errno
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from privet import _native, keys
from privet.cli.failures import exit_code
from privet.errors import PrivetError, Short
from privet.runtime.acceptor import Acceptor
from privet.runtime.credentials import Credentials
from privet.runtime.machine import available_memory, process_memory
from privet.runtime.shortage import SpareFile, shortage, take_all_files

IN_FILES = """
import os, resource, socket, sys
from privet.runtime.shortage import SpareFile
spare = SpareFile()
listener = socket.create_server(("127.0.0.1", 0))
clients = [socket.create_connection(listener.getsockname()) for _ in range(2)]
most = len(os.listdir("/proc/self/fd")) - 1
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
for turn in range(2):
    try:
        listener.accept()
        print("accepted")
    except OSError as error:
        print(error.errno)
    with spare.given_up():
        listener.accept()[0].close()
    clients[turn].settimeout(10)
    print(clients[turn].recv(1))
"""


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (OSError(errno.EMFILE, "Too many open files", "/secret/place"), "open files"),
        (OSError(errno.ENFILE, "Too many open files in system"), "open files"),
        (PrivetError("the store failed at /secret/place: Too many (os error 24)"), "open files"),
        (PrivetError("the store failed at /secret/place: none left (os error 12)"), "memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory", "/secret/place"), "memory"),
        (MemoryError(), "memory"),
        (RuntimeError("can't start new thread"), "threads"),
    ],
)
def test_a_shortage_is_told_without_a_path(error: Exception, word: str) -> None:
    advice = shortage(error) or ""
    assert word in advice
    assert "try again later" in advice
    assert "secret" not in advice


@pytest.mark.parametrize(
    "error", [OSError(errno.EACCES, "no"), PrivetError("os error 24"), RuntimeError("other")]
)
def test_other_errors_are_none(error: Exception) -> None:
    assert shortage(error) is None


def test_the_spare_file_lets_a_connection_be_accepted_and_closed() -> None:
    process = subprocess.run(
        [sys.executable, "-c", IN_FILES], capture_output=True, text=True, timeout=60, check=True
    )
    assert process.stdout.split() == [str(errno.EMFILE), "b''"] * 2


def test_a_spare_file_that_is_closed_stays_closed() -> None:
    before = len(os.listdir("/proc/self/fd"))
    spare = SpareFile()
    spare.close()
    spare.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_all_files_are_those_of_the_hard_limit() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[0], 200), before[1]))
        take_all_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (before[1], before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_memory_that_a_process_may_not_map_is_not_available() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    assert available_memory() > 64 << 20
    mapped, resident = process_memory()
    assert mapped > resident > 0
    resource.setrlimit(resource.RLIMIT_AS, (mapped + (64 << 20), before[1]))
    try:
        assert available_memory() <= 64 << 20
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_an_address_that_is_taken_is_no_fault_of_a_peer(key_folder: Path) -> None:
    credentials = Credentials.from_directory(key_folder, "server")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = ":".join(map(str, taken.getsockname()))
        with pytest.raises(PrivetError, match=f"cannot listen on {place}") as caught:
            _native.Listener(place, credentials.native)
    assert exit_code(caught.value) == 1


def test_a_listener_that_has_no_thread_for_a_peer_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys.make(tmp_path / "keys")
    reports: list[Short] = []
    failures: list[tuple[str, PrivetError]] = []
    acceptor = Acceptor(
        Credentials.from_directory(tmp_path / "keys", "server"),
        "127.0.0.1",
        0,
        5.0,
        lambda connection, peer: None,
        lambda peer, error: failures.append((peer, error)),
        short=reports.append,
    )
    acceptor.start()
    start = threading.Thread.start

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with socket.create_connection(acceptor.address, timeout=10) as peer:
        assert peer.recv(1) == b"", "it is closed, and need not wait"
    monkeypatch.setattr(threading.Thread, "start", start)
    assert "threads" in str(reports[0])
    assert failures[0][0] == ""
    with socket.create_connection(acceptor.address, timeout=10) as peer:
        peer.sendall(b"this is no TLS")
        peer.settimeout(10)
        while peer.recv(100):
            pass
    # Its thread tells of it after it has closed the connection.
    deadline = time.monotonic() + 10
    while failures[-1][0] == "" and time.monotonic() < deadline:
        time.sleep(0.01)
    acceptor.close()
    assert failures[-1][0] != "", "a thread greeted it"
