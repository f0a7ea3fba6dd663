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
"""The model of the figures that show one that runs."""

BATCH = 32
"""The largest batch that both parties' memory holds here."""

LARGE = ("resnet50", "bert-base")
"""Models that are costed: no program may have the values of their batch of 128, and a dealer's
correlations for BERT-Base take more memory than a small machine has."""

PRICED = ("bert-tiny", "resnet20")
"""Models whose runs say what a unit of work costs."""

PAPERS_BATCH = 128
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
    rows: dict[str, dict[str, Cell]] = {}
    for title, records in subjects.items():
        for network in PRESETS.values() if records else ():
            cells = rows.setdefault(f"{title}, {network.name}", {})
            for online, phase in ((True, "online"), (False, "both")):
                for cost in tables.best_of_families(records, network, online=online):
                    cells[f"{_name(cost.record)} {phase}"] = value(cost, online)
    return _grid(rows)


def _title(model: str) -> str:
    return tables.MODELS.get(model, model)


def _costed(at: Workplace, model: str, batch: int) -> list[Record]:
    if at.quick:
        records = at.records(["m1"], tables.runs("costed"))
        return at.costed("m1", tables.runs("costed"), batch, records)
    records = at.records(PRICED, tables.runs("every"))
    return at.costed(model, tables.runs("costed"), batch, records)


def _models(at: Workplace) -> Sequence[str]:
    return ("m1",) if at.quick else MODELS


def _latency(cost: Prediction, online: bool) -> float:
    return cost.online_latency if online else cost.latency


def _throughput(cost: Prediction, online: bool) -> float:
    return cost.online_throughput if online else cost.throughput


def table_4(at: Workplace) -> Grid:
    subjects = {_title(model): at.records([model], tables.runs("every")) for model in _models(at)}
    return _rows(subjects, _latency)


def table_4_large(at: Workplace) -> Grid:
    return _rows({_title(LARGE[-1]): _costed(at, LARGE[-1], 1)}, _latency)


def network(at: Workplace) -> Grid:
    """What waiting and transfer take for what does not run: exact, and needs no machine's speed."""
    names = tables.runs("costed")
    cases = [(LARGE[-1], 1), *((model, PAPERS_BATCH) for model in LARGE)]
    subjects = {
        f"{_title(model)}, batch {batch}": at.costed("m1" if at.quick else model, names, batch)
        for model, batch in cases
    }

    def seconds(cost: Prediction, online: bool) -> float:
        phases = (cost.online,) if online else (cost.offline, cost.online)
        return sum(phase.waiting + phase.transfer for phase in phases) / cost.batch

    return _rows(subjects, seconds)


def table_5(at: Workplace) -> Grid:
    model, batch = ("m1", 2) if at.quick else (SUBJECT, BATCH)
    return _rows({_title(model): at.records([model], tables.runs("every"), [batch])}, _throughput)


def table_5_large(at: Workplace) -> Grid:
    return _rows({_title(model): _costed(at, model, PAPERS_BATCH) for model in LARGE}, _throughput)


def table_6(at: Workplace) -> Grid:
    return _memory({model: at.records([model], tables.runs("one")) for model in _models(at)})


def table_6_large(at: Workplace) -> Grid:
    return _memory({model: _costed(at, model, 1) for model in LARGE[-1:]})


def _memory(subjects: Mapping[str, Sequence[Record]]) -> Grid:
    rows: dict[str, dict[str, Cell]] = {}
    for model, records in subjects.items():
        cells = rows.setdefault(_title(model), {})
        for record in records:
            cells[_name(record)] = max(record.peak_mb.values()) / 1e3
            if record.setting.name in tables.runs("keyed"):
                keys = max(record.material_bytes.values())
                prediction = predict(record, PRESETS["WAN_M"])
                seconds = keys / READ_BYTES
                cells["FSS, keys on disk"] = keys / 1e9
                cells["+ % online by reading keys"] = 100 * seconds / prediction.online_latency
                cells["+ % both"] = 100 * seconds / prediction.latency
    return _grid(rows)


def figure_1(at: Workplace) -> Grid:
    model, batches = ("m1", [1, 2]) if at.quick else (SUBJECT, [1, 8, BATCH])
    return _sweep({_title(model): at.records([model], tables.runs("one"), batches)})


def figure_1_large(at: Workplace) -> Grid:
    return _sweep(
        {
            _title(model): [cost for batch in SWEEP for cost in _costed(at, model, batch)]
            for model in LARGE
        }
    )


def _sweep(swept: Mapping[str, Sequence[Record]]) -> Grid:
    """By title and batch, how many times the throughput of batch 1."""
    rows: dict[str, dict[str, Cell]] = {}
    for title, records in swept.items():
        names = {record.setting.name: _name(record) for record in records}
        for row in figures.batch_sweep(records, tables.subject(records[0])):
            phase = "online" if row["phase"] == "online" else "both"
            cells = rows.setdefault(f"{title}, batch {row['batch']}", {})
            cells[f"{names[row['setting']]} {phase}"] = row["times"]
    return _grid(rows)


def _grid(rows: Mapping[str, Mapping[str, Cell]]) -> Grid:
    """Rows whose columns are those that any of them has."""
    columns = tuple(dict.fromkeys(name for row in rows.values() for name in row))
    return Grid(
        columns, {name: [row.get(column) for column in columns] for name, row in rows.items()}
    )


