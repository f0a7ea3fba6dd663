"""Requests to suite stream one by one and side by side, in a pipeline of both organisations on
this machine's cores, as Markdown tables.

    .venv/bin/python -m benches.stream --models mnist-1   of these models of the zoo
    .venv/bin/python -m benches.stream --cipher bfv       over BFV
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from benches.machine import describe, say
from privet import keys
from privet.compiler.executor.reference import random_inputs
from privet.compiler.graph.operations import Array
from privet.research.papers.page import markdown
from privet.research.papers.ppstream.models import MODELS, PreparedModel, prepare
from privet.stream.cipher import Cipher
from privet.stream.pair import StreamPair, pair
from privet.suites import CIPHERS

REQUESTS = 32


def report(models: Sequence[PreparedModel]) -> str:
    """Latency and throughput."""
    rows, ahead_rows = [], []
    for model in models:
        one_by_one, together = asyncio.run(_measure(model))
        if model.cipher.masked:
            ahead_rows.append([model.name, *asyncio.run(_prepared(model)), *_entries(model)])
        central = sum(stage.seconds[1] for stage in model.stages)
        rows.append(
            [
                model.name,
                f"{1000 * central:.2f} ms",
                f"{1000 * one_by_one / REQUESTS:.2f} ms",
                f"{1000 * together / REQUESTS:.2f} ms",
                f"{one_by_one / together:.2f}",
            ]
        )
    head = ["model", "one core", "one by one", f"{REQUESTS} at once", "ratio"]
    return (
        "## Pipelines\n\nTime for a request: on one core (CPU time of all stages), and in a "
        f"pipeline of both organisations, one request after the other and {REQUESTS} side by side "
        f"(measured, a worker a stage).\n\n{markdown(head, rows)}{_offline(ahead_rows)}"
    )


def _offline(rows: list[list[str]]) -> str:
    """What was left out above, and the same with it."""
    if not rows:
        return ""
    head = ["model", "one by one", f"{REQUESTS} at once", "ratio", "an entry", "CPU", "sent"]
    return (
        f"\nOver BFV the above is online, with {REQUESTS} entries in stock. Below both phases, "
        "from an empty stock: each request prepared when it comes and then run, and requests side "
        "by side while the stock is filled; what an entry takes alone, after the first, and what "
        f"both sides send.\n\n{markdown(head, rows)}"
    )


def _entries(model: PreparedModel) -> list[str]:
    cost = model.entry
    if cost is None:
        return []
    megabytes = (cost.bytes_data + cost.bytes_model) / 1e6
    return [
        f"{1000 * cost.seconds:.0f} ms",
        f"{1000 * cost.cpu_seconds:.0f} ms",
        f"{megabytes:.2f} MB",
    ]


async def _prepared(model: PreparedModel) -> list[str]:
    """Time for a request with its entry, one by one and side by side."""
    times = []
    for together in (False, True):
        async with _pair(model, ahead=1) as pair:
            samples = _samples(model)
            await pair.data.infer(samples[0])
            await pair.data.stock.filled(1)
            pair.data.stock.keep(0)
            await pair.data.infer(samples[0])
            start = time.perf_counter()
            if together:
                pair.data.stock.keep(REQUESTS // 2)
                await asyncio.gather(*(pair.data.infer(sample) for sample in samples))
            else:
                for sample in samples:
                    pair.data.stock.keep(1)
                    await pair.data.stock.filled(1)
                    pair.data.stock.keep(0)
                    await pair.data.infer(sample)
            times.append((time.perf_counter() - start) / REQUESTS)
    return [*(f"{1000 * seconds:.0f} ms" for seconds in times), f"{times[0] / times[1]:.2f}"]


@asynccontextmanager
async def _pair(model: PreparedModel, ahead: int) -> AsyncIterator[StreamPair]:
    with tempfile.TemporaryDirectory() as folder:
        keys.make(Path(folder) / "keys")
        async with pair(
            model.folder, Path(folder) / "keys", window=REQUESTS, cipher=model.cipher, ahead=ahead
        ) as parties:
            yield parties


def _samples(model: PreparedModel) -> list[dict[str, Array]]:
    return [random_inputs(model.compiled.program, (0, 1), index) for index in range(REQUESTS)]


async def _measure(model: PreparedModel) -> tuple[float, float]:
    """Seconds for all requests one by one, and side by side; over BFV with a full stock that is
    not filled up meanwhile."""
    samples, times = _samples(model), []
    async with _pair(model, REQUESTS) as pair:
        await pair.data.infer(samples[0])
        for together in (False, True):
            if model.cipher.masked:
                pair.data.stock.keep(REQUESTS)
                await pair.data.stock.filled(REQUESTS)
                pair.data.stock.keep(0)
            start = time.perf_counter()
            if together:
                await asyncio.gather(*(pair.data.infer(sample) for sample in samples))
            else:
                for sample in samples:
                    await pair.data.infer(sample)
            times.append(time.perf_counter() - start)
    return times[0], times[1]


def main() -> None:
    """Measures the models named on the command line."""
    parser = argparse.ArgumentParser(prog="benches.stream")
    parser.add_argument("--models", default=",".join(MODELS), help="names of the zoo's models")
    parser.add_argument("--cipher", default="paillier", choices=CIPHERS)
    options = parser.parse_args()
    machine = describe()
    say(f"Measured on {machine['cpu']}, {machine['cores']} cores.\n")
    with tempfile.TemporaryDirectory() as folder:
        cipher = Cipher(options.cipher)
        say(report([prepare(name, Path(folder), cipher) for name in options.models.split(",")]))


if __name__ == "__main__":
    main()
