"""A paper's page: each of its tables and figures as printed, beside what ran here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from privet.research.papers.paper import Cell, Grid, Item, Paper
from privet.research.papers.record import PaperRecord, read


def page(of: Paper, folder: Path) -> str:
    """All of a paper in Markdown, from the records in a folder."""
    parts = [
        f"# {of.title}\n",
        f"Made by `privet papers report`. {of.authors}: {of.setting}\n",
        f"Here: {of.here}\n",
    ]
    return "\n".join([*parts, *(section(of, item, read(folder, of, item)) for item in of.items)])


def section(of: Paper, item: Item, record: PaperRecord | None) -> str:
    """A table or figure of a paper: what it prints, what ran here, and where they differ."""
    lines = [f"## {item.place}: {item.title}\n"]
    if item.printed.rows:
        lines.append(_table("the paper", item.printed))
    if item.absent:
        lines.append(f"Not here: {item.absent}\n")
    elif record is None:
        command = f"privet papers run {of.name} {item.name}"
        lines.append(f"Not run for this page: `{command}` takes {_minutes(item.minutes)}.\n")
    else:
        lines.append(_table(f"here ({item.how})", record.grid))
        lines.append(f"{_origin(record)}\n")
    if item.remark:
        lines.append(f"{item.remark}\n")
    return "\n".join(lines)


def _origin(record: PaperRecord) -> str:
    machine = record.machine
    commit = "" if record.commit is None else f", commit {record.commit[:10]}"
    return f"*{machine['cores']} cores of {machine['cpu']}, {record.when[:10]}{commit}.*"


def _table(head: str, grid: Grid) -> str:
    rows = [(name, *(_text(cell) for cell in row)) for name, row in grid.rows.items()]
    return markdown((head, *grid.columns), rows)


def _text(cell: Cell) -> str:
    """Three digits, as far as a figure has them."""
    if cell is None or isinstance(cell, str):
        return cell or ""
    if abs(cell) >= 1000:
        return f"{cell:,.0f}"
    return f"{cell:.3g}"


def _minutes(count: float) -> str:
    return "less than a minute" if count < 1 else f"about {count:.0f} min"


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is words."""
    lines = [heads, ["---"] + ["---:"] * (len(heads) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
