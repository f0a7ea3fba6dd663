"""The standard study: what `privet study measure` runs unless it is told what.

Every suite on models that it runs, batches up to 128, and links that delay; less than an hour on
two cores. The full study adds what takes longer.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from privet.planner.cases import Case, find_models, plan_cases
from privet.planner.network import parse_network
from privet.planner.setting import settings


@dataclass(frozen=True)
class StudyPart:
    """Every one of `models` under every one of `settings` for every one of `batches`, on the
    loopback and over `links`; a case, all `repeats` of it, takes about `seconds` on two cores."""

    models: tuple[str, ...]
    settings: tuple[str, ...]
    seconds: float
    batches: tuple[int, ...] = (1,)
    links: tuple[str, ...] = ()
    repeats: int = 1


@dataclass(frozen=True)
class Study:
    """The study of `data/study.toml`: what the standard one runs, and what the full one runs
    besides. `apart` are settings whose errors are not counted with their suite's; `contexts` are
    lengths in tokens of models that differ in nothing else."""

    apart: tuple[str, ...]
    input_ranges: Mapping[str, tuple[float, float]]
    contexts: Mapping[str, int]
    standard: tuple[StudyPart, ...]
    further: tuple[StudyPart, ...]


def _frozen(value: Any) -> Any:
    """Lists as tuples."""
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    return {k: _frozen(v) for k, v in value.items()} if isinstance(value, dict) else value


def _read() -> Study:
    document = _frozen(tomllib.loads(files(__package__).joinpath("data/study.toml").read_text()))
    parts: dict[str, Any] = {
        name: tuple(StudyPart(**fields) for fields in document.pop(name))
        for name in ("standard", "further")
    }
    return Study(**document, **parts)


STUDY = _read()


def standard_cases(folder: Path, *, full: bool = False, repeats: int | None = None) -> list[Case]:
    """Cases of the standard or the full study, each once; models are built into `folder`.
    `repeats` takes the place of each part's own."""
    cases: dict[str, Case] = {}
    for part in (*STUDY.standard, *(STUDY.further if full else ())):
        for case in _cases(part, folder, repeats or part.repeats):
            cases.setdefault(case.file_name, case)
    return list(cases.values())


def validation_cases(folder: Path, suites: Sequence[str] = ()) -> list[Case]:
    """Those cases of the standard study that are run over links, with the same on the loopback;
    with `suites` theirs alone."""
    selection = settings(suites)
    return [
        case
        for part in STUDY.standard
        if part.links
        for case in _cases(part, folder, part.repeats)
        if not selection or case.setting in selection
    ]


def _cases(part: StudyPart, folder: Path, repeats: int) -> Sequence[Case]:
    return [
        case
        for name, model in zip(part.models, find_models(part.models, folder), strict=True)
        for case in plan_cases(
            [model],
            settings(part.settings),
            part.batches,
            (None, *(parse_network(link) for link in part.links)),
            repeats,
            part.seconds * repeats / part.repeats,
            STUDY.input_ranges.get(name),
        )
    ]
