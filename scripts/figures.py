"""Prints the first table of docs/reference/figures.md.

`.venv/bin/python scripts/figures.py [MODEL ...]` measures all models, or some.

Each model runs several times between two local processes. Seconds are medians; bytes and rounds
are the same in every run, and the script fails if they are not.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import privet
from privet import zoo
from privet.compiler.compile import Compiled, compile
from privet.runtime import PhaseCost, Run

REPEATS = 5
MODELS = ("digits-cnn", "m1", "m2", "hinet")
TRAINED = Path(__file__).resolve().parent.parent / "zoo" / "models"
TRUNCATIONS = ("exact", "one-bit")
"""The default, and the weaker one that other systems have."""
TITLES = (
    "Model",
    "Truncation",
    "Comparisons",
    "Phase",
    "Seconds",
    "Client sends",
    "Server sends",
    "Rounds",
    "Memory",
)


def main(names: Sequence[str]) -> None:
    """Measures the models and prints a Markdown table."""
    print(f"| {' | '.join(TITLES)} |")
    print("|---|---|---|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for name in names or MODELS:
            compiled = compile(_path(name, Path(folder)))
            for truncation, rounds in product(TRUNCATIONS, ("linear", "log")):
                for row in _rows(name, compiled, truncation, rounds):
                    print(f"| {' | '.join(row)} |", flush=True)


def _path(name: str, folder: Path) -> Path:
    return TRAINED / f"{name}.onnx" if name in zoo.trained() else zoo.build(name, folder)


def _rows(name: str, compiled: Compiled, truncation: str, rounds: str) -> list[list[str]]:
    runs = [
        privet.run(compiled, suite=privet.Gmw(rounds=rounds, truncation=truncation))
        for _ in range(REPEATS)
    ]
    phases = {"offline": [run.offline for run in runs], "online": [run.online for run in runs]}
    return [
        [name, truncation, rounds, phase, *_figures(costs, runs)] for phase, costs in phases.items()
    ]


def _figures(costs: Sequence[PhaseCost], runs: Sequence[Run]) -> list[str]:
    if not all(run.argmax_agrees for run in runs):
        raise SystemExit("a private result disagrees with the plaintext model")
    traffic = {(cost.bytes_client, cost.bytes_server, cost.rounds) for cost in costs}
    if len(traffic) != 1:
        raise SystemExit(f"traffic differs between runs: {traffic}")
    [(client, server, rounds)] = traffic
    return [
        f"{statistics.median(cost.seconds for cost in costs):.3f}",
        f"{client / 1e6:.2f} MB",
        f"{server / 1e6:.2f} MB",
        str(rounds),
        f"{max(cost.peak_rss_mb for cost in costs):.0f} MB",
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
