"""Items of "Beyond Latency": records of runs here, on the paper's networks by formula."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from privet.planner.network import PRESETS
from privet.planner.predict import Prediction, predict
from privet.planner.prices import Prices, read_prices
from privet.planner.record import Record
from privet.research.papers.paper import Cell, Grid
from privet.research.papers.workplace import Workplace
from privet.research.report import figures, tables
from privet.research.report.standard import STUDY

MODELS = ("bert-tiny", "resnet20", "resnet50")
SUBJECT = "resnet20"
"""The model of the figures that show one."""

BATCH = 32
"""The largest batch that both parties' memory holds here."""

READ_BYTES = 1e9
"""Bytes a second that keys are read with, in the paper's example."""


def _name(record: Record) -> str:
    return _scheme(record.setting.family)


def _scheme(family: str) -> str:
    """The paper's scheme that a family of settings is of, or else the family itself."""
    return tables.scheme(family) or f"`{family}`"


def _rows(
    at: Workplace, batch: int, models: Sequence[str], value: Callable[[Prediction, bool], float]
) -> Grid:
    """By model and network, each family's best setting online, and with both phases."""
    found: dict[str, dict[str, Cell]] = {}
    for model in models:
        records = at.records([model], tables.runs("every"), [batch])
        for network in PRESETS.values() if records else ():
            cells = found.setdefault(f"{tables.MODELS.get(model, model)}, {network.name}", {})
            for online, phase in ((True, "online"), (False, "both")):
                for it in tables.best_of_families(records, network, online=online):
                    cells[f"{_name(it.record)} {phase}"] = value(it, online)
    return _grid(found)


def _models(at: Workplace) -> Sequence[str]:
    return ("m1",) if at.quick else MODELS


def table_4(at: Workplace) -> Grid:
    return _rows(at, 1, _models(at), lambda it, online: it.online_latency if online else it.latency)


def table_5(at: Workplace) -> Grid:
    models = ("m1",) if at.quick else ("resnet20",)
    return _rows(
        at,
        2 if at.quick else BATCH,
        models,
        lambda it, online: it.online_throughput if online else it.throughput,
    )


def table_6(at: Workplace) -> Grid:
    found: dict[str, dict[str, Cell]] = {}
    for model in _models(at):
        cells = found.setdefault(tables.MODELS.get(model, model), {})
        for it in at.records([model], tables.runs("one")):
            cells[_name(it)] = max(it.peak_mb.values()) / 1e3
        for it in at.records([model], tables.runs("keyed")):
            seconds = max(it.material_bytes.values()) / READ_BYTES
            here = predict(it, PRESETS["WAN_M"])
            cells["+ % online by reading keys"] = 100 * seconds / here.online_latency
            cells["+ % both"] = 100 * seconds / here.latency
    return _grid(found)


def figure_1(at: Workplace) -> Grid:
    model, batches = ("m1", [1, 2]) if at.quick else (SUBJECT, [1, 8, BATCH])
    records = at.records([model], tables.runs("one"), batches)
    found: dict[str, dict[str, float]] = {}
    for row in figures.batch_sweep(records, model):
        column = f"{row['setting']} {row['phase']}"
        found.setdefault(f"{model}, batch {row['batch']}", {})[column] = row["times"]
    return _grid(found)


def _grid(found: Mapping[str, Mapping[str, Cell]]) -> Grid:
    """Rows whose columns are those that any of them has."""
    columns = tuple(dict.fromkeys(name for row in found.values() for name in row))
    return Grid(columns, {name: [row.get(it) for it in columns] for name, row in found.items()})


def _single(at: Workplace) -> list[Record]:
    return at.records(["m1" if at.quick else SUBJECT], tables.runs("every"))


