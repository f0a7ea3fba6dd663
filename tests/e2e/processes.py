"""Commands that run beside a test, and the lines that they print."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from tests.e2e.test_commands import PRIVET

SOON = 60.0
"""Seconds within which everything here must have happened; far above what it takes."""


def environment() -> dict[str, str]:
    """Of commands. None trusts the authorities of this machine, which aiohttp reads as it is
    imported: that takes 0.06 s of each start."""
    return {**os.environ, "SSL_CERT_FILE": os.devnull}


class Running:
    """A command with `--json`, whose lines are read as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def next(self) -> dict[str, Any]:
        """The next line."""
        line: dict[str, Any] = json.loads(self._lines.get(timeout=SOON))
        return line

    def until(self, matches: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next line of which `matches` holds."""
        while True:
            line = self.next()
            if matches(line):
                return line

    def end(self, signal: int) -> int:
        """Sends a signal; the exit code, once the command has ended."""
        self.process.send_signal(signal)
        return self.process.wait(SOON)

    def kill(self) -> None:
        """Kills the command, and reads what it left: only then may its output be closed."""
        self.process.kill()
        self._reader.join(SOON)


@contextmanager
def running(
    *words: object, program: Sequence[str] = PRIVET, log: Path | None = None
) -> Iterator[Running]:
    """Runs a command, which is killed at the end if it still runs; its log goes to a file."""
    command = [*program, *map(str, words), "--json"]
    with (
        nullcontext() if log is None else log.open("wb") as errors,
        subprocess.Popen(
            command, env=environment(), stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        child = Running(process)
        try:
            yield child
        finally:
            child.kill()


@contextmanager
def listening(
    *words: object, program: Sequence[str] = PRIVET, log: Path | None = None
) -> Iterator[tuple[Running, str]]:
    """Runs a server or a dealer on a free port; also tells its address."""
    with running(*words, "--listen", "127.0.0.1:0", program=program, log=log) as process:
        yield process, process.next()["address"]


def lines(words: Sequence[object]) -> list[dict[str, Any]]:
    """Runs a command to its end, which must be a good one; all that it printed."""
    command = [*PRIVET, *map(str, words), "--json"]
    process = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=SOON, check=False
    )
    assert process.returncode == 0, process.stderr + process.stdout
    return [json.loads(line) for line in process.stdout.splitlines()]
