"""Kernels beside what bounds them, from criterion's estimates: `python -m benches.kernels`.

The bench program writes what each kernel cannot do without (AES blocks, vector instructions, bytes
of memory) and measures, in the same run, what one of each takes on this machine. The least time
is that of the resource which takes longest.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from benches.machine import ROOT, commit, describe
from benches.record import FOLDER
from benches.report import replace_section
from privet.planner.record import write_whole

HOME = ROOT / "target" / "kernels"

PEAKS = {
    "aes": ("peak-aes", 1024.0),
    "vectors": ("peak-cycles", 3.0 * 2048),
    "bytes": ("peak-memory", 2.0 * (128 << 20)),
}
"""By resource: the kernel that measures it, and how many of the resource it takes."""


@dataclass(frozen=True)
class Kernel:
    """A kernel's median and its least time by `resource`, in seconds; `why` says what counts."""

    name: str
    seconds: float
    limit_seconds: float
    resource: str
    why: str

    @property
    def distance(self) -> float:
        """How many times the least time it takes."""
        return self.seconds / self.limit_seconds


def read(home: Path) -> tuple[dict[str, float], list[Kernel]]:
    """Seconds of one of each resource, and the kernels, as the bench program left them in `home`.

    # Errors
    `FileNotFoundError` if it has not run.
    """
    limits = json.loads((home / "limits.json").read_text())
    units = {resource: _seconds(home, name) / count for resource, (name, count) in PEAKS.items()}
    peaks = {name for name, _ in PEAKS.values()}
    ran = (name for name in limits if (home / name / "new" / "estimates.json").is_file())
    return units, [_kernel(home, name, limits[name], units) for name in ran if name not in peaks]


def _kernel(
    home: Path, name: str, limit: Mapping[str, float | str], units: Mapping[str, float]
) -> Kernel:
    times = {resource: float(limit[resource]) * unit for resource, unit in units.items()}
    resource = max(times, key=lambda resource: times[resource])
    return Kernel(name, _seconds(home, name), times[resource], resource, str(limit["why"]))


def _seconds(home: Path, name: str) -> float:
    estimates = json.loads((home / name / "new" / "estimates.json").read_text())
    return float(estimates["median"]["point_estimate"]) * 1e-9


def table(units: Mapping[str, float], kernels: list[Kernel], about: Mapping[str, object]) -> str:
    """The page's table with what it rests on."""
    rates = (
        f"{1e-9 / units['aes']:.2f} billion AES blocks, {1e-9 / units['vectors']:.2f} billion "
        f"instructions and {1e-9 / units['bytes']:.1f} GB of memory a second"
    )
    lines = [
        f"Commit `{about['commit']}` on {about['date']}; {about['cpu']}; one thread in each party; "
        f"this machine does {rates} on one core. Made by `make bench-kernels`.",
        "",
        "| Kernel | Measured | Least | Measured / least | Bound by | What was counted |",
        "|---|---:|---:|---:|---|---|",
    ]
    named = {"aes": "AES", "vectors": "instructions", "bytes": "memory"}
    lines += [
        f"| {kernel.name} | {_time(kernel.seconds)} | "
        + (
            f"{_time(kernel.limit_seconds)} | {kernel.distance:.1f} | {named[kernel.resource]}"
            if kernel.limit_seconds
            else "- | - | -"
        )
        + f" | {kernel.why} |"
        for kernel in sorted(kernels, key=lambda kernel: kernel.name)
    ]
    return "\n".join(lines) + "\n"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.2f} us"


def main() -> int:
    """Writes a record and the table on the page; with `--print`, the table to standard output."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--print", action="store_true", dest="prints", help="write no file")
    prints = parser.parse_args().prints
    units, kernels = read(HOME)
    about = {"date": time.strftime("%Y-%m-%d"), **commit(), **describe()}
    if prints:
        sys.stdout.write(table(units, kernels, about))
        return 0
    head = {"format": "privet-kernels", "version": 1, **about, "units_seconds": units}
    path = FOLDER / f"kernels-{about['date']}-{about['commit']}.json"
    write_whole(path, {**head, "kernels": [asdict(kernel) for kernel in kernels]})
    replace_section("kernels", table(units, kernels, about))
    pages = f"{path.relative_to(ROOT)}, docs/reference/benchmarks.md"
    sys.stdout.write(f"{len(kernels)} kernels: {pages}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
