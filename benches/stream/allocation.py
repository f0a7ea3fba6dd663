"""Experiment 3: threads allocated by the integer program, against an even share."""

from __future__ import annotations

from collections.abc import Sequence

from benches.stream.models import Prepared, table
from privet.research.stream.simulate import simulate
from privet.stream.allocation import allocate, even, spread

CORES = (10, 20, 30, 40, 50)
REQUESTS = 32


def report(models: Sequence[Prepared]) -> str:
    """Latency and throughput of simulated clusters, by cores and by objective."""
    rows = []
    for model in models:
        stages = [it.stage for it in model.stages]
        size = model.row_bytes
        for cores in CORES:
            servers = model.servers(cores)
            if servers is None:
                continue
            plans = {
                "even": even(stages, servers, per_core=1),
                "paper": allocate(stages, servers, "paper", per_core=1, seconds=5),
                "slowest": allocate(stages, servers, "slowest", per_core=1, seconds=5),
            }
            cells = []
            for plan in plans.values():
                alone = simulate(model.stages, plan, requests=1, row_bytes=size).latencies[0]
                flow = simulate(model.stages, plan, requests=REQUESTS, row_bytes=size)
                cells.append(f"{1000 * alone:.0f} ms, {flow.throughput:.1f}/s")
            times = [spread(plan.times(stages)) for plan in plans.values()]
            solved = max(plan.solved for plan in plans.values())
            cells += [f"{times[1]:.2f}, {times[2]:.2f}", f"{solved:.1f} s"]
            rows.append([model.name, str(cores), *cells])
    head = [
        "model",
        "cores",
        "even",
        "paper's objective",
        "slowest stage",
        "objective (4)",
        "solved",
    ]
    return (
        "## 3. Allocation\n\nLatency of a request alone and throughput of "
        f"{REQUESTS} (simulated), by how threads are allocated; the paper's objective (4) under "
        f"both integer programs, and how long HiGHS took.\n\n{table(head, rows)}"
    )
