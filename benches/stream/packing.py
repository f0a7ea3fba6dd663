"""Samples side by side in Paillier's plaintexts, beside the same samples as a plain batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import privet
from benches.stream.models import Prepared

HEAD = (
    "| Samples | Packed | Offline | Online | Both, a sample | Samples in 8 s | Sent |\n"
    "|---:|---|---:|---:|---:|---:|---:|"
)


def measure(path: Path, samples: int, packed: bool) -> dict[str, Any]:
    """What a batch costs."""
    suite = privet.Stream(cipher="paillier", packed=packed)
    run = privet.run(path, suite=suite, batch=samples, input_range=(0, 1), timeout=3600.0)
    return {
        "samples": samples,
        "packed": packed,
        "offline_seconds": run.offline.seconds,
        "online_seconds": run.online.seconds,
        "bytes": run.online.bytes_client + run.online.bytes_server,
    }


def row(figures: dict[str, Any]) -> str:
    """A line of the table."""
    both = figures["offline_seconds"] + figures["online_seconds"]
    cells = [
        str(figures["samples"]),
        "yes" if figures["packed"] else "no",
        f"{figures['offline_seconds']:.2f} s",
        f"{figures['online_seconds']:.2f} s",
        f"{both / figures['samples']:.3f} s",
        f"{8 * figures['samples'] / both:.0f}",
        f"{figures['bytes'] / 1e6:.2f} MB",
    ]
    return "| " + " | ".join(cells) + " |"


def report(models: Sequence[Prepared]) -> str:
    """Batches of MNIST-1, measured."""
    lines = ["## Samples in one plaintext (measured, MNIST-1 with Paillier)", "", HEAD]
    paths = [model.path for model in models if model.name == "mnist-1"]
    for path in paths:
        batches = ((1, False), (10, False), (10, True), (53, True))
        lines += [row(measure(path, samples, packed)) for samples, packed in batches]
    return "\n".join(lines) + "\n" if paths else ""
