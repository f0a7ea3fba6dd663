"""Keys, models, a dealer, and the two ways to serve them, as processes on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import privet
from benches.processes import add_model, program
from benches.processes import service as serve
from privet import keys
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
        path = add_model(folder / "repository", name)
        programs[name] = privet.compile(path, name=name)
        inputs[name] = random_inputs(programs[name].program, None)
    return Stage(folder, programs, inputs)


@contextmanager
def service(stage: Stage, state: Path, dealer: str, *options: object) -> Iterator[str]:
    """`privet serve`; its URL."""
    words = ("--dealer", dealer, *options)
    with serve(stage.repository, stage.keys, state, *words) as (process, address):
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
