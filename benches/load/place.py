"""Keys, a model, a dealer and a service of two cores, as processes on this machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx

from benches.processes import command
from privet import keys, zoo

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
    words = ("dealer", "--keys", place.keys, "--listen", "127.0.0.1:0")
    with command(*words, log=place.folder / "dealer.log") as process:
        yield process.line_with("address")["address"]


@contextlib.contextmanager
def serving(place: Place, dealer: str, cores: int, options: tuple[str, ...]) -> Iterator[Running]:
    """`privet serve` with so many cores for jobs."""
    # Jobs are pinned to their cores; the control plane may run on any, as it does by default.
    first = _free_ports(cores)
    words = ["serve", place.folder / "repository", "--keys", place.keys, "--dealer", dealer]
    words += ["--state", place.folder / "service", "--listen", "127.0.0.1:0", "--cores", cores]
    words += ["--requests-per-minute", 1_000_000, "--first-port", first, *options]
    with command(*words, log=place.folder / "service.log") as process:
        address = process.line_with("address")["address"]
        yield Running(process.pid, address, tuple(range(first, first + cores)))


def _free_ports(count: int) -> int:
    """The first of so many ports in a row where nobody listens."""
    for first in range(20_000 + os.getpid() % 8_000, 32_000, count):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    raise OSError("no free ports")
