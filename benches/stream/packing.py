"""Samples side by side in Paillier's plaintexts, beside the same samples as a plain batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import privet
from privet.research.papers.ppstream.models import Prepared
from privet.research.report.digest import markdown

HEAD = ["samples", "packed", "offline", "online", "both, a sample", "samples in 8 s", "sent"]
BATCHES = ((1, False), (10, False), (10, True), (53, True))


def report(models: Sequence[Prepared]) -> str:
    """Batches of MNIST-1, measured."""
    paths = [model.path for model in models if model.name == "mnist-1"]
    if not paths:
        return ""
    rows = [_row(paths[0], samples, packed) for samples, packed in BATCHES]
    return f"## Samples in one plaintext (measured, MNIST-1)\n\n{markdown(HEAD, rows)}"


def _row(path: Path, samples: int, packed: bool) -> list[str]:
    suite = privet.Stream(cipher="paillier", packed=packed)
    run = privet.run(path, suite=suite, batch=samples, input_range=(0, 1), timeout=3600.0)
    both = run.offline.seconds + run.online.seconds
    return [
        str(samples),
        "yes" if packed else "no",
        f"{run.offline.seconds:.2f} s",
        f"{run.online.seconds:.2f} s",
        f"{both / samples:.3f} s",
        f"{8 * samples / both:.0f}",
        f"{(run.online.bytes_client + run.online.bytes_server) / 1e6:.2f} MB",
    ]
