"""The folders of a repository: which models and versions are there, and whether they changed.

```
repository/
  digits/config.toml          may be missing: then all options have their defaults
  digits/1/model.onnx
  digits/2/model.onnx         a version is a folder named by a whole number
  digits/2/samples.npy        calibration = "samples.npy"
```
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from privet.errors import Misuse
from privet.serve.repository.config import ALL, MODEL_FILE, NEWEST, ModelConfig

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a model may be called: it is part of addresses."""

_NUMBER = re.compile(r"[1-9][0-9]{0,8}")

Signature = tuple[tuple[str, int, int, int], ...]
"""Name, change time in nanoseconds, inode and size of each file that a version is made of."""


@dataclass(frozen=True)
class Source:
    """The files of one version. `calibration` is None where there is none."""

    model: str
    number: int
    onnx: Path
    calibration: Path | None

    def signature(self) -> Signature:
        """What changes when a file does."""
        paths = [self.onnx, *([self.calibration] if self.calibration else [])]
        return tuple(mark for path in paths if (mark := _mark(path)) is not None)


def model_folders(repository: Path) -> list[Path]:
    """The folders of the models, by name; hidden ones are none.

    # Errors
    `Misuse` if the repository cannot be read.
    """
    try:
        folders = [it for it in repository.iterdir() if it.is_dir() and it.name[0] != "."]
    except OSError as error:
        raise Misuse(f"the repository {repository} cannot be read: {error.strerror}") from error
    return sorted(folders)


def versions(folder: Path) -> list[int]:
    """The versions that have a model, in order."""
    found = (it.name for it in folder.iterdir() if _NUMBER.fullmatch(it.name))
    return sorted(int(name) for name in found if (folder / name / MODEL_FILE).is_file())


def chosen(folder: Path, config: ModelConfig) -> list[Source]:
    """The versions that are to be served.

    # Errors
    `Misuse` if one is missing, there is none, or the folder's name cannot be a model's.
    """
    if not NAME.fullmatch(folder.name):
        raise Misuse(
            f"{folder.name!r} cannot be a model's name: letters, digits and ._- (at most 64), "
            "beginning with a letter or a digit"
        )
    there = versions(folder)
    if not there:
        raise Misuse(f"{folder} has no version: put the model into {folder / '1' / MODEL_FILE}")
    if config.versions == NEWEST:
        wanted = there[-1:]
    elif config.versions == ALL:
        wanted = there
    else:
        wanted = [int(number) for number in config.versions]
    missing = [number for number in wanted if number not in there]
    if missing:
        raise Misuse(f"{folder / str(missing[0]) / MODEL_FILE} is missing; there are {there}")
    return [_source(folder, number, config) for number in wanted]


def _source(folder: Path, number: int, config: ModelConfig) -> Source:
    home = folder / str(number)
    calibration = None
    if config.calibration is not None:
        places = (home / config.calibration, folder / config.calibration)
        calibration = next((place for place in places if place.is_file()), None)
        if calibration is None:
            raise Misuse(f"calibration {places[0]} is missing, and so is {places[1]}")
    return Source(folder.name, number, home / MODEL_FILE, calibration)


def _mark(path: Path) -> tuple[str, int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return str(path), found.st_mtime_ns, found.st_ino, found.st_size
