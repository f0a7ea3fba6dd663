"""Experiment 3: threads allocated by the integer program, against an even share."""

from __future__ import annotations

from privet.research.papers.paper import Cell, Grid
from privet.research.papers.ppstream.models import chosen
from privet.research.papers.workplace import Workplace
from privet.research.stream.simulate import simulate
from privet.stream.allocation import allocate, even

CORES = (10, 20, 30, 40, 50)
SECONDS = 5
"""How long the integer program may take."""


def figure_7(at: Workplace) -> Grid:
    rows: dict[str, list[Cell]] = {}
    for model in chosen(at, "vgg13-cifar"):
        at.say(f"{model.name} by cores")
        stages = [it.stage for it in model.stages]
        for cores in CORES[:2] if at.quick else CORES:
            servers = model.servers(cores)
            if servers is None:
                continue
            plans = [even(stages, servers, per_core=1)]
            plans += [
                allocate(stages, servers, objective, per_core=1, seconds=SECONDS)
                for objective in ("paper", "slowest")
            ]
            rows[f"{model.name}, {cores} cores"] = [
                1000
                * simulate(model.stages, plan, requests=1, row_bytes=model.row_bytes).latencies[0]
                for plan in plans
            ]
    return Grid(("even", "the paper's objective", "slowest stage"), rows)
