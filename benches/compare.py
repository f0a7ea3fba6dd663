"""What models cost by suite, batch and link: a table in Markdown.

    python -m benches.compare m1 m2 --suite gmw:rounds=linear --suite gmw:truncation=one-bit
    python -m benches.compare m1 --suite fss --batches 1 16 64 --links loopback wan

Each run is between fresh local processes, of the program that is compiled for the suite. Suites
take turns, so that other load on the machine disturbs all alike; seconds are medians, `least` the
smallest of all runs. Bytes and rounds are the same in every run, and the script fails if they are
not. `OT` is the extension that suits the link and the suite's demand: two that differ in it differ
in bytes for that alone.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import privet
from benches.machine import ROOT, say
from privet import Run, zoo
from privet.errors import Misuse, PrivetError
from privet.suites import Suite, registry

TITLES = [*("Model", "Suite", "Link", "Batch", "Phase", "OT", "Seconds", "least", "a sample")]
TITLES += ("Client sends", "Server sends", "Dealer sends", "Rounds", "Memory", "Keys")


def parse_suite(text: str) -> Suite:
    """A suite as `NAME` or `NAME:OPTION=VALUE,...`."""
    name, _, options = text.partition(":")
    pairs = [word.partition("=") for word in options.split(",") if word]
    try:
        return registry.from_options(name, {option: value for option, _, value in pairs})
    except Misuse as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def rows(text: str, link: str | None, runs: Sequence[Run]) -> Iterator[str]:
    """A line of the table for each phase of a case."""
    if not all(run.argmax_agrees for run in runs):
        raise SystemExit("a private result disagrees with the plaintext model")
    first = runs[0]
    for phase in ("offline", "online"):
        costs = [getattr(run, phase) for run in runs]
        traffic = {(cost.bytes_client, cost.bytes_server, cost.rounds) for cost in costs}
        if len(traffic) != 1:
            raise SystemExit(f"traffic differs between runs: {traffic}")
        [(client, server, rounds)] = traffic
        seconds = median(cost.seconds for cost in costs)
        is_offline = phase == "offline"
        keys = 0 if is_offline else sum(layer.bytes_keys for layer in first.layers)
        dealer = first.dealer.bytes_client + first.dealer.bytes_server if first.dealer else 0
        cells = [first.model, text, link or "loopback", first.batch, phase]
        cells += [first.extension or "" if is_offline else "", f"{seconds:.3f}"]
        cells += (f"{min(cost.seconds for cost in costs):.3f}", f"{seconds / first.batch:.4f}")
        cells += (f"{client / 1e6:.2f} MB", f"{server / 1e6:.2f} MB")
        cells += (f"{dealer / 1e6:.2f} MB" if is_offline else "", rounds)
        cells += (f"{max(cost.peak_rss_mb for cost in costs):.0f} MB", f"{keys / 1e6:.1f} MB")
        yield f"| {' | '.join(map(str, cells))} |"


def build(name: str, folder: Path) -> Path:
    """The file of a model of the zoo, trained or not."""
    return (
        ROOT / "zoo" / "models" / f"{name}.onnx"
        if name in zoo.trained()
        else zoo.build(name, folder)
    )


def main() -> None:
    """Prints the table, lines as soon as they are measured."""
    parser = argparse.ArgumentParser(prog="benches.compare", description=__doc__)
    parser.add_argument("models", nargs="+", help="names of zoo models")
    parser.add_argument(
        "--suite", action="append", help="NAME or NAME:OPTION=VALUE,...; repeatable"
    )
    parser.add_argument("--batches", nargs="+", type=int, default=[1])
    parser.add_argument("--links", nargs="+", default=["loopback"], help="such as loopback wan")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    contenders = {text: parse_suite(text) for text in options.suite or ["gmw"]}
    say(f"| {' | '.join(TITLES)} |\n|{'---|' * 6}{'---:|' * 9}")
    with tempfile.TemporaryDirectory(prefix="privet-bench-") as folder:
        for name in options.models:
            path = build(name, Path(folder))
            for batch in options.batches:
                programs = {
                    text: privet.compile(path, suite=suite, batch=batch)
                    for text, suite in contenders.items()
                }
                for link in (None if preset == "loopback" else preset for preset in options.links):
                    runs: dict[str, list[Run]] = {text: [] for text in contenders}
                    for _ in range(options.repeat):
                        for text, suite in contenders.items():
                            run = privet.run(programs[text], suite=suite, link=link)
                            runs[text].append(run)
                    for text, results in runs.items():
                        say("\n".join(rows(text, link, results)))


if __name__ == "__main__":
    try:
        main()
    except PrivetError as error:  # a suite that does not run a model
        raise SystemExit(f"error: {error}") from error
