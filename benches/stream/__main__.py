"""What suite stream does beyond PP-Stream's experiments, as Markdown tables.

    .venv/bin/python -m benches.stream                       all of it (minutes)
    .venv/bin/python -m benches.stream --models mnist-1      on these models of the zoo
    .venv/bin/python -m benches.stream pipeline --cipher bfv pipelines over BFV
    .venv/bin/privet papers run ppstream                     the paper's own experiments

Both organisations run on this machine's cores.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import privet
from benches.machine import describe, say
from benches.stream import pipeline
from privet.research.papers.page import markdown
from privet.research.papers.ppstream.models import MODELS, PreparedModel, prepare
from privet.stream.cipher import Cipher
from privet.suites import CIPHERS

HEAD = ["samples", "packed", "offline", "online", "both, a sample", "samples in 8 s", "sent"]
BATCHES = ((1, False), (10, False), (10, True), (53, True))


def packing(models: Sequence[PreparedModel]) -> str:
    """Batches of MNIST-1, measured."""
    paths = [model.path for model in models if model.name == "mnist-1"]
    if not paths:
        return ""
    rows = [_row(paths[0], samples, packed) for samples, packed in BATCHES]
    return f"## Samples in one plaintext (measured, MNIST-1)\n\n{markdown(HEAD, rows)}"


def _row(path: Path, samples: int, packed: bool) -> list[str]:
    suite = privet.Stream(cipher="paillier", packed=packed)
    run = privet.run(path, suite=suite, batch=samples, input_range=(0, 1), timeout=3600.0)
    total = run.offline.seconds + run.online.seconds
    return [
        str(samples),
        "yes" if packed else "no",
        f"{run.offline.seconds:.2f} s",
        f"{run.online.seconds:.2f} s",
        f"{total / samples:.3f} s",
        f"{8 * samples / total:.0f}",
        f"{(run.online.bytes_client + run.online.bytes_server) / 1e6:.2f} MB",
    ]


EXPERIMENTS: dict[str, Callable[[Sequence[PreparedModel]], str]] = {
    "pipeline": pipeline.report,
    "packing": packing,
}
"""Experiments by name."""


def main() -> None:
    """Runs the experiments named on the command line."""
    parser = argparse.ArgumentParser(prog="benches.stream")
    parser.add_argument("names", nargs="*", help=", ".join(EXPERIMENTS))
    parser.add_argument("--models", default=",".join(MODELS), help="names of the zoo's models")
    parser.add_argument(
        "--cipher", default="paillier", help="of pipelines: " + " or ".join(CIPHERS)
    )
    options = parser.parse_args()
    unknown = set(options.names) - set(EXPERIMENTS)
    if unknown:
        parser.error(f"no experiments {', '.join(sorted(unknown))}")
    machine = describe()
    say(f"Measured on {machine['cpu']}, {machine['usable_cores']} cores.\n")
    with tempfile.TemporaryDirectory() as folder:
        cipher = Cipher(options.cipher)
        names = options.models.split(",")
        models = [prepare(name, Path(folder), cipher) for name in names]
        for name in options.names or EXPERIMENTS:
            say(EXPERIMENTS[name](models))


if __name__ == "__main__":
    main()
