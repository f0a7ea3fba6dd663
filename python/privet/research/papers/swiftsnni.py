"""Items of SwiftSNNI: the scheduler under a simulated clock, and runs in suite `fss`."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

import onnx

from privet import zoo
from privet.research.papers.paper import Cell, Grid
from privet.research.papers.workplace import Workplace
from privet.research.simulation import study
from privet.research.simulation.profile_file import ProfileFile, read
from privet.research.simulation.record import figures
from privet.research.simulation.study import (
    NOTICES,
    PAPERS,
    RATES,
    SimulationCase,
    SimulationResult,
)
from privet.research.simulation.workload import WORKLOADS, Traffic
from privet.runtime import run as run_locally
from privet.scheduler import Phase
from privet.suites import Fss

NETWORKS = ("m1", "m2", "hinet", "alexnet", "vgg16")
SMALL = "m1=20,m2=10"
"""A workload in place of the paper's, for tests."""

DELAYS = ("D", "D, 25 % announced", "W", "done/s", "makespan", "speed-up", "cores busy, %")

IMPLIED = {
    "m1": (0.2, 0.3),
    "m2": (0.4, 0.5),
    "hinet": (0.4, 0.5),
    "alexnet": (6.0, 6.0),
    "vgg16": (55.0, 35.0),
}
"""Seconds of preparation and online phase that the rows of FCFS imply: 25 requests of VGG-16, one
after the other, are the makespan of 2,255 s, AlexNet's make the rest of the waits, and the light
workload's delay without load leaves less than a second for the others."""

FASTER = 21.0, 35.0
"""The same of VGG-16 that the row of priority at one request a second implies: 1,411 s by 25."""

DRAWS = 8


def _case(at: Workplace, **fields: object) -> SimulationCase:
    workload = fields.pop("workload", "mixed")
    case = SimulationCase(read("paper"), SMALL if at.quick else str(workload), jobs_per_model=1)
    return replace(case, **fields)  # type: ignore[arg-type]


def _compare(cases: Iterable[SimulationCase]) -> list[SimulationResult]:
    return list(study.compare(cases))


def table_1(at: Workplace) -> Grid:
    rows: dict[str, Sequence[Cell]] = {}
    for name in NETWORKS[:1] if at.quick else NETWORKS:
        entry = zoo.describe(name)
        graph = onnx.shape_inference.infer_shapes(
            onnx.load(at.model(name), load_external_data=False)
        ).graph
        count = Counter(node.op_type for node in graph.node)
        rows[name] = [
            " x ".join(map(str, _shape(graph.input[0])[1:])),
            4 * entry.parameters / 1e6,
            4 * sum(prod(_shape(value)) for value in (*graph.value_info, *graph.output)) / 1e6,
            2 * entry.multiply_accumulates / 1e6,
            *(float(count[kind]) for kind in ("Conv", "Gemm", "Relu", "MaxPool")),
        ]
    layers = ("convolutions", "dense", "ReLU", "max pools")
    return Grid(("input", "weights MB", "activations MB", "FLOPs, millions", *layers), rows)


def _shape(value: onnx.ValueInfoProto) -> list[int]:
    return [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]


def table_2(at: Workplace) -> Grid:
    rows: dict[str, Sequence[Cell]] = {}
    for workload in WORKLOADS:
        lowest = _case(at, workload=workload, traffic=Traffic(RATES[0]))
        base = _compare([lowest])[0].baseline
        rows[f"{workload}, ms-shark"] = [
            base.delay, None, base.wait, base.throughput, base.makespan, None,
            100 * base.utilisation,
        ]  # fmt: skip
        for policy in (*PAPERS, *study.OURS):
            for rate in RATES:
                limit = 1 if policy in PAPERS else None
                case = _case(
                    at,
                    workload=workload,
                    policy=policy,
                    traffic=Traffic(rate),
                    jobs_per_model=limit,
                )
                outcome, announced = _compare(case.with_policies([policy], (0.0, NOTICES)))
                numbers = outcome.figures
                rows[f"{workload}, {policy}, {rate:g}/s"] = [
                    numbers.delay,
                    announced.figures.delay,
                    numbers.wait,
                    numbers.throughput,
                    numbers.makespan,
                    outcome.speedup,
                    100 * numbers.utilisation,
                ]
    return Grid(DELAYS, rows)


def exclusivity(at: Workplace) -> Grid:
    rows: dict[str, list[Cell]] = {}
    for name, jobs_per_model, in_line in (
        ("none", None, ()),
        ("model", 1, ()),
        ("head of line", 1, (Phase.PRE,)),
    ):
        rows[name] = [
            _compare(
                [
                    _case(
                        at,
                        workload=workload,
                        policy=policy,
                        traffic=Traffic(1.0),
                        jobs_per_model=jobs_per_model,
                        in_line=frozenset(in_line),
                    )
                ]
            )[0].figures.delay
            for workload in WORKLOADS
            for policy in PAPERS
        ]
    columns = tuple(f"{w}, {p}" for w in WORKLOADS for p in ("FCFS", "priority"))
    return Grid(columns, rows)


