"""Experiments 2 to 6: time, threads and slices of pipelines, and what permuted tensors tell."""

from __future__ import annotations

import time

from privet.compiler.executor import execute
from privet.compiler.executor.reference import random_inputs
from privet.research.papers.paper import Cell, Grid
from privet.research.papers.ppstream.models import PreparedModel, measured_models
from privet.research.papers.workplace import Workplace
from privet.research.stream.leakage import correlations
from privet.research.stream.simulate import simulate
from privet.stream.allocation import allocate, even
from privet.suites import CIPHERS, Stream

CORES = (25, 50)
"""The paper's clusters."""

NETWORKS = ("mnist-1", "mnist-2", "mnist-3")


def figure_8(at: Workplace) -> Grid:
    rows: dict[str, list[Cell]] = {}
    for model in measured_models(at):
        at.report(f"{model.name}, all stages")
        rows[model.name] = [
            1000 * _plain(model),
            1000 * sum(stage.seconds[1] for stage in model.stages),
            *(1000 * _simulated(model, cores) for cores in CORES),
        ]
    return Grid(("in the clear", "one core", *(f"{cores} cores" for cores in CORES)), rows)


def _plain(model: PreparedModel) -> float:
    inputs = random_inputs(model.compiled.program, (0, 1))
    began = time.perf_counter()
    execute(model.compiled.program, model.compiled.weights, inputs)
    return time.perf_counter() - began


def _simulated(model: PreparedModel, cores: int) -> float:
    """Latency of a single request with cores spread evenly over stages."""
    servers = model.servers(cores)
    assert servers is not None
    plan = even([stage.stage for stage in model.stages], servers, per_core=1)
    return simulate(model.stages, plan, requests=1, row_bytes=model.row_bytes).latencies[0]


def table_6(at: Workplace) -> Grid:
    samples = 1 if at.quick else 4
    means: dict[int, tuple[int, float]] = {}
    for model in measured_models(at):
        at.report(f"{model.name}, distance correlations")
        for row in correlations(model.compiled, [None] * samples):
            count, mean = means.get(row.exponent, (0, 0.0))
            whole = count + row.tensors
            sum_of = count * mean + row.tensors * row.correlation
            means[row.exponent] = whole, sum_of / whole
    rows = {f"2^{key}": [mean, float(count)] for key, (count, mean) in sorted(means.items())}
    return Grid(("distance correlation", "tensors"), rows)


def table_7(at: Workplace) -> Grid:
    names = NETWORKS[:1] if at.quick else NETWORKS
    rows: dict[str, list[Cell]] = {}
    for cipher in CIPHERS[-1:] if at.quick else CIPHERS:
        runs = [at.run(name, Stream(cipher=cipher)) for name in names]
        if any(run.max_fixed_point_error for run in runs):
            raise AssertionError(f"over {cipher} a result is not the executor's")
        for phase, seconds in (
            ("online", [run.online.seconds for run in runs]),
            ("both phases", [run.offline.seconds + run.online.seconds for run in runs]),
        ):
            rows[f"Privet, {cipher}, {phase}"] = list[Cell](seconds)
    return Grid(tuple(name.upper() for name in names), rows)


ALLOCATED_CORES = (10, 20, 30, 40, 50)
SECONDS = 5
"""How long the integer program may take."""


def figure_7(at: Workplace) -> Grid:
    rows: dict[str, list[Cell]] = {}
    for model in measured_models(at, "vgg13-cifar"):
        at.report(f"{model.name} by cores")
        stages = [stage.stage for stage in model.stages]
        for cores in ALLOCATED_CORES[:2] if at.quick else ALLOCATED_CORES:
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


PARTITIONED_CORES = (10, 20, 50)


def figure_9(at: Workplace) -> Grid:
    rows: dict[str, list[Cell]] = {}
    for model in measured_models(at):
        at.report(f"{model.name}, whole tensors and slices")
        stages = [stage.stage for stage in model.stages]
        for cores in PARTITIONED_CORES[:1] if at.quick else PARTITIONED_CORES:
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
