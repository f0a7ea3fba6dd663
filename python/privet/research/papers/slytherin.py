"""Items of slytHErin: suite `ckks`, one server and cohorts."""

from __future__ import annotations

from collections.abc import Sequence

from privet.planner.setting import cohort
from privet.research.papers.paper import Cell, Grid
from privet.research.papers.workplace import Workplace
from privet.runtime import Run
from privet.suites import Ckks

BATCH = 83
"""The paper's best batch of NN5."""

LARGE = 4096
MEMBERS = (3, 5)
"""Cohorts whose members fit beside each other into the memory of one machine."""

LAYERS = 51


def _nn5(at: Workplace, batch: int) -> Run:
    return at.run("nn5", Ckks(), batch)


def table_1(at: Workplace) -> Grid:
    one, most = (_nn5(at, it).online.seconds for it in (1, 2 if at.quick else BATCH))
    batches = -(-LARGE // BATCH)
    return Grid(("batch 1", "batch 83", "batch 4096"), {"Privet": [one, most, batches * most]})


def figure_4(at: Workplace) -> Grid:
    rows: dict[str, Sequence[Cell]] = {}
    for batch in (1, 2) if at.quick else (1, 8, 32, BATCH, 128):
        seconds = _nn5(at, batch).online.seconds
        rows[f"batch {batch}"] = [seconds, 1000 * seconds / batch]
    return Grid(("seconds", "ms a sample"), rows)


def table_2(at: Workplace) -> Grid:
    rows: dict[str, Sequence[Cell]] = {}
    batch = 292
    for members in MEMBERS:
        run = at.run("nn20", cohort(members).config, batch)
        rows[f"{members} parties"] = [run.online.seconds, batch / run.online.seconds]
    return Grid(("seconds", "samples/s"), rows)


def table_3(at: Workplace) -> Grid:
    suites = {
        "1: encrypted data": (Ckks(), 585),
        "2: encrypted model": (Ckks(scenario="encrypted-model"), 585),
        "3: both, 3 parties": (cohort(3).config, 292),
    }
    rows: dict[str, Sequence[Cell]] = {}
    for name, (suite, batch) in suites.items():
        seconds = at.run("nn50", suite, batch).online.seconds
        rows[name] = [seconds, seconds / batch, batch / seconds, seconds / LAYERS]
    return Grid(("seconds", "s a sample", "samples/s", "s a layer"), rows)


RUNNERS = {"table-1": table_1, "figure-4": figure_4, "table-2": table_2, "table-3": table_3}
