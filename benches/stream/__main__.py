"""What suite stream does beyond PP-Stream's experiments, as Markdown tables.

    .venv/bin/python -m benches.stream                       all of it (minutes)
    .venv/bin/python -m benches.stream --models mnist-1      on these models of the zoo
    .venv/bin/python -m benches.stream pipeline --cipher bfv pipelines over BFV
    .venv/bin/privet papers run ppstream                     the paper's own experiments

Both organisations run on this machine's cores.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benches.machine import describe
from benches.stream import packing, pipeline
from privet.research.papers.ppstream.models import MODELS, Prepared, prepare
from privet.stream.cipher import Cipher
from privet.suites import CIPHERS

EXPERIMENTS: dict[str, Callable[[Sequence[Prepared]], str]] = {
    "pipeline": pipeline.report,
    "packing": packing.report,
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
    chosen = parser.parse_args()
    unknown = set(chosen.names) - set(EXPERIMENTS)
    if unknown:
        parser.error(f"no experiments {', '.join(sorted(unknown))}")
    machine = describe()
    say(f"Measured on {machine['cpu']}, {machine['usable_cores']} cores.\n")
    with tempfile.TemporaryDirectory() as folder:
        cipher = Cipher(chosen.cipher)
        names = chosen.models.split(",")
        models = [prepare(name, Path(folder), cipher) for name in names]
        for name in chosen.names or EXPERIMENTS:
            say(EXPERIMENTS[name](models))


def say(text: str) -> None:
    """Prints at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
