"""Samples side by side in Paillier's plaintexts, beside the same samples as a plain batch."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import privet
from privet import zoo

HEAD = (
    "| Samples | Packed | Offline | Online | Both, a sample | Samples in 8 s | Sent |\n"
    "|---:|---|---:|---:|---:|---:|---:|"
)


def measure(path: Path, samples: int, packed: bool) -> dict[str, Any]:
    """What a batch costs."""
    run = privet.run(
        path, suite="stream", batch=samples, packed=packed, input_range=(0, 1), timeout=3600.0
    )
    return {
        "samples": samples,
        "packed": packed,
        "offline_seconds": run.offline.seconds,
        "online_seconds": run.online.seconds,
        "bytes": run.online.bytes_client + run.online.bytes_server,
        "exact": run.max_fixed_point_error == 0,
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


def main(words: Sequence[str]) -> int:
    """Measures; exit code 1 if a result was not the executor's."""
    parser = argparse.ArgumentParser(prog="packing", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", default="mnist-1", help="a model of the zoo")
    parser.add_argument("--json", action="store_true", help="one object on each line")
    options = parser.parse_args(list(words))
    exact = True
    if not options.json:
        sys.stdout.write(HEAD + "\n")
    with tempfile.TemporaryDirectory(prefix="privet-") as folder:
        path = zoo.build(options.model, folder)
        for samples, packed in ((1, False), (10, False), (10, True), (53, True)):
            figures = measure(path, samples, packed)
            exact &= figures["exact"]
            sys.stdout.write((json.dumps(figures) if options.json else row(figures)) + "\n")
            sys.stdout.flush()
    return 0 if exact else 1
