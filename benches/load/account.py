"""What a process took of this machine, read from `/proc`."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process: int) -> float:
    """The processor time that a process has used, without its children's."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


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
