"""Records of runs of items: one JSON file for each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privet.errors import Misuse
from privet.planner.record import write_whole
from privet.research.papers.paper import Grid, Item, Paper

FORMAT = "privet-paper-record"
VERSION = 1


@dataclass(frozen=True)
class PaperRecord:
    """What a run of an item found, on which machine, when, from which commit, in how many
    seconds."""

    grid: Grid
    machine: Mapping[str, Any]
    when: str
    commit: str | None
    seconds: float

    def write(self, folder: Path, of: Paper, item: Item) -> Path:
        """Writes the record to its place in `folder`; a reader never finds half of it."""
        path = place(folder, of, item)
        document = {
            "format": FORMAT,
            "version": VERSION,
            "machine": dict(self.machine),
            "when": self.when,
            "commit": self.commit,
            "seconds": round(self.seconds, 1),
            "columns": list(self.grid.columns),
            "rows": {name: list(row) for name, row in self.grid.rows.items()},
        }
        write_whole(path, document)
        return path


def place(folder: Path, of: Paper, item: Item) -> Path:
    """Where the record of an item lies."""
    return folder / of.name / f"{item.name}.json"


def read(folder: Path, of: Paper, item: Item) -> PaperRecord | None:
    """The record of an item; None if it was not run. Raises `Misuse` if the file is no record of
    this version."""
    path = place(folder, of, item)
    if not path.exists():
        return None
    try:
        document = json.loads(path.read_text())
        if (document["format"], document["version"]) != (FORMAT, VERSION):
            raise Misuse(f"{path} is no {FORMAT} of version {VERSION}")
        rows = {name: tuple(row) for name, row in document["rows"].items()}
        return PaperRecord(
            Grid(tuple(document["columns"]), rows),
            document["machine"],
            document["when"],
            document["commit"],
            document["seconds"],
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Misuse(f"{path} is no record of an item: {error!r}") from error
