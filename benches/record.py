"""A run of the benchmarks as JSON, and the medians and ratios that follow from it."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

from privet.planner.record import write_whole

# How far a result may be from plaintext, as a share of the largest output where that is above one:
# the errors of fixed point stay below it in every task, and any slip lies above.
TOLERANCE = 0.05


@dataclass(frozen=True)
class Sample:
    """One private run of a task between two processes, or why there is none (`failure`).

    `bytes_sent` counts both parties, `peak_rss_mb` the larger process. `rounds` is None where a
    contender does not count them, and `offline_seconds` and `online_seconds` where it does not
    tell the phases apart. `load_seconds` is what a server does once for all clients, not part of
    `seconds`; a contender without it does all work in every run. `again_seconds` and
    `again_bytes_sent` are a second run's in the same processes, which have their keys and base OTs
    by then; the first figures include those.
    `dealer_seconds` and `dealt_bytes` (to both parties) are a dealer's part, which lies within
    `offline_seconds`.
    `largest_output` is the plaintext's, which errors are held against.
    `others` is the share of the machine that went to other people's processes, 0 to 1.
    """

    task: str
    contender: str
    repetition: int
    seconds: float | None = None
    offline_seconds: float | None = None
    online_seconds: float | None = None
    bytes_sent: int | None = None
    load_seconds: float | None = None
    again_seconds: float | None = None
    again_bytes_sent: int | None = None
    dealer_seconds: float | None = None
    dealt_bytes: int | None = None
    rounds: int | None = None
    peak_rss_mb: float | None = None
    max_abs_error: float | None = None
    largest_output: float | None = None
    others: float | None = None
    failure: str | None = None

    def checked(self) -> Sample:
        """The same, or a failure if the result is too far from plaintext."""
        tolerance = TOLERANCE * max(1.0, self.largest_output or 0.0)
        if self.max_abs_error is None or self.max_abs_error <= tolerance:
            return self
        return replace(self, failure=f"the result is wrong by {self.max_abs_error:.3g}")


FORMAT = "privet-benchmark"
VERSION = 1
FOLDER = Path(__file__).resolve().parent / "records"


@dataclass(frozen=True)
class Record:
    """Where, when and with what a run was made (`about`), and every repetition."""

    about: dict[str, Any]
    samples: tuple[Sample, ...]

    def write(self) -> Path:
        """Writes `benches/records/DATE-COMMIT.json` and returns its path."""
        path = FOLDER / f"{self.about['date']}-{self.about['commit']}.json"
        samples = [
            {name: value for name, value in asdict(sample).items() if value is not None}
            for sample in self.samples
        ]
        head = {"format": FORMAT, "version": VERSION, **self.about}
        write_whole(path, {**head, "samples": samples})
        return path

    @classmethod
    def read(cls, path: Path) -> Record:
        """Reads what `write` wrote.

        # Errors
        `ValueError` if the file is no record of this version.
        """
        head = json.loads(path.read_text())
        if (head.pop("format", None), head.pop("version", None)) != (FORMAT, VERSION):
            raise ValueError(f"{path} is no record of version {VERSION}")
        samples = tuple(Sample(**sample) for sample in head.pop("samples"))
        return cls(head, samples)

    def of(self, task: str, contender: str) -> list[Sample]:
        """The successful repetitions of a task."""
        return [sample for sample in self._all(task, contender) if sample.failure is None]

    def failure(self, task: str, contender: str) -> str | None:
        """Why a contender has no result for a task; None if it has one or was not asked."""
        reasons = [sample.failure for sample in self._all(task, contender)]
        return reasons[0] if reasons and all(reasons) else None

    def median(self, task: str, contender: str, figure: str) -> float | None:
        """The median of a field of `Sample` over the repetitions that have it."""
        return median(getattr(sample, figure) for sample in self.of(task, contender))

    def ratio(self, task: str, contender: str, base: str) -> float | None:
        """How many times longer `contender` took than `base`: the median over the repetitions.

        Each is compared with the one of `base` that ran just before it. Doubt goes against `base`:
        of a contender's two runs the faster counts, and the work that a server of `base` does once
        is charged to each run.
        """
        base_seconds = {
            sample.repetition: (sample.seconds or 0.0) + (sample.load_seconds or 0.0)
            for sample in self.of(task, base)
        }
        pairs = [
            (
                min(sample.seconds or inf, sample.again_seconds or inf),
                base_seconds.get(sample.repetition),
            )
            for sample in self.of(task, contender)
        ]
        return median(seconds / base_time for seconds, base_time in pairs if base_time)

    def _all(self, task: str, contender: str) -> Sequence[Sample]:
        return [
            sample
            for sample in self.samples
            if sample.task == task and sample.contender == contender
        ]


def median(values: Iterable[float | None]) -> float | None:
    """The median of those that are known; None if there are none."""
    numbers = [value for value in values if value is not None]
    return statistics.median(numbers) if numbers else None
