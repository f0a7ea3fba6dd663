"""What the figures depend on besides the code: the machine, its load, versions, the commit."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from privet.planner import machine

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("crates", "python", "benches", "Cargo.toml", "Cargo.lock")


def say(text: str) -> None:
    """Prints a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def describe() -> dict[str, Any]:
    """CPU, cores, memory and versions, as a record holds them."""
    packages = ("numpy", "onnx", "onnxruntime")
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=False)
    return {
        **machine.describe(),
        "kernel": platform.release(),
        "threads": os.environ.get("RAYON_NUM_THREADS", "one per core in each party"),
        "rustc": rustc.stdout.strip(),
        **{package: metadata.version(package) for package in packages},
    }


def commit() -> dict[str, Any]:
    """The commit that is checked out, and whether sources differ from it."""
    return {
        "commit": _git("rev-parse", "--short=10", "HEAD"),
        "modified": bool(_git("status", "--porcelain", "--", *SOURCES)),
    }


def _git(*words: str) -> str:
    command = ["git", *words]
    return subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


@dataclass(frozen=True)
class Load:
    """Seconds of processor time since boot: of everybody, and of this process and its children.

    Time that the hypervisor withheld counts as everybody's.
    """

    total_seconds: float
    own_seconds: float
    clock: float

    @classmethod
    def read(cls) -> Load:
        """Read the counters; children count once they have been waited for."""
        user, nice, system, _idle, _wait, irq, soft, steal, *_ = (
            int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        )
        everybody = (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")
        usages = [
            resource.getrusage(scope) for scope in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        ]
        own_seconds = sum(usage.ru_utime + usage.ru_stime for usage in usages)
        return cls(everybody, own_seconds, time.monotonic())

    def others_since(self, earlier: Load) -> float:
        """The share of all cores that went to others since `earlier`, 0 to 1."""
        wall = (self.clock - earlier.clock) * (os.cpu_count() or 1)
        other_seconds = (self.total_seconds - earlier.total_seconds) - (
            self.own_seconds - earlier.own_seconds
        )
        return round(min(max(other_seconds / wall, 0.0), 1.0), 3) if wall > 0 else 0.0
