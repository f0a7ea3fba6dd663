"""What runs for each item, and how it becomes a record."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import ModuleType

from privet.errors import Misuse
from privet.planner import machine
from privet.research.papers.paper import Grid, Item, Paper
from privet.research.papers.record import PaperRecord
from privet.research.papers.workplace import Workplace


def module_of(of: Paper) -> ModuleType:
    """A paper's module, loaded only now: each item has a function that is called like it there."""
    return import_module(f"{__package__}.{of.name.replace('-', '_')}")


def run(of: Paper, item: Item, at: Workplace) -> PaperRecord:
    """Runs an item. Raises `Misuse` if it cannot run here, with the reason."""
    if item.absent:
        raise Misuse(f"{of.name} {item.name} has no figures here: {item.absent}")
    began = time.monotonic()
    grid: Grid = getattr(module_of(of), item.name.replace("-", "_"))(at)
    return PaperRecord(
        grid,
        machine.describe(),
        datetime.now(UTC).isoformat(timespec="seconds"),
        machine.commit(Path(__file__).parent),
        time.monotonic() - began,
    )
