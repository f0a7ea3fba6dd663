"""`python -m benches.load.control`: what a prediction costs that is neither protocol nor model.

    .venv/bin/python -m benches.load.control                        this checkout
    .venv/bin/python -m benches.load.control --beside ../earlier    by turns with another one

One client with a connection that is kept asks a model of the zoo one by one. Material is made
before the clock starts (`ahead`), or by the request itself (`at once`). Told are, for each
prediction: processor time of the control plane, of the client's event loop, and of the workers and
the client's other threads, which hold the protocol; how often the control plane was woken up; and
the wall time that no party spent in the protocol, of which setting up the connection to the worker
is a part.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benches.load.place import Place, build, dealing, serving
from benches.vitals import children, cpu_seconds, wake_ups
from privet.gateway import ServiceClient, Terms
from privet.gateway.jobs import Notice
from privet.runtime import Credentials, Result
from privet.suites import Fss, Gmw

TERMS = {"fss": Terms(Fss()), "gmw": Terms(Gmw(rounds="linear"))}
FIGURES = ("control_ms", "wakes", "loop_ms", "client_ms", "workers_ms", "beyond_ms", "wall_ms")
CORES = 2
BUNDLE = 50
"""Predictions between two looks at the clocks, which tick in hundredths of a second."""


async def _ask(place: Place, address: str, process: int, suite: str, count: int) -> dict[str, Any]:
    """Rows of `FIGURES` by what is measured, for `count` predictions of each kind."""
    credentials = Credentials.from_directory(place.keys, place.role(0))
    random = np.random.default_rng(1)
    terms = TERMS[suite]
    rows: dict[str, Any] = {}
    async with ServiceClient(
        f"https://{address}", credentials, state=place.folder / "client", threads=4
    ) as client:

        async def infer(notice: Notice | None) -> Result:
            sample = random.uniform(-1, 1, place.shape).astype(np.float32)
            if notice is not None:
                return await client.infer(place.name, [sample], notice=notice)
            return await client.infer(place.name, [sample], terms=terms)

        for _ in range(3):
            await infer(None)  # The first of everything is no figure.
        rows["ahead"], rows["at once"] = [], []
        for _ in range(count // BUNDLE):
            notices = [await client.notify(place.name, terms=terms) for _ in range(BUNDLE)]
            for notice in notices:
                await notice.ready()
            await asyncio.sleep(0.3)
            rows["ahead"].append(await _timed(process, infer, notices))
            await asyncio.sleep(0.3)
            rows["at once"].append(await _timed(process, infer, [None] * BUNDLE))
    return rows


async def _timed(
    process: int,
    infer: Callable[[Notice | None], Awaitable[Result]],
    notices: Sequence[Notice | None],
) -> list[float]:
    """What `infer` took of each of these, in `FIGURES`."""
    workers = children(process)
    before = (cpu_seconds(process), sum(map(cpu_seconds, workers)))
    waits = wake_ups(process)
    loop, total = time.thread_time(), time.process_time()
    wall = overhead = 0.0
    for notice in notices:
        start = time.perf_counter()
        result = await infer(notice)
        duration = time.perf_counter() - start
        wall += duration
        overhead += duration - result.online.seconds
        if notice is None and result.offline is not None:
            overhead -= result.offline.seconds
    loop, total = time.thread_time() - loop, time.process_time() - total
    await asyncio.sleep(0.3)  # What is told after the answer counts as well.
    control = cpu_seconds(process) - before[0]
    worker_seconds = sum(map(cpu_seconds, workers)) - before[1]
    times = (control, loop, total - loop, worker_seconds, overhead, wall)
    first, *further = (1000 * seconds / len(notices) for seconds in times)
    return [first, (wake_ups(process) - waits) / len(notices), *further]


def once(model: str, suites: Sequence[str], count: int) -> dict[str, Any]:
    """One turn, in this process's Privet."""
    table: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="privet-control-") as folder:
        place = build(Path(folder), model, 1)
        with dealing(place) as dealer, serving(place, dealer, CORES, ()) as service:
            for suite in suites:
                results = asyncio.run(_ask(place, service.address, service.process, suite, count))
                table |= {f"{suite}, {kind}": rows for kind, rows in results.items()}
    return table


def turn(checkout: Path, words: Sequence[str]) -> dict[str, Any]:
    """One turn in a process of its own, with the Privet of `checkout`."""
    environment = {**os.environ, "PYTHONPATH": str(checkout.absolute() / "python")}
    command = [sys.executable, "-m", "benches.load.control", "--once", *words]
    process = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return dict(json.loads(process.stdout))


def main(arguments: Sequence[str]) -> int:
    """Measures by turns, and prints medians of all turns."""
    parser = argparse.ArgumentParser(prog="python -m benches.load.control")
    parser.add_argument("--model", default="m1", help="of the zoo")
    parser.add_argument("--suites", nargs="+", choices=tuple(TERMS), default=list(TERMS))
    parser.add_argument("--predictions", type=int, default=100, help="of each kind in a turn")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--beside", type=Path, help="another checkout, with its extension built")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.once:
        json.dump(once(options.model, options.suites, options.predictions), sys.stdout)
        return 0
    words = ["--model", options.model, "--predictions", str(options.predictions)]
    words += ["--suites", *options.suites]
    checkouts = {"here": Path(__file__).parents[2]}
    if options.beside is not None:
        checkouts = {"beside": options.beside, **checkouts}
    rows: dict[tuple[str, str], list[list[float]]] = {}
    for _ in range(options.turns):
        for name, checkout in checkouts.items():
            for kind, lines in turn(checkout, words).items():
                rows.setdefault((kind, name), []).extend(lines)
    sys.stdout.write("| | Checkout | " + " | ".join(FIGURES) + " |\n|---|---|" + "---:|" * 7 + "\n")
    for (kind, name), columns in sorted(rows.items()):
        cells = [f"{median(column):.2f}" for column in zip(*columns, strict=True)]
        sys.stdout.write(f"| {kind} | {name} | " + " | ".join(cells) + " |\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
