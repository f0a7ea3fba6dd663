"""Experiment 4: workers that get the slice they need, against whole tensors."""

from __future__ import annotations

from privet.research.papers.paper import Cell, Grid
from privet.research.papers.ppstream.allocation import SECONDS
from privet.research.papers.ppstream.models import chosen
from privet.research.papers.workplace import Workplace
from privet.research.stream.simulate import simulate
from privet.stream.allocation import allocate

CORES = (10, 20, 50)


def figure_9(at: Workplace) -> Grid:
    rows: dict[str, list[Cell]] = {}
    for model in chosen(at):
        at.say(f"{model.name}, whole tensors and slices")
        stages = [it.stage for it in model.stages]
        for cores in CORES[:1] if at.quick else CORES:
            servers = model.servers(cores)
            if servers is None:
                continue
            plan = allocate(stages, servers, "slowest", per_core=1, seconds=SECONDS)
            rows[f"{model.name}, {cores} cores"] = [
                1000
                * simulate(
                    model.stages,
                    plan,
                    requests=1,
                    whole_inputs=whole,
                    row_bytes=model.row_bytes,
                ).latencies[0]
                for whole in (True, False)
            ]
    return Grid(("whole tensors", "slices"), rows)
