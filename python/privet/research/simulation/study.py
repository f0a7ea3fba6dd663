"""Runs to compare: a case is a workload, a rate and a policy.

Its figures stand beside the sequential baseline on the same requests at the same times, and beside
the paper's. `points` varies one thing at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from privet.errors import InputError
from privet.research.papers.paper import paper
from privet.research.simulation.clock import Clock, Setup, sequential
from privet.research.simulation.profile_file import ProfileFile
from privet.research.simulation.record import Figures, SimulationRecord, figures
from privet.research.simulation.workload import WORKLOADS, Arrival, Traffic, arrivals, requests
from privet.scheduler import GIB, Limits, Machine, Phase, named

#: The paper's share of notices, rates in requests a second, and policies.
NOTICES = 0.25
RATES = (0.25, 0.5, 1.0)
PAPERS = ("fcfs", "priority")
OURS = ("ahead+priority", "shared+priority", "shared+ahead+urgent")


@dataclass(frozen=True)
class SimulationCase:
    """What to simulate. `memory` in bytes for each of `machines`, as are `cores`."""

    profile: ProfileFile
    workload: str = "mixed"
    policy: str = "fcfs"
    traffic: Traffic = field(default_factory=Traffic)
    suites: tuple[str, ...] = ()
    cores: int = 96
    memory: int = 256 * GIB
    machines: int = 1
    beta: float = 0.1
    jobs_per_model: int | None = None
    in_line: frozenset[Phase] = frozenset()
    jitter: float = 0.05
    seed: int = 1

    def with_policies(
        self, policies: Iterable[str], shares: Sequence[float]
    ) -> Iterator[SimulationCase]:
        """The same with each policy and each share of notices."""
        for policy in policies:
            for notices in shares:
                traffic = replace(self.traffic, notices=notices)
                yield replace(self, policy=policy, traffic=traffic)


@dataclass(frozen=True)
class SimulationResult:
    """What a case gave; `baseline` is the sequential run of the same requests on one machine."""

    case: SimulationCase
    figures: Figures
    baseline: Figures
    record: SimulationRecord

    @property
    def label(self) -> str:
        """The policy, and what it is held to."""
        limit = self.case.jobs_per_model
        return self.case.policy + (f", {limit} job a model" if limit is not None else "")

    @property
    def speedup(self) -> float:
        """The paper's: makespan of the baseline by ours."""
        return self.baseline.makespan / self.figures.makespan

    def printed(self, column: str) -> float | None:
        """The paper's figure for this case, if there is one."""
        case = self.case
        if case.profile.name != "paper" or case.machines > 1:
            return None
        return printed(case.workload, f"{case.policy}, {case.traffic.rate:g}/s", column)

    @property
    def paper_delay(self) -> float | None:
        """The paper's D in seconds for this case's share of notices."""
        notices = self.case.traffic.notices
        if notices not in (0, NOTICES):
            return None
        return self.printed("D, 25 % announced" if notices else "D")


def printed(workload: str, policy: str, column: str) -> float | None:
    """A figure of the paper's Table 2, if it is there. `policy` is `ms-shark`, its baseline, or a
    policy with a rate, such as `fcfs, 1/s`."""
    cell = paper("swiftsnni").item("table-2").printed.cell(f"{workload}, {policy}", column)
    return None if cell is None else float(cell)


def suites_of(case: SimulationCase) -> list[str]:
    """The suites that requests take in turn at random: as given, or all that have every model.
    Raises `InputError` if the profile lacks a model of the workload."""
    model_names = set(requests(case.workload))
    suites = list(case.suites) or [
        suite for suite in case.profile.suites() if case.profile.models(suite) >= model_names
    ]
    for suite in suites:
        missing = model_names - case.profile.models(suite)
        if missing:
            raise InputError(
                f"profile {case.profile.name} has no {', '.join(sorted(missing))} under {suite}"
            )
    if not suites:
        raise InputError(f"profile {case.profile.name} has no suite with all models")
    return suites


