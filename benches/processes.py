"""Programs of Privet as processes of this machine, which say what happens in lines of JSON."""

from __future__ import annotations

import json
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from queue import Queue
from subprocess import PIPE, Popen, TimeoutExpired
from threading import Thread
from typing import Any

from privet import zoo

PRIVET = ("-c", "from privet.cli import main; main()")
FIRST_SECONDS = 600.0
"""How long a line may take that somebody waits for."""


class Process:
    """A Python program whose lines are read all the time: a pipe that nobody reads would fill.

    What it writes to standard error goes to the file `log`, if one is given.
    """

    def __init__(self, *words: object, log: Path | None = None) -> None:
        errors = None if log is None else log.open("w")
        command = [sys.executable, *map(str, words)]
        self._process = Popen(command, stdout=PIPE, stderr=errors, text=True)
        if errors is not None:
            errors.close()
        self._lines: Queue[dict[str, Any] | None] = Queue()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def line_with(self, key: str) -> dict[str, Any]:
        """The next line that has `key`."""
        while (document := self._lines.get(timeout=FIRST_SECONDS)) is not None:
            if key in document:
                return document
        raise RuntimeError(f"a process ended before it printed {key!r}")

    def end(self, seconds: float = 30.0) -> int:
        """Tells it to end, and kills it after so many seconds; its exit code."""
        self._process.terminate()
        try:
            code = self._process.wait(seconds)
        except TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._reader.join()
        return code

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)


@contextmanager
def program(*words: object, log: Path | None = None) -> Iterator[Process]:
    """A Python program that ends with the block."""
    process = Process(*words, log=log)
    try:
        yield process
    finally:
        process.end()


@contextmanager
def command(*words: object, log: Path | None = None) -> Iterator[Process]:
    """A `privet` command that ends with the block."""
    with program(*PRIVET, *words, "--json", log=log) as process:
        yield process


def add_model(repository: Path, name: str, config: str = "") -> Path:
    """Builds a model of the zoo in a repository; its file."""
    version = repository / name / "1"
    version.mkdir(parents=True)
    (version.parent / "config.toml").write_text(config)
    return zoo.build(name, version).rename(version / "model.onnx")


@contextmanager
def dealer(keys: Path, log: Path | None = None) -> Iterator[str]:
    """A dealer; its address."""
    words = ("dealer", "--keys", keys, "--listen", "127.0.0.1:0")
    with command(*words, log=log) as process:
        yield process.line_with("address")["address"]


@contextmanager
def service(
    repository: Path, keys: Path, state: Path, *options: object, log: Path | None = None
) -> Iterator[tuple[Process, str]]:
    """`privet serve`, which holds nobody to a number of requests; the process and its address."""
    words = ("serve", repository, "--keys", keys, "--state", state, "--listen", "127.0.0.1:0")
    with command(*words, "--requests-per-minute", 1_000_000, *options, log=log) as process:
        yield process, process.line_with("address")["address"]


def free_ports(count: int) -> range:
    """So many ports in a row where nobody listens, below those the system gives to connections.

    They are drawn at random: programs that look at the same time hardly find the same ones.
    """
    for _ in range(1000):
        first = 20_000 + secrets.randbelow(12_000)
        ports = range(first, first + count)
        with ExitStack() as stack, suppress(OSError):
            for port in ports:
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return ports
    raise OSError("no free ports")
