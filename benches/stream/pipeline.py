"""Experiment 2: one server for everything, against a pipeline of stages."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benches.stream.models import Prepared, table
from privet import keys
from privet.executor import execute
from privet.executor.reference import random_inputs
from privet.stream.allocation import Server, even
from privet.stream.pair import pair
from privet.stream.simulate import simulate

REQUESTS = 32
CORES = (25, 50)
"""The paper's clusters."""


def report(models: Sequence[Prepared]) -> str:
    """Latency and throughput."""
    rows = []
    for model in models:
        plain = _plain(model)
        one_by_one, together = asyncio.run(_measure(model))
        central = sum(it.seconds[1] for it in model.stages)
        simulated = [_simulated(model, cores) for cores in CORES]
        rows.append(
            [
                model.name,
                f"{1000 * plain:.1f} ms",
                f"{central:.2f} s",
                f"{one_by_one / REQUESTS:.2f} s",
                f"{together / REQUESTS:.2f} s",
                f"{one_by_one / together:.2f}",
                *(f"{it:.3f} s" for it in simulated),
            ]
        )
    head = [
        "model",
        "plain, a request",
        "one core",
        "one by one",
        f"{REQUESTS} at once",
        "ratio",
        *(f"simulated, {cores} cores" for cores in CORES),
    ]
    return (
        "## 2. Pipelines\n\nSeconds for a request: in the clear; encrypted on one core (CPU "
        "seconds "
        "of all stages, the paper's CipherBase); in a pipeline of both organisations on this "
        f"machine, one request after the other and {REQUESTS} side by side (measured, a worker a "
        "stage); and the latency of a pipeline with cores spread evenly over stages "
        f"(simulated).\n\n{table(head, rows)}"
    )


def _plain(model: Prepared) -> float:
    inputs = random_inputs(model.compiled.program, (0, 1))
    began = time.perf_counter()
    execute(model.compiled.program, model.compiled.weights, inputs)
    return time.perf_counter() - began


async def _measure(model: Prepared) -> tuple[float, float]:
    """Seconds for all requests one by one, and side by side."""
    samples = [random_inputs(model.compiled.program, (0, 1), it) for it in range(REQUESTS)]
    with tempfile.TemporaryDirectory() as folder:
        keys.make(Path(folder) / "keys")
        async with pair(model.folder, Path(folder) / "keys", window=REQUESTS) as it:
            await it.data.infer(samples[0])
            began = time.perf_counter()
            for sample in samples:
                await it.data.infer(sample)
            middle = time.perf_counter()
            await asyncio.gather(*(it.data.infer(sample) for sample in samples))
            return middle - began, time.perf_counter() - middle


def _simulated(model: Prepared, cores: int) -> float:
    """Latency of a single request."""
    data = max(len(model.stages) // 2 + 1, cores // 3)
    servers = [Server("model", cores - data, "model"), Server("data", data, "data")]
    plan = even([it.stage for it in model.stages], servers, per_core=1)
    return simulate(model.stages, plan, requests=1).latencies[0]
