"""What a sample costs in a batch: `python -m benches.batch m1 m2`.

Runs zoo models with a dealer, by suite `gmw` unless told, at batches from 1 to 128, over loopback
and over a shaped link, and prints a table of medians in Markdown. Costs are the client's, divided
by the batch; rounds are the batch's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from statistics import median

import privet
from privet import Run, zoo

BATCHES = (1, 4, 16, 64, 128)

COLUMNS = (
    ("Model", "---"),
    ("Link", "---"),
    ("Batch", "---:"),
    ("Comparisons", "---"),
    ("Rounds", "---:"),
    ("Online, batch", "---:"),
    ("Online, sample", "---:"),
    ("Offline, sample", "---:"),
    ("Online MB, sample", "---:"),
)


def row(link: str | None, runs: Sequence[Run]) -> str:
    """A line of the table for repetitions of one task."""
    first = runs[0]
    batch, megabytes = first.batch, (first.online.bytes_client + first.online.bytes_server) / 1e6
    online = median(run.online.seconds for run in runs)
    offline = median(run.offline.seconds for run in runs)
    cells = (
        first.model,
        link or "loopback",
        batch,
        first.config.facts()["rounds"] or first.config.name,
        first.online.rounds,
        f"{online:.3f} s",
        f"{1000 * online / batch:.1f} ms",
        f"{1000 * offline / batch:.1f} ms",
        f"{megabytes / batch:.2f}",
    )
    return "| " + " | ".join(map(str, cells)) + " |"


def say(line: str) -> None:
    """Prints a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Prints the table, a line as soon as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", help="names of zoo models")
    parser.add_argument("--batches", nargs="+", type=int, default=BATCHES)
    parser.add_argument("--link", default="wan", help="the slower link")
    parser.add_argument("--suite", default="gmw", help="with a dealer in any case")
    parser.add_argument("--repeat", type=int, default=1)
    given = parser.parse_args()
    suite = privet.Fss() if given.suite == "fss" else privet.Gmw(correlations="dealer")
    say("| " + " | ".join(title for title, _ in COLUMNS) + " |")
    say("|" + "|".join(mark for _, mark in COLUMNS) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for name in given.models:
            path = zoo.build(name, folder)
            for batch in given.batches:
                compiled = privet.compile(path, batch=batch)
                for link in (None, given.link):
                    runs = [
                        privet.run(compiled, suite=suite, link=link) for _ in range(given.repeat)
                    ]
                    say(row(link, runs))


if __name__ == "__main__":
    main()
