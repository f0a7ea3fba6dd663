"""Experiment 6: the paper's models in both ciphers, beside what PP-Stream and EzPC published.

    .venv/bin/python -m benches.stream latency                                through both processes
    .venv/bin/python -m benches.stream.latency vgg16-cifar --cipher bfv       any model, one cipher

Both parties are processes of this machine. Results must be the fixed-point executor's integers.
The paper's VGGs take minutes with Paillier; name them to run them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import privet
from benches.stream.models import Prepared
from privet import zoo
from privet.suites import CIPHERS


@dataclass(frozen=True)
class Published:
    """Seconds for one inference by the paper (experiment 6), on nine servers of 24 cores."""

    pp_stream: float | None = None
    ezpc: float | None = None


MODELS = {
    "breast": Published(),
    "heart": Published(),
    "cardio": Published(),
    "mnist-1": Published(0.72, 2.42),
    "mnist-2": Published(1.14, 2.92),
    "mnist-3": Published(12.20, 25.66),
    "vgg13-cifar": Published(),
    "vgg16-cifar": Published(),
    "vgg19-cifar": Published(),
}
"""The models of the paper's Table III."""

TARGETS = {
    ("mnist-1", "paillier"): 8.0,
    ("mnist-1", "bfv"): 0.15,
    ("mnist-3", "bfv"): 0.3,
    ("vgg16-cifar", "bfv"): 10.0,
}
"""Seconds, both phases together."""

HEAD = (
    "| Model | Cipher | Offline | Sent | Online | Sent | Both | Target | PP-Stream | EzPC |\n"
    "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"
)


def measure(model: str, cipher: str, folder: Path, repeats: int = 1) -> dict[str, Any]:
    """The figures of the run of least time."""
    path = zoo.build(model, folder)
    runs = [
        privet.run(path, suite=privet.Stream(cipher=cipher), input_range=(0, 1), timeout=3600.0)
        for _ in range(repeats)
    ]
    best = min(runs, key=lambda run: run.offline.seconds + run.online.seconds)
    return {
        "model": model,
        "cipher": cipher,
        "offline_seconds": best.offline.seconds,
        "offline_bytes": best.offline.bytes_client + best.offline.bytes_server,
        "online_seconds": best.online.seconds,
        "online_bytes": best.online.bytes_client + best.online.bytes_server,
        "exact": all(run.max_fixed_point_error == 0 for run in runs),
    }


def row(figures: dict[str, Any]) -> str:
    """A line of the table."""
    model, cipher = figures["model"], figures["cipher"]
    offline, online = figures["offline_seconds"], figures["online_seconds"]
    target, published = TARGETS.get((model, cipher)), MODELS[model]
    missed = "" if target is None or offline + online <= target else " missed"
    cells = [
        model,
        cipher,
        f"{offline:.3f} s",
        f"{figures['offline_bytes'] / 1e6:.2f} MB",
        f"{online:.4f} s",
        f"{figures['online_bytes'] / 1e6:.3f} MB",
        f"{offline + online:.3f} s",
        "" if target is None else f"{target:g} s{missed}",
        _seconds(published.pp_stream),
        _seconds(published.ezpc),
    ]
    return "| " + " | ".join(cells) + " |"


def _seconds(published: float | None) -> str:
    return "" if published is None else f"{published:.2f} s"


def report(models: Sequence[Prepared]) -> str:
    """Experiment 6, measured: the models given, and the VGGs over BFV."""
    lines = ["## Latency (measured)", "", HEAD]
    with tempfile.TemporaryDirectory(prefix="privet-") as folder:
        for model in models:
            lines += [row(measure(model.name, cipher, Path(folder))) for cipher in CIPHERS]
        large = [name for name in MODELS if name.startswith("vgg")]
        lines += [row(measure(name, "bfv", Path(folder))) for name in large]
    return "\n".join(lines) + "\n"


def main(words: Sequence[str]) -> int:
    """Measures; exit code 1 if a result was not the executor's."""
    parser = argparse.ArgumentParser(prog="latency", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("models", nargs="*", help="models of the paper; those in reach without any")
    parser.add_argument("--cipher", choices=CIPHERS, help="only this one")
    parser.add_argument("--repeats", type=int, default=3, help="take the best of so many runs")
    parser.add_argument("--json", action="store_true", help="one object on each line")
    options = parser.parse_args(list(words))
    if unknown := set(options.models) - set(MODELS):
        parser.error(f"no model of the paper: {', '.join(sorted(unknown))}")
    exact = True
    if not options.json:
        sys.stdout.write(HEAD + "\n")
    with tempfile.TemporaryDirectory(prefix="privet-") as folder:
        for model in options.models or MODELS:
            for cipher in [options.cipher] if options.cipher else CIPHERS:
                if not options.models and cipher == "paillier" and model.startswith("vgg"):
                    continue
                figures = measure(model, cipher, Path(folder), options.repeats)
                exact &= figures["exact"]
                sys.stdout.write((json.dumps(figures) if options.json else row(figures)) + "\n")
                sys.stdout.flush()
    return 0 if exact else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
