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
LARGEST = "bert-base"
"""It runs by one depth of comparisons here, and not with a dealer."""

SUBJECT = "resnet20"
"""The model of the figures that show one."""

BATCHES = {"bert-tiny": 8, "resnet20": 32, "resnet50": 2}
"""Batches that are run: each takes the memory of both parties at once here."""

PRICED = ("bert-tiny", "resnet20")
"""Models whose runs say what a unit of work costs."""

PAPERS_BATCH = 128
COSTED = ("resnet50", LARGEST)
"""Models whose batch of 128 no program can have."""

SWEEP = (1, 8, 32, PAPERS_BATCH)

READ_BYTES = 1e9
"""Bytes a second that keys are read with, in the paper's example."""


def _name(record: Record) -> str:
    return _scheme(record.setting.family)


def _scheme(family: str) -> str:
    """The paper's scheme that a family of settings is of, or else the family itself."""
    return tables.scheme(family) or f"`{family}`"


def _rows(
    subjects: Mapping[str, Sequence[Record]], value: Callable[[Prediction, bool], float]
) -> Grid:
    """By subject and network, each family's best setting online, and with both phases."""
    found: dict[str, dict[str, Cell]] = {}
    for title, records in subjects.items():
        for network in PRESETS.values() if records else ():
            cells = found.setdefault(f"{title}, {network.name}", {})
            for online, phase in ((True, "online"), (False, "both")):
                for it in tables.best_of_families(records, network, online=online):
                    cells[f"{_name(it.record)} {phase}"] = value(it, online)
    return _grid(found)


def _title(model: str) -> str:
    return tables.MODELS.get(model, model)


def _costed(at: Workplace, model: str, batch: int) -> list[Record]:
    if at.quick:
        known = at.records(["m1"], tables.runs("costed"))
        return at.costed("m1", tables.runs("costed"), batch, known)
    known = at.records(PRICED, tables.runs("every"))
    return at.costed(model, tables.runs("costed"), batch, known)


def _one_by_one(at: Workplace) -> dict[str, Sequence[Record]]:
    """Records of single samples by title; BERT-Base's costs stand beside its runs."""
    if at.quick:
        found = {"m1": at.records(["m1"], tables.runs("every"))}
    else:
        found = {_title(it): at.records([it], tables.runs("every")) for it in MODELS}
        found[_title(LARGEST)] = at.records([LARGEST], tables.runs("large"))
    return {**found, f"{_title(LARGEST)}, by its costs": _costed(at, LARGEST, 1)}


def _batched(at: Workplace) -> dict[str, Sequence[Record]]:
    """Records of batches by title: those that run here, and the paper's of 128 by their costs."""
    if at.quick:
        found = {"m1, batch 2": at.records(["m1"], tables.runs("costed"), [2])}
    else:
        found = {
            f"{_title(model)}, batch {batch}": at.records([model], tables.runs("costed"), [batch])
            for model, batch in BATCHES.items()
        }
    return found | _papers_batch(at)


def _papers_batch(at: Workplace) -> dict[str, Sequence[Record]]:
    return {
        f"{_title(it)}, batch {PAPERS_BATCH} by its costs": _costed(at, it, PAPERS_BATCH)
        for it in COSTED
    }


def table_4(at: Workplace) -> Grid:
    return _rows(_one_by_one(at), lambda it, online: it.online_latency if online else it.latency)


def table_5(at: Workplace) -> Grid:
    return _rows(_batched(at), lambda it, online: it.online_throughput if online else it.throughput)


def table_6(at: Workplace) -> Grid:
    found: dict[str, dict[str, Cell]] = {}
    for title, records in _one_by_one(at).items():
        name = title.partition(",")[0]
        cells = found.setdefault(name, {})
        for it in records:
            if it.setting.name not in tables.runs("one") or _name(it) in cells:
                continue
            cells[_name(it)] = max(it.peak_mb.values()) / 1e3
            if it.setting.name in tables.runs("keyed"):
                keys = max(it.material_bytes.values())
                here = predict(it, PRESETS["WAN_M"])
                cells["FSS, keys on disk"] = keys / 1e9
                seconds = keys / READ_BYTES
                cells["+ % online by reading keys"] = 100 * seconds / here.online_latency
                cells["+ % both"] = 100 * seconds / here.latency
    return _grid(found)


