"""A service with its repository, beside a test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.e2e.processes import Running, running
from tests.e2e.test_commands import DIGITS, privet

DIGITS_CONFIG = "input_range = [0, 1]\n"

_COMPILED = TemporaryDirectory(prefix="privet-compiled-")
"""What services here compiled: to compile the digits again takes each of them 0.2 s."""


@dataclass
class Scene:
    """A running service: its process, address, files."""

    process: Running
    address: str
    folder: Path
    keys: Path
    models: list[dict[str, Any]]

    @property
    def repository(self) -> Path:
        """Where its models are."""
        return self.folder / "repository"


def put_digits(
    repository: Path, version: int = 1, config: str = DIGITS_CONFIG, name: str = "digits"
) -> None:
    """Puts the digits network into a repository."""
    folder = repository / name / str(version)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(DIGITS, folder / "model.onnx")
    (repository / name / "config.toml").write_text(config)


def put_zoo(repository: Path, name: str, config: str = "") -> None:
    """Puts a model of the zoo into a repository."""
    folder = repository / name / "1"
    folder.mkdir(parents=True, exist_ok=True)
    report = privet("zoo", "build", name, "-o", folder)
    Path(report["path"]).rename(folder / "model.onnx")
    (repository / name / "config.toml").write_text(config)


@contextmanager
def serving(folder: Path, keys: Path, *options: object) -> Iterator[Scene]:
    """Runs a service on the repository in `folder`, and its state there. It finds there what other
    services have compiled before, as if it had been started again."""
    words = ["serve", folder / "repository", "--keys", keys, "--state", folder / "state"]
    words += ["--listen", "127.0.0.1:0", "--poll", 0.2, *options]
    programs = folder / "state" / "server" / "programs"
    _copy_programs(Path(_COMPILED.name), programs)
    try:
        with running(*words) as process:
            address = process.next()["address"]
            yield Scene(process, address, folder, keys, process.next()["models"])
    finally:
        _copy_programs(programs, Path(_COMPILED.name))


def _copy_programs(source: Path, target: Path) -> None:
    for program in source.glob("*"):
        if not program.suffix and not (target / program.name).exists():
            shutil.copytree(program, target / program.name)