def lengths(at: Workplace) -> Grid:
    """The paper's rows from other lengths of jobs: means over draws of arrivals, and their ends."""
    rows: dict[str, Sequence[Cell]] = {}
    implied = _lasting(IMPLIED)
    faster = _lasting({**IMPLIED, "vgg16": FASTER})
    cases = {
        f"{workload}, {policy}, {rate:g}/s": _case(
            at, profile=implied, workload=workload, policy=policy, traffic=Traffic(rate)
        )
        for workload in WORKLOADS
        for policy in PAPERS
        for rate in RATES
    }
    last = f"mixed, priority, {RATES[-1]:g}/s"
    cases[f"{last}, VGG-16 in {sum(FASTER):g} s"] = replace(cases[last], profile=faster)
    for name, case in cases.items():
        draws = 2 if at.quick else DRAWS
        draws_of = [figures(study.simulate(replace(case, seed=draw + 1))) for draw in range(draws)]
        delays = [draw.delay for draw in draws_of]
        wait, makespan = (
            statistics.fmean(getattr(draw, measure) for draw in draws_of)
            for measure in ("wait", "makespan")
        )
        spread = f"{min(delays):.3g} to {max(delays):.3g}"
        rows[name] = [statistics.fmean(delays), spread, wait, makespan]
    return Grid(("D", "D by draw", "W", "makespan"), rows)


def _lasting(seconds: Mapping[str, tuple[float, float]]) -> ProfileFile:
    """The paper's profile with other lengths of preparation and online phase."""
    workload = read("paper")
    jobs = [
        {**job, "seconds": seconds[job["model"]][0 if job["phase"] == "pre" else 1]}
        for job in workload.jobs
    ]
    return replace(workload, jobs=tuple(jobs))


def figure_2(at: Workplace) -> Grid:
    case = _case(
        at,
        workload="m1=8,m2=4,hinet=4,alexnet=3,vgg16=1",
        traffic=Traffic(1e6),
        jobs_per_model=None,
    )
    results = _compare(case.with_policies([*PAPERS, *study.OURS], (0.0,)))
    rows: dict[str, list[Cell]] = {"one by one": [results[0].baseline.makespan]}
    rows |= {result.case.policy: [result.figures.makespan] for result in results}
    return Grid(("makespan",), rows)


def figure_5(at: Workplace) -> Grid:
    case = _case(at, workload="m1=40,m2=20,hinet=20,alexnet=15,vgg16=5", policy="priority")
    record = study.simulate(case)
    rows: dict[str, Sequence[Cell]] = {}
    for model in sorted({job.model for job in record.jobs}):
        waits = [entry.start - entry.arrival for entry in record.inputs if entry.model == model]
        lengths = [
            [job.end - job.start for job in record.jobs if (job.model, job.phase) == (model, phase)]
            for phase in Phase
        ]
        rows[model] = [
            float(len(waits)),
            *(statistics.fmean(values) for values in (waits, *lengths)),
        ]
    return Grid(("requests", "wait", "preparation", "online"), rows)


def figure_6(at: Workplace) -> Grid:
    rows: dict[str, Sequence[Cell]] = {}
    for workload in WORKLOADS:
        for policy in (*PAPERS, study.OURS[0]):
            cases = [
                _case(at, workload=workload, policy=policy, traffic=Traffic(rate)) for rate in RATES
            ]
            rows[f"{workload}, {policy}"] = [result.figures.delay_95 for result in _compare(cases)]
    return Grid(tuple(f"{rate:g}/s" for rate in RATES), rows)


def threads(at: Workplace) -> Grid:
    rows: dict[str, Sequence[Cell]] = {}
    for batch in (1, 2) if at.quick else (1, 2, 4, 8, 16, 32):
        run = at.run("m1", Fss(), batch)
        total = run.offline.seconds + run.online.seconds
        rows[f"batch {batch}"] = [run.offline.seconds, run.online.seconds, batch / total]
    return Grid(("offline", "online", "samples/s"), rows)


def profiles(at: Workplace) -> Grid:
    rows: dict[str, Sequence[Cell]] = {}
    for model in ("m1",) if at.quick else ("m1", "hinet", "m2"):
        path = at.model(model)
        at.report(f"{model}, again and again")
        runs = [run_locally(path, suite=Fss()) for _ in range(4 if at.quick else 13)]
        cells: list[Cell] = []
        for phase in ("offline", "online"):
            seconds = [getattr(run, phase).seconds for run in runs]
            estimate = statistics.median(seconds[:3])
            cells.append(
                100 * statistics.median(abs(value - estimate) / estimate for value in seconds[3:])
            )
        rows[model] = cells
    return Grid(("offline", "online"), rows)


def starvation(at: Workplace) -> Grid:
    rows: dict[str, Sequence[Cell]] = {}
    busy = _case(at, traffic=Traffic(2.0), policy="priority", cores=48)
    cases = {
        "first come, first served": replace(busy, policy="fcfs"),
        "priority, beta 0.1": busy,
        "shortest first, beta 0": replace(busy, beta=0.0),
    }
    columns = SMALL_MODELS if at.quick else NETWORKS
    for name, case in cases.items():
        delays = figures(study.simulate(case)).delay_of
        rows[name] = [delays[column] for column in columns]
    return Grid(columns, rows)


SMALL_MODELS = ("m1", "m2")


def partition(at: Workplace) -> Grid:
    """Requests of each model go to a machine of its own with a part of the cores and memory."""
    rows: dict[str, Sequence[Cell]] = {}
    for workload in WORKLOADS:
        case = _case(at, workload=workload, traffic=Traffic(1.0), jobs_per_model=None)
        shared = figures(study.simulate(case))
        parts = [figures(record) for record in study.partitioned(case)]
        inputs = sum(part.inputs for part in parts)
        delay = sum(part.delay * part.inputs for part in parts) / inputs
        rows[f"{workload}, shared"] = [shared.delay, shared.makespan]
        rows[f"{workload}, a part for each model"] = [delay, max(part.makespan for part in parts)]
    return Grid(("D", "makespan"), rows)
