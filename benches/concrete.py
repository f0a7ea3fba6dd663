"""Decision trees beside Concrete ML (Frery and others, 2023), in its environment `.venv-concrete`.

    make bench-concrete && .venv/bin/python -m benches.concrete 10x3 100x6

measures forests of so many trees and levels on 30 features, Privet and the peer by turns, and
prints a table. Concrete ML has one server and no interaction, quantises features and thresholds to
6 bits, and gives its own prediction without encryption back; its forest is fitted to drawn numbers.
Privet's is as complete, of drawn thresholds, compared as float32. A peer that takes longer than
`--limit` seconds is ended, and the table says so.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import privet
from benches.machine import ROOT, say
from benches.tasks import forest_task

PYTHON = ROOT / ".venv-concrete" / "bin" / "python"
SCRIPT = ROOT / "benches" / "peers" / "concrete_forest.py"


def peer(count: int, depth: int, limit: float) -> dict[str, Any] | None:
    """What each step of the peer took, in seconds; None if it was ended."""
    command = [str(PYTHON), str(SCRIPT), str(count), str(depth)]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=True)
    except subprocess.TimeoutExpired:
        return None
    steps: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return steps


def measure_privet(count: int, depth: int) -> tuple[float, float]:
    """Seconds offline and online of one prediction by both parties, without a dealer."""
    task = forest_task(count, depth)
    with tempfile.TemporaryDirectory() as folder:
        run = privet.run(task.make(Path(folder)), [task.sample()], suite=privet.Gmw())
    return run.offline.seconds, run.online.seconds


def main(arguments: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benches.concrete", description=__doc__)
    parser.add_argument("sizes", nargs="+", help="trees and levels, as 10x3")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds that the peer may take")
    options = parser.parse_args(arguments)
    if not PYTHON.exists():
        raise SystemExit("Concrete ML is not installed: `make bench-concrete` does it")
    say("| Trees | Privet offline, s | online, s | Concrete ML compile, s | keys, s | run, s |")
    say("|---|---:|---:|---:|---:|---:|")
    for size in options.sizes:
        count, depth = map(int, size.split("x"))
        offline, online = measure_privet(count, depth)
        steps = peer(count, depth, options.limit)
        cells = [f"more than {options.limit:.0f} in all", "", ""]
        if steps is not None:
            assert steps["same"], "the peer's encrypted result is not its own in the clear"
            cells = [f"{steps[name]:.3g}" for name in ("compile", "keys", "run")]
        say(f"| {count} of depth {depth} | {offline:.2g} | {online:.2g} | {' | '.join(cells)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
