"""What one unit of each kind of work costs on this machine: found once, and kept.

A phase's seconds are a sum over its work (`privet.suites.costing`) with one price for each kind,
never negative, that fits measured runs of small models best (least squares of relative errors). So
a model that never ran can be costed by its layers.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.planner import machine
from privet.planner.cases import Case, find_models, plan_cases
from privet.planner.measure import Progress, measure
from privet.planner.record import Record, write_whole
from privet.planner.setting import SUITES, Setting, settings
from privet.suites import Phase

FORMAT = "privet-unit-costs"
VERSION = 3

VARIABLE = "PRIVET_UNIT_COSTS"
"""Environment variable that names the file with this machine's unit costs."""

ITERATIONS = 5000

Prices = dict[str, float]


@dataclass(frozen=True)
class UnitCosts:
    """Seconds for one unit of each kind of work, by kind of setting and phase: by the clock
    and of processors. `cpu` names the processor they hold for, `cores` how many it had."""

    seconds: Mapping[str, Prices]
    cpu_seconds: Mapping[str, Prices]
    cpu: str
    cores: int

    def knows(self, setting: Setting) -> bool:
        """Whether work of this setting can be costed."""
        return all(f"{setting.kind} {phase}" in self.seconds for phase in ("offline", "online"))

    def price(self, record: Record) -> Record:
        """A record by formulas, with the times that its work takes."""

        def priced(name: str, phase: Phase) -> Phase:
            # What one setting does ahead, another of its kind does online.
            other = "online" if name == "offline" else "offline"
            keys = [f"{record.setting.kind} {when}" for when in (other, name)]

            def total(prices: Mapping[str, Prices]) -> float:
                return _total(prices[keys[0]] | prices[keys[1]], phase.work)

            return replace(phase, seconds=total(self.seconds), cpu_seconds=total(self.cpu_seconds))

        return replace(
            record,
            offline=priced("offline", record.offline),
            online=priced("online", record.online),
            machine={"cpu": self.cpu, "cores": self.cores},
        )

    def write(self, path: Path) -> None:
        """Keeps them in a file."""
        document = {"format": FORMAT, "version": VERSION, **vars(self)}
        write_whole(path, document)


def _total(prices: Prices, work: Mapping[str, float]) -> float:
    return sum(prices.get(kind, 0.0) * count for kind, count in work.items())


def fit(records: Sequence[Record]) -> UnitCosts:
    """Unit costs from measured records of the loopback, of one machine."""
    seconds: dict[str, Prices] = {}
    processors: dict[str, Prices] = {}
    plain = [
        record
        for record in records
        if record.measured and record.link is None and record.online.work
    ]
    for kind in dict.fromkeys(record.setting.kind for record in plain):
        for name in ("offline", "online"):
            phases: list[Phase] = [
                getattr(record, name) for record in plain if record.setting.kind == kind
            ]
            key = f"{kind} {name}"
            seconds[key] = _prices(phases, [phase.seconds for phase in phases])
            processors[key] = _prices(
                phases, [phase.cpu_seconds or phase.seconds for phase in phases]
            )
    machine_facts = plain[0].machine if plain else machine.describe()
    return UnitCosts(seconds, processors, str(machine_facts["cpu"]), int(machine_facts["cores"]))


def _prices(phases: Sequence[Phase], times: Sequence[float]) -> Prices:
    kinds = sorted({kind for phase in phases for kind in phase.work})
    counts = np.array([[phase.work.get(kind, 0.0) for kind in kinds] for phase in phases])
    seconds = np.maximum(np.array(times), 1e-6)
    prices = non_negative_least_squares(counts / seconds[:, None], np.ones(len(times)))
    return dict(zip(kinds, prices.tolist(), strict=True))


def non_negative_least_squares(
    a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """The `x >= 0` that makes `|a x - b|` smallest, by coordinate descent; `a` is `[n, k]`."""
    lengths = np.linalg.norm(a, axis=0)
    lengths[lengths == 0] = 1.0
    scaled = a / lengths
    gram, goal = scaled.T @ scaled, scaled.T @ b
    x = np.zeros(a.shape[1])
    for _ in range(ITERATIONS):
        before = x.copy()
        for k in range(len(x)):
            if gram[k, k] > 0:
                x[k] = max(0.0, x[k] + (goal[k] - gram[k] @ x) / gram[k, k])
        if np.abs(x - before).max() < 1e-12:
            break
    return np.asarray(x / lengths)


def calibrate(progress: Progress | None = None) -> UnitCosts:
    """Runs the trials of every suite that this machine can run, and fits unit costs."""
    records: list[Record] = []
    with tempfile.TemporaryDirectory(prefix="privet-study-") as name:
        folder = Path(name)
        cases: list[Case] = []
        for trial in (trial for suite_type in SUITES for trial in suite_type.trials):
            files = find_models(trial.models, folder / "models")
            cases += plan_cases(files, settings(trial.settings), trial.batches)
        records, _ = measure(cases, folder, progress=progress)
    return fit(records)


def default_path() -> Path:
    """Where this machine's unit costs are kept."""
    override = os.environ.get(VARIABLE)
    if override:
        return Path(override)
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "privet" / "unit-costs.json"


def read(path: Path) -> UnitCosts | None:
    """Unit costs in a file; None if there are none, of another version or another processor."""
    try:
        document: dict[str, Any] = json.loads(path.read_text())
        header = document.pop("format"), document.pop("version")
        costs = UnitCosts(**document)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    machine_facts = machine.describe()
    fits = header == (FORMAT, VERSION) and (costs.cpu, costs.cores) == (
        machine_facts["cpu"],
        machine_facts["cores"],
    )
    return costs if fits else None


def load_or_measure(progress: Progress | None = None) -> UnitCosts:
    """This machine's unit costs: those that were kept, else found now and kept."""
    path = default_path()
    costs = read(path)
    if costs is None:
        costs = calibrate(progress)
        costs.write(path)
    return costs
