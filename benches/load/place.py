"""Keys, a model, a dealer and a service of two cores, as processes on this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx

from benches.processes import add_model, dealer, free_ports, service
from privet import keys

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
    path = add_model(folder / "repository", name, CONFIG)
    tensor_shape = onnx.load(path).graph.input[0].type.tensor_type.shape
    shape = tuple(dim.dim_value or 1 for dim in tensor_shape.dim)
    return Place(folder, name, path.read_bytes(), shape)


def dealing(place: Place) -> contextlib.AbstractContextManager[str]:
    """A dealer; its address."""
    return dealer(place.keys, place.folder / "dealer.log")


@contextlib.contextmanager
def serving(place: Place, dealer: str, cores: int, options: tuple[str, ...]) -> Iterator[Running]:
    """`privet serve` with so many cores for jobs."""
    # Jobs are pinned to their cores; the control plane may run on any, as it does by default.
    ports, folder = free_ports(cores), place.folder
    words = ("--dealer", dealer, "--cores", cores, "--first-port", ports[0], *options)
    places = (folder / "repository", place.keys, folder / "service")
    with service(*places, *words, log=folder / "service.log") as (process, address):
        yield Running(process.pid, address, tuple(ports))