def _single(at: Workplace) -> list[Record]:
    return at.records(["m1" if at.quick else SUBJECT], tables.runs("every"))


def figure_2(at: Workplace) -> Grid:
    slowest = figures.slowest_material(_single(at))
    if slowest is None:
        raise AssertionError("no setting with a dealer ran")
    latencies: dict[str, list[float]] = {}
    for row in figures.pools(slowest):
        latencies.setdefault(f"keys for {row['pool']}", []).append(row["seconds"])
    rows = {name: [max(values), statistics.fmean(values)] for name, values in latencies.items()}
    return Grid(("largest", "mean"), rows)


def _batch_rows(at: Workplace, make: Callable[[Sequence[Record]], Grid]) -> Grid:
    """Rows of a figure: of one sample of ResNet-20 as it runs, and of batches by their costs."""
    subjects = {f"{_title(SUBJECT)}, batch 1": _single(at)} | {
        f"{_title(model)}, batch {PAPERS_BATCH} by its costs": _costed(at, model, PAPERS_BATCH)
        for model in LARGE
    }
    rows: dict[str, dict[str, Cell]] = {}
    for title, records in subjects.items():
        grid = make(records)
        for name, cells in grid.rows.items():
            rows[f"{title}, {name}"] = dict(zip(grid.columns, cells, strict=True))
    return _grid(rows)


def _shares(rows: Sequence[Mapping[str, Any]], parts: Sequence[str]) -> Grid:
    """Of what is spent for each family and network, the share in % of parts so named."""
    by_network: dict[str, dict[str, Cell]] = {}
    for network in PRESETS:
        for family in dict.fromkeys(row["family"] for row in rows):
            family_rows = [
                row for row in rows if (row["network"], row["family"]) == (network, family)
            ]
            whole = sum(row["value"] for row in family_rows) or 1.0
            subtotal = sum(
                row["value"] for row in family_rows if row["part"].endswith(tuple(parts))
            )
            by_network.setdefault(network, {})[_scheme(family)] = 100 * subtotal / whole
    return _grid(by_network)


def _sums(rows: Sequence[Mapping[str, Any]], scale: float = 1.0) -> Grid:
    """What is spent for each family and network, all parts together, times `scale`."""
    by_network: dict[str, dict[str, Cell]] = {}
    for row in rows:
        cells = by_network.setdefault(row["network"], {})
        name = _scheme(row["family"])
        before = cells.get(name) or 0.0
        cells[name] = float(before) + scale * row["value"]
    return _grid(by_network)


def figure_3(at: Workplace) -> Grid:
    return _batch_rows(
        at, lambda costs: _shares(figures.time_parts(costs), ["waiting", "transfer"])
    )


def _prices() -> Prices:
    return read_prices("cpu", None)


def figure_4(at: Workplace) -> Grid:
    return _batch_rows(at, lambda costs: _sums(figures.cost_parts(costs, _prices()), 1e6))


def figure_5(at: Workplace) -> Grid:
    return _batch_rows(at, _energy)


def _energy(records: Sequence[Record]) -> Grid:
    rows = figures.energy_parts(records)
    parts = {
        "J": _sums(rows),
        "idle %": _shares(rows, ["idle"]),
        "network's J": _sums(figures.carried_energy(records)),
    }
    columns = [f"{column} {unit}" for unit, grid in parts.items() for column in grid.columns]
    names = parts["J"].rows
    cells = {name: [cell for grid in parts.values() for cell in grid.rows[name]] for name in names}
    return Grid(tuple(columns), cells)


def figure_6(at: Workplace) -> Grid:
    models = [*STUDY.contexts][: 2 if at.quick else None]
    single = at.records(models, tables.runs("one"))
    known_records = at.records(models if at.quick else PRICED, tables.runs("every"))
    wide = [
        cost
        for model in models
        for cost in at.costed(model, tables.runs("one"), PAPERS_BATCH, known_records)
    ]
    rows: dict[str, dict[str, Cell]] = {}
    for title, records, batch in (
        ("batch 1", single, 1),
        (f"batch {PAPERS_BATCH} by its costs", wide, PAPERS_BATCH),
    ):
        for row in figures.contexts(records, batch):
            phase = "online" if row["phase"] == "online" else "both"
            cells = rows.setdefault(f"{title}, {row['tokens']} tokens", {})
            cells[f"{_scheme(row['family'])} {phase}"] = row["times"]
    return _grid(rows)


def figure_7(at: Workplace) -> Grid:
    return _batch_rows(at, _speeds)


def _speeds(records: Sequence[Record]) -> Grid:
    rows: dict[str, dict[str, Cell]] = {}
    for speed in figures.SPEEDS:
        row = rows.setdefault(f"{speed} times as fast", {})
        for online in (True, False):
            for run in tables.best_of_families(
                records, PRESETS["WAN_M"], online=online, speed=speed
            ):
                phase = "online" if online else "both"
                row[f"{_name(run.record)} {phase}"] = tables.seconds_per_sample(run, online=online)
    return _grid(rows)


def figure_8(at: Workplace) -> Grid:
    cells = figures.regimes(_single(at))
    rows: dict[str, dict[str, Cell]] = {}
    for phase in dict.fromkeys(row["phase"] for row in cells):
        wins = Counter(row["family"] for row in cells if row["phase"] == phase)
        rows[f"networks won, {phase}"] = {name: float(count) for name, count in wins.items()}
    return _grid(rows)
