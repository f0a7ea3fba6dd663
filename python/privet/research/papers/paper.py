"""Papers as data: their tables and figures, with the numbers that they print."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from privet.errors import Misuse

Cell = float | str | None
"""A figure, words in place of one, or nothing."""

NAMES = ("seconnds", "swiftsnni", "ppstream", "beyond-latency", "slytherin")


@dataclass(frozen=True)
class Grid:
    """Cells by row; every row has one for each column."""

    columns: tuple[str, ...]
    rows: Mapping[str, Sequence[Cell]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, row in self.rows.items():
            if len(row) != len(self.columns):
                raise ValueError(f"row {name!r} has {len(row)} cells, not {len(self.columns)}")

    def cell(self, row: str, column: str) -> Cell:
        """One cell; None where there is no such row."""
        cells = self.rows.get(row)
        return None if cells is None else cells[self.columns.index(column)]


@dataclass(frozen=True)
class Item:
    """A table, a figure or a claim: its name, its `place` in the paper, and what is printed there.

    `how` its figures here come about; `minutes` they take on two cores. `remark` says where and why
    they differ, `absent` why there are none.
    """

    name: str
    place: str
    title: str
    printed: Grid
    how: str
    minutes: float
    remark: str
    absent: str


@dataclass(frozen=True)
class Paper:
    """A paper; `setting` is what its figures were measured on, `here` what stands for it here."""

    name: str
    title: str
    authors: str
    setting: str
    here: str
    items: tuple[Item, ...]

    def item(self, name: str) -> Item:
        """The item of a name. Raises `Misuse` if the paper has none."""
        for item in self.items:
            if item.name == name:
                return item
        names = ", ".join(entry.name for entry in self.items)
        raise Misuse(f"{self.name} has no item {name!r}; it has {names}")


@cache
def paper(name: str) -> Paper:
    """The paper of a name. Raises `Misuse` if there is none."""
    if name not in NAMES:
        raise Misuse(f"there is no paper {name!r}; there are {', '.join(NAMES)}")
    text = files(__package__).joinpath(f"data/{name}.toml").read_text()
    document = tomllib.loads(text)
    words = {
        key: " ".join(document[key].split()) for key in ("title", "authors", "setting", "here")
    }
    return Paper(name, **words, items=tuple(_item(fields) for fields in document["item"]))


def _item(fields: dict[str, Any]) -> Item:
    rows = {
        name: tuple(None if cell == "" else cell for cell in row)
        for name, row in fields.get("rows", {}).items()
    }
    return Item(
        fields["id"],
        fields["place"],
        fields["title"],
        Grid(tuple(fields["columns"]), rows),
        fields.get("how", "measured"),
        fields.get("minutes", 0.1),
        " ".join(fields.get("remark", "").split()),
        " ".join(fields.get("absent", "").split()),
    )
