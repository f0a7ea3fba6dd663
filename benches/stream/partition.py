"""Experiment 4: workers that get the slice they need, against whole tensors."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benches.stream.models import Prepared, table
from privet import keys
from privet.compiler.executor.reference import random_inputs
from privet.research.stream.simulate import simulate
from privet.stream.allocation import allocate
from privet.stream.pair import pair
from privet.stream.stages import Stages

REQUESTS = 8
PARTS = 4
CORES = (20, 50)


def report(models: Sequence[Prepared]) -> str:
    """Time and bytes here, and time of simulated clusters."""
    rows = []
    for model in models:
        cells = ["", ""]
        if not model.large:
            measured = [asyncio.run(_measure(model, whole)) for whole in (True, False)]
            cells = [f"{seconds:.2f} s, {moved / 1e6:.1f} MB" for seconds, moved in measured]
        rows.append([model.name, *cells, *(_simulated(model, cores) for cores in CORES)])
    head = ["model", "whole tensors", "slices", *(f"{it} cores, whole and slices" for it in CORES)]
    return (
        f"## 4. Tensor partitioning\n\n{REQUESTS} requests with each linear stage in {PARTS} "
        "parts: "
        "seconds, and bytes that went to the model provider's workers (measured); latency on "
        f"larger clusters (simulated).\n\n{table(head, rows)}"
    )


async def _measure(model: Prepared, whole: bool) -> tuple[float, int]:
    samples = [random_inputs(model.compiled.program, (0, 1), it) for it in range(REQUESTS)]
    rounds = Stages(model.compiled.program.to_public_bytes(), model.cipher).rounds
    with tempfile.TemporaryDirectory() as folder:
        keys.make(Path(folder) / "keys")
        parts = [PARTS] * len(rounds)
        async with pair(
            model.folder,
            Path(folder) / "keys",
            model_parts=parts,
            whole_inputs=whole,
            cipher=model.cipher,
        ) as it:
            await it.data.infer(samples[0])
            it.model.ledger.moved = 0
            began = time.perf_counter()
            await asyncio.gather(*(it.data.infer(sample) for sample in samples))
            return time.perf_counter() - began, it.model.ledger.moved


def _simulated(model: Prepared, cores: int) -> str:
    stages = [it.stage for it in model.stages]
    servers = model.servers(cores)
    if servers is None:
        return ""
    plan = allocate(stages, servers, "slowest", per_core=1, seconds=5)
    both = [
        simulate(
            model.stages, plan, requests=1, whole_inputs=whole, row_bytes=model.row_bytes
        ).latencies[0]
        for whole in (True, False)
    ]
    return f"{1000 * both[0]:.1f} ms, {1000 * both[1]:.1f} ms"
