"""What measurements depend on besides the model: the machine, the commit, and its energy meter."""

from __future__ import annotations

import platform
import shutil
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from privet.errors import Misuse
from privet.runtime.machine import available_memory, machine_memory, usable_cores


def describe() -> dict[str, Any]:
    """CPU, cores that this process may use, memory and versions."""
    return {
        "cpu": cpu_model(),
        "cores": len(usable_cores()),
        "memory_gib": round(machine_memory() / 2**30, 1),
        "python": platform.python_version(),
        "privet": version("privet"),
    }


def available_mb() -> float | None:
    """Memory in MB that programs can still have; None where the system does not tell."""
    try:
        return available_memory() / 1e6
    except Misuse:
        return None


def free_disk_mb() -> float:
    """Room in MB for temporary files, where runs keep their material."""
    return shutil.disk_usage(tempfile.gettempdir()).free / 1e6


def cpu_model() -> str:
    """The processor's name, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    fields = {name.strip(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    numbers = ", ".join(f"{key} {fields[key]}" for key in ("cpu family", "model") if key in fields)
    name = fields.get("model name") or platform.processor() or platform.machine()
    return f"{name} ({numbers})" if numbers else name


def commit(folder: Path) -> str | None:
    """The commit checked out around `folder`, with `+` if files differ from it; None outside of a
    checkout."""
    try:
        head = _git(folder, "rev-parse", "--short=10", "HEAD")
        return head + "+" if _git(folder, "status", "--porcelain") else head
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(folder: Path, *words: str) -> str:
    process = subprocess.run(
        ["git", *words], cwd=folder, check=True, capture_output=True, text=True, timeout=30
    )
    return process.stdout.strip()


POWERCAP = Path("/sys/class/powercap")


class EnergyCounters:
    """The packages' counters as they stand; whole machine, so nothing else should run."""

    def __init__(self, folder: Path = POWERCAP) -> None:
        self._packages = [
            path for path in sorted(folder.glob("intel-rapl:*")) if path.name.count(":") == 1
        ]
        self._before = self._read()

    def _read(self) -> list[int] | None:
        try:
            counts = [int((path / "energy_uj").read_text()) for path in self._packages]
        except (OSError, ValueError):
            return None
        return counts or None

    def joules(self) -> float | None:
        """What was taken since this object was made; None where the system does not tell."""
        now = self._read()
        if now is None or self._before is None:
            return None
        microjoules = 0
        for path, before, after in zip(self._packages, self._before, now, strict=True):
            microjoules += after - before
            if after < before:  # the counter began anew
                microjoules += int((path / "max_energy_range_uj").read_text())
        return microjoules / 1e6