def figure_1(at: Workplace) -> Grid:
    model, batches = ("m1", [1, 2]) if at.quick else (SUBJECT, [1, 8, BATCHES[SUBJECT]])
    swept = {_title(model): at.records([model], tables.runs("one"), batches)}
    for it in COSTED:
        swept[f"{_title(it)} by its costs"] = [
            record for batch in SWEEP for record in _costed(at, it, batch)
        ]
    found: dict[str, dict[str, float]] = {}
    for title, records in swept.items():
        chosen = [it for it in records if it.setting.name in tables.runs("one")]
        names = {it.setting.name: _name(it) for it in chosen}
        for row in figures.batch_sweep(chosen, tables.subject(chosen[0])):
            phase = "online" if row["phase"] == "online" else "both"
            column = f"{names[row['setting']]} {phase}"
            found.setdefault(f"{title}, batch {row['batch']}", {})[column] = row["times"]
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


def _shown(at: Workplace, make: Callable[[Sequence[Record]], Grid]) -> Grid:
    """A figure of each of its models, in batches: rows of all of them."""
    subjects = {
        title: records
        for title, records in _batched(at).items()
        if at.quick or title.startswith((_title(SUBJECT), *map(_title, COSTED)))
    }
    found: dict[str, dict[str, Cell]] = {}
    for title, records in subjects.items():
        grid = make(records)
        for name, cells in grid.rows.items():
            found[f"{title}, {name}"] = dict(zip(grid.columns, cells, strict=True))
    return _grid(found)


def _shares(rows: Sequence[Mapping[str, Any]], parts: Sequence[str]) -> Grid:
    """Of what is spent for each family and network, the share in % of parts so named."""
    found: dict[str, dict[str, Cell]] = {}
    for network in PRESETS:
        for family in dict.fromkeys(row["family"] for row in rows):
            own = [it for it in rows if (it["network"], it["family"]) == (network, family)]
            whole = sum(it["value"] for it in own) or 1.0
            named = sum(it["value"] for it in own if it["part"].endswith(tuple(parts)))
            found.setdefault(network, {})[_scheme(family)] = 100 * named / whole
    return _grid(found)


def _sums(rows: Sequence[Mapping[str, Any]], scale: float = 1.0) -> Grid:
    """What is spent for each family and network, all parts together, times `scale`."""
    found: dict[str, dict[str, Cell]] = {}
    for row in rows:
        cells = found.setdefault(row["network"], {})
        name = _scheme(row["family"])
        before = cells.get(name) or 0.0
        cells[name] = float(before) + scale * row["value"]
    return _grid(found)


def figure_3(at: Workplace) -> Grid:
    return _shown(at, lambda it: _shares(figures.time_parts(it), ["waiting", "transfer"]))


def _prices() -> Prices:
    return read_prices("cpu", None)


def figure_4(at: Workplace) -> Grid:
    return _shown(at, lambda it: _sums(figures.cost_parts(it, _prices()), 1e6))


def figure_5(at: Workplace) -> Grid:
    return _shown(at, _energy)


def _energy(records: Sequence[Record]) -> Grid:
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
    return _shown(at, _speeds)


def _speeds(records: Sequence[Record]) -> Grid:
    found: dict[str, dict[str, Cell]] = {}
    for speed in figures.SPEEDS:
        row = found.setdefault(f"{speed} times as fast", {})
        for online in (True, False):
            for it in tables.best_of_families(
                records, PRESETS["WAN_M"], online=online, speed=speed
            ):
                phase = "online" if online else "both"
                row[f"{_name(it.record)} {phase}"] = tables.seconds_per_sample(it, online=online)
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
