"""What security against malicious parties costs: `python -m benches.security m1 m2 hinet`.

Runs zoo models by suite `fss` in both modes by turns, between three processes over loopback TLS
that stay for all turns, and prints a table of medians in Markdown. The ratio is that of the least
times, which other load on the machine disturbs least. Weights were exchanged before.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from subprocess import PIPE, Popen
from typing import Any

import privet
from privet import keys, suites, zoo
from privet.compiler.executor.reference import random_inputs
from privet.runtime import Result

MODES = ("semi-honest", "malicious")

COLUMNS = (
    ("Model", "---"),
    ("Security", "---"),
    ("Online", "---:"),
    ("least", "---:"),
    ("Online MB", "---:"),
    ("Rounds", "---:"),
    ("Key MB, client", "---:"),
    ("Offline", "---:"),
    ("Online, ratio", "---:"),
)


@contextmanager
def party(folder: Path, role: str, **job: Any) -> Iterator[str]:
    """A party as a process of its own; its address."""
    path = folder / f"{role}.json"
    common = {"role": role, "keys": str(folder / "keys"), "timeout": 600, "memory": None}
    path.write_text(json.dumps({**common, **job}))
    command = [sys.executable, "-m", "privet.runtime.process", str(path)]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"127.0.0.1:{json.loads(process.stdout.readline())['port']}"
        process.communicate()


def measure(name: str, turns: int, folder: Path) -> dict[str, list[Result]]:
    compiled = privet.compile(zoo.build(name, folder))
    inputs = random_inputs(compiled.program, None)
    compiled.save(folder / "program")
    keys.make(folder / "keys", ())
    with ExitStack() as running:
        dealer = running.enter_context(party(folder, "dealer"))
        job = {
            "program": str(folder / "program"),
            "state": str(folder / "server"),
            "policy": suites.make_policy(dealer=True).text(),
        }
        server = running.enter_context(party(folder, "server", dealer=dealer, **job))
        host, port = server.split(":")
        credentials = privet.Credentials.from_directory(folder / "keys", "client")
        options: dict[str, Any] = {"state": folder / "client", "dealer": dealer}
        clients = {
            mode: running.enter_context(
                privet.Client(
                    host, int(port), credentials, suite=privet.Fss(security=mode), **options
                )
            )
            for mode in MODES
        }
        found: dict[str, list[Result]] = {mode: [] for mode in MODES}
        for turn in range(turns + 1):
            for mode, client in clients.items():
                client.prepare()
                result = client.infer(inputs)
                if turn:
                    found[mode].append(result)
    return found


def row(name: str, mode: str, results: list[Result], other: list[Result] | None) -> str:
    """A line of the table; the ratio is to the least time of `other`."""
    online = [result.online.seconds for result in results]
    offline = [result.offline for result in results if result.offline]
    first = results[0].online
    read = sum(layer.bytes_keys for layer in results[0].layers)
    cells = (
        name,
        mode,
        f"{1000 * median(online):.1f} ms",
        f"{1000 * min(online):.1f} ms",
        f"{(first.bytes_client + first.bytes_server) / 1e6:.2f}",
        first.rounds,
        f"{read / 1e6:.1f}",
        f"{median(cost.seconds for cost in offline):.2f} s",
        f"{min(online) / min(it.online.seconds for it in other):.2f}" if other else "1",
    )
    return "| " + " | ".join(map(str, cells)) + " |"


def say(line: str) -> None:
    """Prints a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Prints the table, lines as soon as they are measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", help="names of zoo models")
    parser.add_argument("--turns", type=int, default=9)
    given = parser.parse_args()
    say("| " + " | ".join(title for title, _ in COLUMNS) + " |")
    say("|" + "|".join(mark for _, mark in COLUMNS) + "|")
    for name in given.models:
        with tempfile.TemporaryDirectory(prefix="privet-bench-") as folder:
            found = measure(name, given.turns, Path(folder))
            say(row(name, "semi-honest", found["semi-honest"], None))
            say(row(name, "malicious", found["malicious"], found["semi-honest"]))


if __name__ == "__main__":
    main()