def figure_2(at: Workplace) -> Grid:
    slowest = figures.slowest_material(_single(at))
    if slowest is None:
        raise AssertionError("no setting with a dealer ran")
    latencies: dict[str, list[float]] = {}
    for row in figures.pools(slowest):
        latencies.setdefault(f"keys for {row['pool']}", []).append(row["seconds"])
    rows = {name: [max(it), statistics.fmean(it)] for name, it in latencies.items()}
    return Grid(("largest", "mean"), rows)


def _shares(rows: Sequence[Mapping[str, Any]], parts: Sequence[str]) -> Grid:
    """Of what is spent for each family and network, the share in % of parts so named."""
    found: dict[str, dict[str, Cell]] = {}
    for network in PRESETS:
        for family in dict.fromkeys(row["family"] for row in rows):
            own = [it for it in rows if (it["network"], it["family"]) == (network, family)]
            whole = sum(it["value"] for it in own) or 1.0
            named = sum(it["value"] for it in own if it["part"].endswith(tuple(parts)))
            found.setdefault(network, {})[family] = 100 * named / whole
    return _grid(found)


def _sums(rows: Sequence[Mapping[str, Any]], scale: float = 1.0) -> Grid:
    found: dict[str, dict[str, Cell]] = {}
    for row in rows:
        cells = found.setdefault(row["network"], {})
        before = cells.get(row["family"]) or 0.0
        cells[row["family"]] = float(before) + scale * row["value"]
    return _grid(found)


def figure_3(at: Workplace) -> Grid:
    return _shares(figures.time_parts(_single(at)), ["waiting", "transfer"])


def _prices() -> Prices:
    return read_prices("cpu", None)


def figure_4(at: Workplace) -> Grid:
    return _sums(figures.cost_parts(_single(at), _prices()), 1e6)


def figure_5(at: Workplace) -> Grid:
    records = _single(at)
    rows = figures.energy_parts(records)
    parts = {
        "J": _sums(rows),
        "idle %": _shares(rows, ["idle"]),
        "network's J": _sums(figures.carried_energy(records)),
    }
    columns = [f"{it} {unit}" for unit, grid in parts.items() for it in grid.columns]
    names = parts["J"].rows
    cells = {name: [it for grid in parts.values() for it in grid.rows[name]] for name in names}
    return Grid(tuple(columns), cells)


def figure_6(at: Workplace) -> Grid:
    models = [*STUDY.contexts][: 2 if at.quick else None]
    found: dict[str, dict[str, Cell]] = {}
    for row in figures.contexts(at.records(models, tables.runs("one"))):
        name = _scheme(row["family"])
        phase = "online" if row["phase"] == "online" else "both"
        found.setdefault(f"{row['tokens']} tokens", {})[f"{name} {phase}"] = row["times"]
    return _grid(found)


def figure_7(at: Workplace) -> Grid:
    records, found = _single(at), {}
    for speed in figures.SPEEDS:
        row: dict[str, Cell] = {}
        for online in (True, False):
            for it in tables.best_of_families(
                records, PRESETS["WAN_M"], online=online, speed=speed
            ):
                phase = "online" if online else "both"
                row[f"{_name(it.record)} {phase}"] = tables.seconds_per_sample(it, online=online)
        found[f"{speed} times as fast"] = row
    return _grid(found)


def figure_8(at: Workplace) -> Grid:
    cells = figures.regimes(_single(at))
    found: dict[str, dict[str, Cell]] = {}
    for phase in dict.fromkeys(row["phase"] for row in cells):
        won = Counter(row["family"] for row in cells if row["phase"] == phase)
        found[f"networks won, {phase}"] = {name: float(count) for name, count in won.items()}
    return _grid(found)


RUNNERS = {
    "table-4": table_4,
    "table-5": table_5,
    "table-6": table_6,
    "figure-1": figure_1,
    "figure-2": figure_2,
    "figure-3": figure_3,
    "figure-4": figure_4,
    "figure-5": figure_5,
    "figure-6": figure_6,
    "figure-7": figure_7,
    "figure-8": figure_8,
}
