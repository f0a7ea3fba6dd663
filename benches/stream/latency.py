"""Experiment 6: the paper's models in both ciphers, beside what PP-Stream and EzPC published.

Both parties are processes of this machine. Results must be the fixed-point executor's integers. The
VGGs take minutes with Paillier: they run over BFV alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import privet
from benches.stream.models import LARGE, Prepared, table
from privet import zoo
from privet.suites import CIPHERS

LARGE_MODELS = ("vgg13-cifar", "vgg16-cifar", "vgg19-cifar")

PUBLISHED = {"mnist-1": (0.72, 2.42), "mnist-2": (1.14, 2.92), "mnist-3": (12.20, 25.66)}
"""Seconds for one inference by the paper, on nine servers of 24 cores, of PP-Stream and EzPC."""

TARGETS = {
    ("mnist-1", "paillier"): 8.0,
    ("mnist-1", "bfv"): 0.15,
    ("mnist-3", "bfv"): 0.3,
    ("vgg16-cifar", "bfv"): 10.0,
}
"""Seconds, both phases together."""

HEAD = ["model", "cipher", "offline", "sent", "online", "sent", "both", "target"]
REPEATS = 3


def report(models: Sequence[Prepared]) -> str:
    """The models given and the VGGs, measured: the best of some runs."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="privet-") as folder:
        for name in dict.fromkeys([*(it.name for it in models), *LARGE_MODELS]):
            path = zoo.build(name, folder)
            ciphers = ("bfv",) if name.startswith(LARGE) else CIPHERS
            rows += [_row(name, cipher, path) for cipher in ciphers]
    shown = table([*HEAD, "PP-Stream", "EzPC"], rows)
    return f"## 6. Latency\n\nSeconds of one inference (measured).\n\n{shown}"


def _row(name: str, cipher: str, path: Path) -> list[str]:
    suite = privet.Stream(cipher=cipher)
    runs = [
        privet.run(path, suite=suite, input_range=(0, 1), timeout=3600.0) for _ in range(REPEATS)
    ]
    if any(run.max_fixed_point_error != 0 for run in runs):
        raise SystemExit(f"{name} over {cipher}: a result is not the executor's")
    best = min(runs, key=lambda run: run.offline.seconds + run.online.seconds)
    cells = [name, cipher]
    for phase in (best.offline, best.online):
        sent = (phase.bytes_client + phase.bytes_server) / 1e6
        cells += [f"{phase.seconds:.4f}", f"{sent:.3f} MB"]
    both = best.offline.seconds + best.online.seconds
    target = TARGETS.get((name, cipher))
    missed = " missed" if target is not None and both > target else ""
    cells += [f"{both:.3f}", "" if target is None else f"{target:g}{missed}"]
    return [*cells, *(f"{it:.2f}" for it in PUBLISHED.get(name, ())), "", ""][: len(HEAD) + 2]
