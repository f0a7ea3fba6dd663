"""What runs for each item, and how it becomes a record."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from privet.errors import Misuse
from privet.planner import machine
from privet.research.papers.paper import Grid, Item, Paper
from privet.research.papers.record import Record
from privet.research.papers.workplace import Workplace

Runner = Callable[[Workplace], Grid]


def runners(of: Paper) -> Mapping[str, Runner]:
    """The functions of a paper's items by name; its module is loaded only now."""
    module = import_module(f"{__package__}.{of.name.replace('-', '_')}")
    found: Mapping[str, Runner] = module.RUNNERS
    return found


def run(of: Paper, item: Item, at: Workplace) -> Record:
    """Runs an item.

    # Errors
    `Misuse` if it cannot run here, with the reason.
    """
    if item.absent:
        raise Misuse(f"{of.name} {item.name} has no figures here: {item.absent}")
    began = time.monotonic()
    grid = runners(of)[item.name](at)
    return Record(
        grid,
        machine.describe(),
        datetime.now(UTC).isoformat(timespec="seconds"),
        machine.commit(Path(__file__).parent),
        time.monotonic() - began,
    )
