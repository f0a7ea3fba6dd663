"""What measurements depend on besides the model: the machine and the commit."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any


def describe() -> dict[str, Any]:
    """CPU, cores that this process may use, memory and versions."""
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(pages / 2**30, 1),
        "python": platform.python_version(),
        "privet": version("privet"),
    }


def available_mb() -> float | None:
    """Memory in MB that programs can still have; None where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in lines)
    found = fields.get("MemAvailable")
    return None if found is None else float(found.split()[0]) * 1024 / 1e6


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
    done = subprocess.run(
        ["git", *words], cwd=folder, check=True, capture_output=True, text=True, timeout=30
    )
    return done.stdout.strip()
