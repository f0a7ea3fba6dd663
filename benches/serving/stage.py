"""Keys, models, a dealer, and the two ways to serve them, as processes on this machine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import privet
from benches.processes import command, program
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


@contextmanager
def dealer(stage: Stage) -> Iterator[str]:
    with command("dealer", "--keys", stage.keys, "--listen", "127.0.0.1:0") as process:
        yield process.line_with("address")["address"]


@contextmanager
def service(stage: Stage, state: Path, dealer: str, *options: object) -> Iterator[str]:
    """`privet serve`; its URL."""
    words = ["serve", stage.repository, "--keys", stage.keys, "--state", state, "--dealer", dealer]
    words += ["--listen", "127.0.0.1:0", "--requests-per-minute", 1_000_000, *options]
    with command(*words) as process:
        address = process.line_with("address")["address"]
        process.line_with("models")
        yield f"https://{address}"


@contextmanager
def server(stage: Stage, name: str, dealer: str) -> Iterator[tuple[str, int]]:
    """`privet.Server` of one model; its host and port."""
    state = stage.folder / f"baseline-{name}"
    stage.programs[name].save(state / "program")
    words = ("-m", "benches.serving.baseline", stage.keys, state, state / "program", dealer)
    with program(*words) as process:
        host, port = process.line_with("address")["address"].split(":")
        yield host, int(port)
