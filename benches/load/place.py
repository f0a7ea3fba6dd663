"""Keys, a model, a dealer and a service of two cores, as processes on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx

from privet import keys, zoo

PRIVET = (sys.executable, "-c", "from privet.cli import main; main()")
STOP_SECONDS = 30.0
LOOK_SECONDS = 0.05
CONFIG = "[limits]\nqueued = 10000\nqueued_per_client = 100\nnotices_per_client = 100\n"


@dataclass(frozen=True)
class Place:
    """A folder with keys of many clients and a repository of one model, which is `model`."""

    folder: Path
    name: str
    model: bytes
    shape: tuple[int, ...]

    @property
    def keys(self) -> Path:
        """Certificates of all parties."""
        return self.folder / "keys"

    def role(self, number: int) -> str:
        """What a client's files are called."""
        return f"client-{number}"


@dataclass(frozen=True)
class Running:
    """A service: its process, its address, and its workers' ports."""

    process: int
    address: str
    ports: tuple[int, ...]


def build(folder: Path, name: str, clients: int) -> Place:
    """Makes keys for so many clients, and a repository of a model of the zoo."""
    keys.make(folder / "keys", (), keep_ca_key=True)
    for number in range(clients):
        keys.issue(folder / "keys", f"client-{number}")
    version = folder / "repository" / name / "1"
    version.mkdir(parents=True)
    path = shutil.move(zoo.build(name, folder), version / "model.onnx")
    (version.parent / "config.toml").write_text(CONFIG)
    given = onnx.load(path).graph.input[0].type.tensor_type.shape
    shape = tuple(it.dim_value or 1 for it in given.dim)
    return Place(folder, name, Path(path).read_bytes(), shape)


@contextlib.contextmanager
def dealing(place: Place) -> Iterator[str]:
    """A dealer; its address."""
    with _privet(place, "dealer", "dealer", "--keys", place.keys, "--listen", "127.0.0.1:0") as it:
        yield it[1]


@contextlib.contextmanager
def serving(place: Place, dealer: str, cores: int, options: tuple[str, ...]) -> Iterator[Running]:
    """`privet serve` with so many cores for jobs."""
    # Jobs are pinned to their cores; the control plane may run on any, as it does by default.
    first = _free_ports(cores)
    words = ["serve", place.folder / "repository", "--keys", place.keys, "--dealer", dealer]
    words += ["--state", place.folder / "service", "--listen", "127.0.0.1:0", "--cores", cores]
    words += ["--requests-per-minute", 1_000_000, "--first-port", first, *options]
    with _privet(place, "service", *words) as (process, address):
        yield Running(process, address, tuple(range(first, first + cores)))


def children(process: int) -> list[int]:
    """The processes that a process has started, such as a service's workers."""
    return [int(it) for it in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@contextlib.contextmanager
def _privet(place: Place, log: str, *words: object) -> Iterator[tuple[int, str]]:
    """A command's process and address. It prints to files: a pipe that nobody reads would fill."""
    command = [*PRIVET, *map(str, words), "--json"]
    said = place.folder / f"{log}.out"
    with (
        said.open("w") as output,
        (place.folder / f"{log}.log").open("w") as errors,
        subprocess.Popen(command, stdout=output, stderr=errors) as process,
    ):
        try:
            yield process.pid, _address(process, said)
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _address(process: subprocess.Popen[bytes], said: Path) -> str:
    """What the first line that a process prints says of its address."""
    while process.poll() is None:
        line, end, _ = said.read_text().partition("\n")
        if end:
            return str(json.loads(line)["address"])
        time.sleep(LOOK_SECONDS)
    raise RuntimeError(f"a process ended before it listened: see {said}")


def _free_ports(count: int) -> int:
    """The first of so many ports in a row where nobody listens."""
    for first in range(20_000 + os.getpid() % 8_000, 32_000, count):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    raise OSError("no free ports")