def simulate(case: SimulationCase, model: str | None = None) -> SimulationRecord:
    """Runs a case, or what asks for one model; every decision is audited."""
    machines = [Machine(f"m{n}", case.cores, case.memory) for n in range(case.machines)]
    limits = Limits(jobs_per_model=case.jobs_per_model, in_line=case.in_line)
    setup = Setup(machines, case.profile.profiles(), limits, case.jitter, case.seed)
    submissions = [
        arrival
        for arrival in _arrivals(case, case.traffic)
        if model in (None, arrival.submission.model)
    ]
    return Clock(setup, named(case.policy, case.beta)).run(submissions)


def partitioned(case: SimulationCase) -> list[SimulationRecord]:
    """A record for each model whose requests have a fixed part of the cores and memory alone."""
    models = requests(case.workload)
    part = replace(case, cores=case.cores // len(models), memory=case.memory // len(models))
    return [simulate(part, model) for model in models]


def baseline(case: SimulationCase) -> SimulationRecord:
    """The sequential run of the same requests on one machine."""
    machine = Machine("m0", case.cores, case.memory)
    traffic = replace(case.traffic, notices=0.0)
    submissions = _arrivals(case, traffic)
    return sequential(machine, case.profile.profiles(), submissions, case.jitter, case.seed)


def _arrivals(case: SimulationCase, traffic: Traffic) -> list[Arrival]:
    return arrivals(requests(case.workload), suites_of(case), traffic, case.seed)


def compare(cases: Iterable[SimulationCase]) -> Iterator[SimulationResult]:
    """Runs each case, and the baseline once for each set of requests."""
    baselines: dict[object, Figures] = {}
    for case in cases:
        plain = replace(case.traffic, notices=0.0)
        key = (case.profile.name, case.workload, plain, case.suites, case.cores, case.seed)
        if key not in baselines:
            baselines[key] = figures(baseline(case))
        record = simulate(case)
        yield SimulationResult(case, figures(record), baselines[key], record)


def table_two(case: SimulationCase) -> Iterator[SimulationCase]:
    """The cases of the paper's Table 2, and the same for our policies. The paper's policies stand
    there twice: with one job of a model at a time too, which it says it keeps to."""
    for workload in WORKLOADS:
        for rate in RATES:
            traffic = replace(case.traffic, rate=rate)
            variant = replace(case, workload=workload, traffic=traffic)
            one_job = replace(variant, jobs_per_model=1)
            yield from one_job.with_policies(PAPERS, (0.0, NOTICES))
            yield from variant.with_policies(PAPERS + OURS, (0.0, NOTICES))


POLICIES = (*PAPERS, "deadline", "fair", "urgent", *OURS)
BETAS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
MACHINES = (1, 2, 4)
SWEPT_RATES = (0.25, 0.5, 1.0, 1.5, 2.0)


@dataclass(frozen=True)
class Point:
    """A case of the sweep `sweep` at the place `x` on its axis."""

    sweep: str
    x: float
    case: SimulationCase


def points(case: SimulationCase) -> Iterator[Point]:
    """Sweeps over rates, notices and machines with each policy, and over beta.

    Beta and machines only matter when jobs wait: they are swept at twice the rate of `case`.
    """
    busy = replace(case, traffic=replace(case.traffic, rate=2 * case.traffic.rate))
    for policy in POLICIES:
        for rate in SWEPT_RATES:
            traffic = replace(case.traffic, rate=rate * case.traffic.rate)
            yield Point("rate", traffic.rate, replace(case, policy=policy, traffic=traffic))
        for share in SHARES:
            traffic = replace(case.traffic, notices=share)
            yield Point("notices", share, replace(case, policy=policy, traffic=traffic))
        for machines in MACHINES:
            yield Point("machines", machines, replace(busy, policy=policy, machines=machines))
    for policy in ("priority", "urgent", "shared+priority"):
        for beta in BETAS:
            yield Point("beta", beta, replace(busy, policy=policy, beta=beta))
