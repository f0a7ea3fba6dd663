"""Profile files: what jobs take, measured or derived, in TOML.

name = "ours"
source = "measured on ..."            # where the figures are from, for whoever reads a report
[scaling]                             # the universal scalability law, see `Scaling`
serial = 0.05
crosstalk = 0.0
[[job]]
model = "m1"
suite = "gmw"
batch = 1
phase = "pre"                         # or "on"
cores = 1
memory = 80000000                     # bytes, peak
seconds = 0.034                       # on those cores
material = 1000000                    # bytes that a T_pre leaves
    serial = 1.0                          # only if the job has a law of its own; or crosstalk
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from privet.errors import InputError
from privet.scheduler import Profiles, Scaling

#: The profile files that come with Privet.
OWN = ("paper", "ours")


@dataclass(frozen=True)
class ProfileFile:
    """The file's `name` and `source`, and its jobs as rows for `Profiles.load`."""

    name: str
    source: str
    scaling: Scaling
    jobs: tuple[Mapping[str, Any], ...]

    def profiles(self) -> Profiles:
        """A fresh table."""
        table = Profiles(scaling=self.scaling)
        table.load(self.jobs)
        return table

    def suites(self) -> list[str]:
        return sorted({str(job["suite"]) for job in self.jobs})

    def models(self, suite: str) -> set[str]:
        """The models that have jobs of both phases under `suite`."""
        phases: dict[str, set[str]] = {}
        for job in self.jobs:
            if job["suite"] == suite:
                phases.setdefault(job["model"], set()).add(job["phase"])
        return {model for model, names in phases.items() if names == {"pre", "on"}}


def read(name_or_path: str) -> ProfileFile:
    """Reads one of Privet's own files by its name (`OWN`), or any file. Raises `InputError` if the
    file is not there or not such a file."""
    if name_or_path in OWN:
        text = files("privet.research.simulation").joinpath(f"data/{name_or_path}.toml").read_text()
    elif Path(name_or_path).is_file():
        text = Path(name_or_path).read_text()
    else:
        raise InputError(f"no profile {name_or_path}: neither a file nor one of {', '.join(OWN)}")
    try:
        content = tomllib.loads(text)
        scaling = Scaling(**content.get("scaling", {}))
        profiles = ProfileFile(
            content["name"], content.get("source", ""), scaling, tuple(content["job"])
        )
        profiles.profiles()
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{name_or_path} is no profile file: {error!r}") from error
    return profiles
