"""Where models come from: the folders of a repository, or one file that is served by itself.

```
repository/
  digits/config.toml          may be missing: then all options have their defaults
  digits/1/model.onnx
  digits/2/model.onnx         a version is a folder named by a whole number
  digits/2/samples.npy        calibration = "samples.npy"
  shared/1/program.json       the public half of a program, where the service must not have weights
```
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from privet.compiler.compile import PUBLIC_FILE
from privet.errors import Misuse
from privet.service.repository.config import ALL, MODEL_FILE, NEWEST, ModelConfig, read_config

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a model may be called: it is part of addresses."""

_NUMBER = re.compile(r"[1-9][0-9]{0,8}")

Signature = tuple[tuple[str, int, int, int], ...]
"""Name, change time in nanoseconds, inode and size of each file that a version is made of."""


@dataclass(frozen=True)
class Source:
    """The files of one version: a model, or the public half of a program that was compiled from one
    elsewhere. `calibration` is None where there is none."""

    model: str
    number: int
    onnx: Path
    calibration: Path | None

    @property
    def is_public_half(self) -> bool:
        """Whether it has no weights."""
        return self.onnx.suffix == Path(PUBLIC_FILE).suffix

    def signature(self) -> Signature:
        """What changes when a file does."""
        paths = [self.onnx, *([self.calibration] if self.calibration else [])]
        return tuple(mark for path in paths if (mark := _mark(path)) is not None)


class Models(Protocol):
    """The models to serve."""

    @property
    def required(self) -> bool:
        """Whether a service does not start without all of them."""

    def names(self) -> list[str]:
        """The names of the models. Raises `Misuse` if nothing can be read."""

    def read(self, name: str) -> tuple[ModelConfig, list[Source]]:
        """A model's configuration, and the versions that are to be served. Raises `Misuse` or
        `OSError` if the model cannot be served."""


@dataclass(frozen=True)
class ModelFolders:
    """The repository in `folder`: a folder for each model; hidden ones are none."""

    folder: Path
    required: bool = False

    def names(self) -> list[str]:
        try:
            folders = [
                path for path in self.folder.iterdir() if path.is_dir() and path.name[0] != "."
            ]
        except OSError as error:
            raise Misuse(
                f"the repository {self.folder} cannot be read: {error.strerror}"
            ) from error
        return sorted(folder.name for folder in folders)

    def read(self, name: str) -> tuple[ModelConfig, list[Source]]:
        folder = self.folder / name
        config = read_config(folder)
        return config, served_versions(folder, config)


@dataclass(frozen=True)
class SingleModel:
    """The one model in the file `onnx`, called `name`, with samples for its calibration if any."""

    name: str
    onnx: Path
    calibration: Path | None = None
    config: ModelConfig = field(default_factory=ModelConfig)
    required: bool = True

    def __post_init__(self) -> None:
        check_name(self.name)

    def names(self) -> list[str]:
        return [self.name]

    def read(self, name: str) -> tuple[ModelConfig, list[Source]]:
        return self.config, [Source(name, 1, self.onnx, self.calibration)]


def check_name(name: str) -> None:
    """Checks what a model is to be called. Raises `Misuse` if it cannot be part of an address."""
    if not NAME.fullmatch(name):
        raise Misuse(
            f"{name!r} cannot be a model's name: letters, digits and ._- (at most 64), "
            "beginning with a letter or a digit"
        )


def versions(folder: Path) -> list[int]:
    """The versions that have a model, in order."""
    names = (path.name for path in folder.iterdir() if _NUMBER.fullmatch(path.name))
    return sorted(int(name) for name in names if _file(folder / name) is not None)


def _file(home: Path) -> Path | None:
    """What a version is made of; None if it is none."""
    places = (home / MODEL_FILE, home / PUBLIC_FILE)
    return next((place for place in places if place.is_file()), None)


def served_versions(folder: Path, config: ModelConfig) -> list[Source]:
    """The versions that are to be served. Raises `Misuse` if one is missing, there is none, or the
    folder's name cannot be a model's."""
    check_name(folder.name)
    numbers = versions(folder)
    if not numbers:
        raise Misuse(f"{folder} has no version: put the model into {folder / '1' / MODEL_FILE}")
    if config.versions == NEWEST:
        selection = numbers[-1:]
    elif config.versions == ALL:
        selection = numbers
    else:
        selection = [int(number) for number in config.versions]
    missing = [number for number in selection if number not in numbers]
    if missing:
        raise Misuse(f"{folder / str(missing[0]) / MODEL_FILE} is missing; there are {numbers}")
    return [_source(folder, number, config) for number in selection]


def _source(folder: Path, number: int, config: ModelConfig) -> Source:
    home = folder / str(number)
    calibration = None
    if config.calibration is not None:
        places = (home / config.calibration, folder / config.calibration)
        calibration = next((place for place in places if place.is_file()), None)
        if calibration is None:
            raise Misuse(f"calibration {places[0]} is missing, and so is {places[1]}")
    return Source(folder.name, number, _file(home) or home / MODEL_FILE, calibration)


def _mark(path: Path) -> tuple[str, int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return str(path), status.st_mtime_ns, status.st_ino, status.st_size
