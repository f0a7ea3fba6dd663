"""What jobs need: estimates per model, suite, batch and phase, corrected by measured runs.

This is the paper's profiling table. Time follows an exponential average of what was measured;
memory follows its maximum, which decays slowly, since a job that got too little dies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from privet.errors import Misuse
from privet.scheduler.submission import Phase

GIB = 2**30


@dataclass(frozen=True)
class Scaling:
    """How time shrinks with cores: the universal scalability law (Gunther, 1993).

    On `n` cores a job is `n / (1 + serial * (n - 1) + crosstalk * n * (n - 1))` times as fast as on
    one. Both parts lie in [0, 1]; without `crosstalk` it is Amdahl's law, with it too many cores
    make a job slower again.
    """

    serial: float = 0.0
    crosstalk: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.serial <= 1 and 0 <= self.crosstalk <= 1):
            raise Misuse("both parts of a scaling law lie in [0, 1]")

    def speedup(self, cores: int) -> float:
        """How many times as fast as on one core."""
        return cores / (1 + (cores - 1) * (self.serial + self.crosstalk * cores))

    def moved(self, seconds: float, cores: int, to: int) -> float:
        """Time on `to` cores of a job that takes `seconds` on `cores`."""
        return seconds if cores == to else seconds * self.speedup(cores) / self.speedup(to)


@dataclass(frozen=True)
class Demand:
    """What one job takes: `cores`, `memory` in bytes, and `seconds` on that many cores.

    `material` is the size in bytes of the entry that a T_pre leaves (0 for a T_on); `scaling` how
    its time shrinks with cores, by default as the table's.
    """

    cores: int
    memory: int
    seconds: float
    material: int = 0
    scaling: Scaling | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.cores < 1 or self.memory < 0 or self.seconds < 0 or self.material < 0:
            raise Misuse(f"no job takes {self}")

    def on(self, cores: int) -> Demand:
        """The same job on that many cores."""
        if cores == self.cores:
            return self
        seconds = (self.scaling or Scaling()).moved(self.seconds, self.cores, cores)
        # Each decision asks this of many jobs, and `replace` takes several times as long.
        return Demand(cores, self.memory, seconds, self.material, self.scaling)


@dataclass(frozen=True)
class Usage:
    """What one job took: `seconds`, peak `memory` in bytes, and the bytes of its `material`.

    `cores` are those that it ran on; 0 where they were the profile's own.
    """

    seconds: float
    memory: int = 0
    material: int = 0
    cores: int = 0


class Key(NamedTuple):
    """Which job: a model under a suite, `batch` samples at once, in a phase."""

    model: str
    suite: str
    batch: int
    phase: Phase


DEFAULT = {Phase.PRE: Demand(1, GIB, 10.0), Phase.ON: Demand(1, GIB, 5.0)}


@dataclass
class Profiles:
    """The profile table. Unknown batches are scaled from the nearest known one of the same model
    (time, memory and material in proportion to the samples); unknown models get `DEFAULT`.

    `weight` is the share of a new measurement in the average of times, `decay` the factor by which
    a memory maximum shrinks towards a lower measurement, `headroom` the factor between the memory
    expected and the memory given to a job.
    """

    weight: float = 0.2
    decay: float = 0.9
    headroom: float = 1.0
    scaling: Scaling = Scaling()

    def __post_init__(self) -> None:
        if not (0 < self.weight <= 1 and 0 <= self.decay <= 1 and self.headroom >= 1):
            raise Misuse("weight lies in (0, 1], decay in [0, 1], and headroom is at least 1")
        self._table: dict[Key, Demand] = {}
        self._estimates: dict[Key, Demand] = {}
        self._batches: dict[tuple[str, str, Phase], list[int]] = {}
        self._at_once: dict[tuple[str, str], int] = {}

    def set(self, key: Key, demand: Demand) -> None:
        """Sets what `key` takes, as if it had been measured often."""
        if key not in self._table:
            self._batches.setdefault((key.model, key.suite, key.phase), []).append(key.batch)
        self._table[key] = self._scaling(demand)
        self._estimates.pop(key, None)

    def set_at_once(self, model: str, suite: str, batch: int) -> None:
        """Sets how many samples the program of `model` takes at once (1 if never set)."""
        if batch < 1:
            raise Misuse(f"a program takes at least one sample at once, not {batch}")
        self._at_once[model, suite] = batch

    def pairs(self, model: str, suite: str, batch: int) -> int:
        """How many job pairs `split` makes of `batch` samples."""
        return -(-batch // self._at_once.get((model, suite), 1))

    def split(self, model: str, suite: str, batch: int) -> list[int]:
        """The batches of the job pairs for `batch` samples: as large as the program takes."""
        at_once = self._at_once.get((model, suite), 1)
        whole, remainder = divmod(batch, at_once)
        return [at_once] * whole + ([remainder] if remainder else [])

    def knows(self, key: Key) -> bool:
        """Whether exactly this job is in the table."""
        return key in self._table

    def expected(self, key: Key) -> Demand:
        """What the job is expected to take, without headroom."""
        demand = self._table.get(key)
        if demand is not None:
            return demand
        batches = self._batches.get((key.model, key.suite, key.phase))
        if not batches:
            return _scaled(self._scaling(DEFAULT[key.phase]), key.batch)
        nearest = min(batches, key=lambda batch: (abs(batch - key.batch), batch))
        return _scaled(self._table[key._replace(batch=nearest)], key.batch / nearest)

    def estimate(self, key: Key) -> Demand:
        """What to give to the job: as `expected`, the memory times the headroom."""
        estimate = self._estimates.get(key)
        if estimate is None:
            demand = self.expected(key)
            memory = int(demand.memory * self.headroom)
            estimate = Demand(demand.cores, memory, demand.seconds, demand.material, demand.scaling)
            if key in self._table:
                self._estimates[key] = estimate
        return estimate

    def observe(self, key: Key, usage: Usage) -> None:
        """Feeds back a run that finished; a time on other cores is moved to the profile's."""
        old = self.expected(key)
        observation = Demand(
            usage.cores or old.cores, old.memory, usage.seconds, old.material, old.scaling
        )
        duration = observation.on(old.cores).seconds
        if not self.knows(key):
            memory = usage.memory or old.memory
            self.set(key, replace(old, memory=memory, seconds=duration, material=usage.material))
            return
        seconds = old.seconds + self.weight * (duration - old.seconds)
        memory = old.memory
        if usage.memory:
            sunk = self.decay * old.memory + (1 - self.decay) * usage.memory
            memory = max(usage.memory, int(sunk))
        material = max(usage.material, old.material)
        self._table[key] = Demand(old.cores, memory, seconds, material, old.scaling)
        self._estimates.pop(key, None)

    def _scaling(self, demand: Demand) -> Demand:
        return demand if demand.scaling is not None else replace(demand, scaling=self.scaling)

    def rows(self) -> list[dict[str, Any]]:
        """The table as plain rows (`seconds`, bytes of `memory` and `material`), for storing."""
        order = sorted(self._table, key=lambda key: (key.model, key.suite, key.batch, key.phase))
        return [self._row(key, self._table[key]) for key in order]

    def _row(self, key: Key, demand: Demand) -> dict[str, Any]:
        row = {**key._asdict(), "phase": str(key.phase), **asdict(demand)}
        scaling = row.pop("scaling")
        return row if demand.scaling == self.scaling else {**row, **scaling}

    def load(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Sets what `rows` say, as `rows()` writes them. A row with `serial` or `crosstalk` has a
        scaling law of its own."""
        for row in rows:
            key = Key(row["model"], row["suite"], int(row["batch"]), Phase(row["phase"]))
            scaling = {part: float(row[part]) for part in ("serial", "crosstalk") if part in row}
            demand = Demand(
                int(row["cores"]),
                int(row["memory"]),
                float(row["seconds"]),
                int(row.get("material", 0)),
                Scaling(**scaling) if scaling else None,
            )
            self.set(key, demand)


def _scaled(demand: Demand, factor: float) -> Demand:
    return replace(
        demand,
        memory=int(demand.memory * factor),
        seconds=demand.seconds * factor,
        material=int(demand.material * factor),
    )
