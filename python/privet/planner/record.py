"""Records of measurements: one JSON file for each model, setting, batch and network."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from privet.errors import InvalidModel, Misuse
from privet.planner.setting import Setting, setting_named
from privet.suites import Costing, ExtensionForecast, Phase

FORMAT = "privet-study-record"
VERSION = 1

PROCESS_MB = 75.0
"""Memory of a party's process that does nothing, in MB, which formulas leave out."""


@dataclass(frozen=True)
class Record:
    """A measurement, or (`measured` is false) what formulas and unit costs say in its place.

    Phases are those of a whole batch. `model_sha256` names the ONNX file. `extension` made the
    correlations, one of the `extensions` that could (none with a dealer). `link` is the text of the
    shaped link it was measured over, None for the loopback. `material_bytes` is what a material
    entry takes at each party, `peak_mb` the largest resident memory of each process, `joules` what
    processors took by their own counters, None where there are none.
    """

    model: str
    model_sha256: str
    setting: Setting
    batch: int
    offline: Phase
    online: Phase
    peak_mb: Mapping[str, float]
    material_bytes: Mapping[str, int]
    extension: str | None = None
    extensions: tuple[ExtensionForecast, ...] = ()
    link: str | None = None
    measured: bool = True
    repeats: int = 1
    joules: float | None = None
    max_abs_error: float | None = None
    layers: tuple[Mapping[str, Any], ...] = ()
    machine: Mapping[str, Any] = field(default_factory=dict)
    commit: str | None = None
    command: str = ""
    when: str = ""

    @property
    def file_name(self) -> str:
        """Where `write` puts it."""
        return file_name(self.model, self.setting, self.batch, self.link)

    def write(self, folder: Path) -> Path:
        """Writes the record into `folder`."""
        fields = {**asdict(self), "setting": self.setting.name}
        document = {"format": FORMAT, "version": VERSION, **fields}
        path = folder / self.file_name
        write_whole(path, document)
        return path


def file_name(model: str, setting: Setting, batch: int, link: str | None) -> str:
    """What the record of a run is called."""
    behind = "" if link is None else "-" + link.replace(",", "-").replace("/", "")
    return f"{model}-{setting.name}-{batch}{behind}.json"


def write_whole(path: Path, document: Mapping[str, Any]) -> None:
    """Writes JSON of which a reader never finds half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_text(as_lines(document) + "\n")
    draft.replace(path)


def as_lines(value: Any, indent: str = "") -> str:
    """JSON of which each row of a table is a line: whatever holds no further lists or objects."""
    has_names = isinstance(value, Mapping)
    entries = value.values() if has_names else value if isinstance(value, list | tuple) else ()
    if not any(isinstance(entry, Mapping | list | tuple) for entry in entries):
        return json.dumps(value)
    names = [f"{json.dumps(name)}: " for name in value] if has_names else [""] * len(value)
    parts = (
        f"{name}{as_lines(entry, indent + ' ')}" for name, entry in zip(names, entries, strict=True)
    )
    inner = f",\n{indent} ".join(parts)
    opening, closing = "{}" if has_names else "[]"
    return f"{opening}\n{indent} {inner}\n{indent}{closing}"


def costed(costing: Costing, model: str, sha256: str, setting: Setting, batch: int) -> Record:
    """A record of what formulas say, without times."""
    return Record(
        model,
        sha256,
        setting,
        batch,
        costing.offline,
        costing.online,
        {party: PROCESS_MB + amount for party, amount in costing.memory_mb.items()},
        costing.material_bytes,
        extension=costing.extension,
        extensions=costing.extensions,
        measured=False,
    )


def read_record(path: Path) -> Record:
    """The record in a file. Raises `Misuse` if it is none, or of another version."""
    try:
        document = json.loads(path.read_text())
        header = document.pop("format"), document.pop("version")
        if header != (FORMAT, VERSION):
            raise Misuse(f"{path} is {header[0]} of version {header[1]}, not {FORMAT} {VERSION}")
        document["setting"] = setting_named(document["setting"])
        for phase in ("offline", "online"):
            document[phase] = Phase(**document[phase])
        document["layers"] = tuple(document["layers"])
        document["extensions"] = tuple(
            ExtensionForecast(**fields) for fields in document["extensions"]
        )
        return Record(**document)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Misuse(f"{path} is no record of a study: {error!r}") from error


def read_records(folder: Path) -> list[Record]:
    """All records in a folder, by file name. Raises what `read_record` does; `Misuse` if there is
    none."""
    if records := [read_record(path) for path in sorted(folder.glob("*-*-*.json"))]:
        return records
    raise Misuse(f"{folder} has no records: `privet study measure -o {folder}` makes some")


def file_sha256(path: Path) -> str:
    """What names a model's file. Raises `InvalidModel` if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InvalidModel(f"{path} cannot be read: {error.strerror}") from error
