"""What running processes hold of this machine, read from `/proc`, and whether it grows."""

from __future__ import annotations

import contextlib
import os
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

GROWTH_MB = 24.0
"""More resident memory than this between the halves of a run, and more than a tenth, is a leak."""

GROWTH_COUNT = 6
"""More threads or open files than this between the halves of a run, and more than a quarter, are a
leak: connections that are kept open for a while come and go."""


@dataclass(frozen=True)
class Vitals:
    """A process at one time: resident memory in MB, threads, open file descriptors."""

    rss_mb: float
    threads: int
    files: int


@dataclass(frozen=True)
class Course:
    """How a kind of process went: its vitals settled in (at a third of the run) and in the end.

    Each is the median over a sixth of the run, of the sum over all processes of the kind.
    `most` holds the largest of each, `processes` how many there were in the end.
    """

    name: str
    processes: int
    settled: Vitals
    end: Vitals
    most: Vitals

    def leaks(self) -> list[str]:
        """What grew, in words."""
        leaking = []
        growth = self.end.rss_mb - self.settled.rss_mb
        if growth > max(GROWTH_MB * self.processes, 0.1 * self.settled.rss_mb):
            leaking.append(f"{self.name}: memory grew by {growth:.0f} MB")
        for figure in ("threads", "files"):
            settled = getattr(self.settled, figure)
            increase = getattr(self.end, figure) - settled
            if increase > max(GROWTH_COUNT * self.processes, settled / 4):
                leaking.append(f"{self.name}: {increase} more {figure}")
        return leaking


def look(process: int) -> Vitals | None:
    """The vitals of a process; None if there is none."""
    folder = Path("/proc") / str(process)
    with contextlib.suppress(OSError, ValueError, KeyError):
        lines = (folder / "status").read_text().splitlines()
        status = dict(line.split(":", 1) for line in lines)
        rss = int(status["VmRSS"].split()[0]) / 1024
        return Vitals(rss, int(status["Threads"]), len(list((folder / "fd").iterdir())))
    return None


def children(process: int) -> list[int]:
    """The processes that a process has started and that run."""
    processes = []
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            processes += [int(word) for word in path.read_text().split()]
    return processes


class Watch:
    """Looks at kinds of processes every `seconds`, within `with`; each kind is a function that
    gives the processes of the moment."""

    def __init__(self, kinds: Mapping[str, Callable[[], Sequence[int]]], seconds: float) -> None:
        self._kinds = kinds
        self._seconds = seconds
        self._readings: dict[str, list[tuple[int, Vitals]]] = {name: [] for name in kinds}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def courses(self) -> list[Course]:
        """What was seen, by kind."""
        return [_course(name, samples) for name, samples in self._readings.items() if samples]

    def _run(self) -> None:
        while not self._over.wait(self._seconds):
            for name, processes in self._kinds.items():
                readings = [
                    vitals for process in processes() if (vitals := look(process)) is not None
                ]
                if readings:
                    self._readings[name].append((len(readings), _sum(readings)))

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._over.set()
        self._thread.join()


def _course(name: str, samples: Sequence[tuple[int, Vitals]]) -> Course:
    all_of = [vitals for _, vitals in samples]
    third, sixth = len(all_of) // 3, max(1, len(all_of) // 6)
    return Course(
        name,
        samples[-1][0],
        _each(statistics.median, all_of[third : third + sixth]),
        _each(statistics.median, all_of[-sixth:]),
        _each(max, all_of),
    )


def _sum(vitals: Sequence[Vitals]) -> Vitals:
    return _each(sum, vitals)


def _each(take: Callable[[list[float]], float], vitals: Sequence[Vitals]) -> Vitals:
    return Vitals(
        round(take([reading.rss_mb for reading in vitals]), 1),
        int(take([reading.threads for reading in vitals])),
        int(take([reading.files for reading in vitals])),
    )


TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process: int) -> float:
    """The processor time that a process has used, without its children's."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def wake_ups(process: int) -> int:
    """How often a process's first thread has begun to wait, and so has to be woken up."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(
        int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches:")
    )


def resident_bytes(process: int) -> int:
    """A process's resident memory."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def machine_load() -> float:
    """How many processes ran or wanted to run on this machine in the last minute."""
    return round(os.getloadavg()[0], 1)


@dataclass
class Meter:
    """Processor and wall time of a process since the meter was made."""

    process: int

    def __post_init__(self) -> None:
        self._cpu, self._wall = cpu_seconds(self.process), time.monotonic()

    def read(self) -> tuple[float, float]:
        """Seconds of processor time, and of wall time."""
        return cpu_seconds(self.process) - self._cpu, time.monotonic() - self._wall
