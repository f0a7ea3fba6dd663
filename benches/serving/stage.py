"""Keys, models, a dealer, and the two ways to serve them, as processes on this machine."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from subprocess import PIPE, Popen
from threading import Thread
from typing import Any

import numpy as np

import privet
from privet import keys, zoo
from privet.compiler.compile import Compiled
from privet.compiler.executor.reference import random_inputs

Inputs = Mapping[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Stage:
    """What all runs share: a folder with `keys` and a `repository`, programs and an input each."""

    folder: Path
    programs: Mapping[str, Compiled]
    inputs: Mapping[str, Inputs]

    @property
    def keys(self) -> Path:
        """Certificates of all parties."""
        return self.folder / "keys"

    @property
    def repository(self) -> Path:
        """The models, as `privet serve` wants them."""
        return self.folder / "repository"

    def credentials(self) -> privet.Credentials:
        """The client's."""
        return privet.Credentials.from_directory(self.keys, "client")


def build(folder: Path, models: list[str]) -> Stage:
    """Makes keys and builds models of the zoo."""
    keys.make(folder / "keys", ())
    programs, inputs = {}, {}
    for name in models:
        version = folder / "repository" / name / "1"
        version.mkdir(parents=True)
        path = zoo.build(name, folder)
        programs[name] = privet.compile(path, name=name)
        inputs[name] = random_inputs(programs[name].program, None)
        shutil.move(path, version / "model.onnx")
        (version.parent / "config.toml").write_text("")
    return Stage(folder, programs, inputs)


PRIVET = ("-c", "from privet.cli import main; main()")


class Process:
    """A Python program that prints JSON lines, which are read all the time."""

    def __init__(self, *words: object) -> None:
        self._process = Popen([sys.executable, *map(str, words)], stdout=PIPE, text=True)
        self._lines: Queue[dict[str, Any] | None] = Queue()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def value_of(self, key: str) -> Any:
        """What the next line with `key` says of it."""
        while (document := self._lines.get(timeout=600)) is not None:
            if key in document:
                return document[key]
        raise RuntimeError(f"a process ended before it printed {key!r}")

    def end(self) -> None:
        """Tells it to end, and waits for that."""
        self._process.terminate()
        self._process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)


@contextmanager
def command(*words: object) -> Iterator[Process]:
    """A `privet` command that ends with the block."""
    with program(*PRIVET, *words, "--json") as process:
        yield process


@contextmanager
def program(*words: object) -> Iterator[Process]:
    """A Python program that ends with the block."""
    process = Process(*words)
    try:
        yield process
    finally:
        process.end()


@contextmanager
def dealer(stage: Stage) -> Iterator[str]:
    with command("dealer", "--keys", stage.keys, "--listen", "127.0.0.1:0") as process:
        yield process.value_of("address")


@contextmanager
def service(stage: Stage, state: Path, dealer: str, *options: object) -> Iterator[str]:
    """`privet serve`; its URL."""
    words = ["serve", stage.repository, "--keys", stage.keys, "--state", state, "--dealer", dealer]
    words += ["--listen", "127.0.0.1:0", "--requests-per-minute", 1_000_000, *options]
    with command(*words) as process:
        address = process.value_of("address")
        process.value_of("models")
        yield f"https://{address}"


@contextmanager
def server(stage: Stage, name: str, dealer: str) -> Iterator[tuple[str, int]]:
    """`privet.Server` of one model; its host and port."""
    state = stage.folder / f"baseline-{name}"
    stage.programs[name].save(state / "program")
    words = ("-m", "benches.serving.baseline", stage.keys, state, state / "program", dealer)
    with program(*words) as process:
        host, port = process.value_of("address").split(":")
        yield host, int(port)
