"""Runs under the simulated clock: times known by hand, figures, and the paper's targets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from privet.research.simulation.clock import Clock, Setup, sequential
from privet.research.simulation.overhead import measure
from privet.research.simulation.profile_file import read
from privet.research.simulation.record import figures
from privet.research.simulation.study import (
    OURS,
    PAPERS,
    SimulationCase,
    baseline,
    compare,
    simulate,
)
from privet.research.simulation.workload import Arrival, Traffic, arrivals
from privet.scheduler import (
    GIB,
    Demand,
    Fcfs,
    Key,
    Machine,
    Outcome,
    Phase,
    Profiles,
    Scaling,
    Submission,
    named,
)

ONE = Machine("m0", 1, 4 * GIB)
TWO = Machine("m0", 2, 4 * GIB)


def profiles() -> Profiles:
    """T_pre 6 s, T_on 2 s, on one core; two cores halve them."""
    table = Profiles(scaling=Scaling())
    table.set(Key("m", "fss", 1, Phase.PRE), Demand(1, GIB, 6.0, 10))
    table.set(Key("m", "fss", 1, Phase.ON), Demand(1, GIB, 2.0))
    return table


def request(id: str, at: float, to: str | None = None, timeout: float | None = None) -> Arrival:
    """A request, or a notice if its id begins with n."""
    notice = id.startswith("n")
    return Arrival(at, Submission(id, "c0", "m", "fss", 1, notice, to, timeout))


def test_two_requests_on_two_cores_overlap() -> None:
    setup = Setup([TWO], profiles(), jitter=0.0)
    record = Clock(setup, Fcfs()).run([request("r0", 0.0), request("r1", 1.0)])
    outcome = figures(record)
    assert (outcome.delay, outcome.wait, outcome.makespan) == (8.0, 6.0, 9.0)
    assert outcome.throughput == pytest.approx(2 / 9)
    assert outcome.utilisation == pytest.approx(16 / 18)
    assert outcome.ended == {"done": 2}
    assert [(job.job, job.cores, job.start, job.end) for job in record.jobs] == [
        ("r0/pre#1", (0,), 0.0, 6.0),
        ("r1/pre#1", (1,), 1.0, 7.0),
        ("r0/on#2", (0,), 6.0, 8.0),
        ("r1/on#2", (1,), 7.0, 9.0),
    ]


def test_a_notice_hides_the_t_pre() -> None:
    setup = Setup([ONE], profiles(), jitter=0.0)
    record = Clock(setup, Fcfs()).run([request("n0", 0.0), request("r0", 6.0, to="n0")])
    assert (figures(record).delay, figures(record).wait) == (2.0, 0.0)
    late = Clock(setup, Fcfs()).run([request("n0", 0.0), request("r0", 4.0, to="n0")])
    assert figures(late).wait == 2.0


def test_the_baseline_takes_requests_one_by_one_on_all_cores() -> None:
    record = sequential(TWO, profiles(), [request("r0", 0.0), request("r1", 1.0)], 0.0, 0)
    outcome = figures(record)
    assert (outcome.delay, outcome.wait, outcome.makespan, outcome.utilisation) == (
        5.5,
        4.5,
        8.0,
        1.0,
    )
    assert all(job.cores == (0, 1) for job in record.jobs)


def test_waits_are_those_of_queueing_theory() -> None:
    """One core, Poisson arrivals, equal services: Pollaczek and Khinchine's mean wait."""
    service, load = 1.0, 0.7
    table = Profiles()
    table.set(Key("m", "fss", 1, Phase.PRE), Demand(1, GIB, 0.0, 10))
    table.set(Key("m", "fss", 1, Phase.ON), Demand(1, GIB, service))
    waits = []
    for seed in range(3):
        requests = arrivals({"m": 1500}, ["fss"], Traffic(load / service), seed)
        waits.append(figures(Clock(Setup([ONE], table, jitter=0.0), Fcfs()).run(requests)).wait)
    expected = load * service / (2 * (1 - load))
    assert sum(waits) / len(waits) == pytest.approx(expected, rel=0.15)


def test_a_timeout_kills_what_runs() -> None:
    setup = Setup([ONE], profiles(), jitter=0.0)
    record = Clock(setup, Fcfs()).run([request("r0", 0.0, timeout=5.0), request("r1", 1.0)])
    assert record.outcomes == {"r0": Outcome.TIMED_OUT, "r1": Outcome.DONE}
    assert next((job.job, job.end, job.done) for job in record.jobs) == ("r0/pre#1", 5.0, False)


def test_the_same_case_gives_the_same_record() -> None:
    case = SimulationCase(
        read("ours"), "light", "shared+ahead+priority", Traffic(2.0, 0.25, clients=3)
    )
    first, second = simulate(case), simulate(case)
    assert (first.jobs, first.inputs, first.outcomes) == (
        second.jobs,
        second.inputs,
        second.outcomes,
    )
    assert first.jobs != simulate(replace(case, seed=2)).jobs


@pytest.mark.parametrize("machines", [1, 3])
def test_more_machines_do_not_break_the_rules(machines: int) -> None:
    case = SimulationCase(read("paper"), "mixed", "shared+ahead+fair", Traffic(3.0, 0.5, clients=5))
    record = simulate(replace(case, machines=machines))
    assert set(record.outcomes.values()) == {Outcome.DONE}
    assert len({job.machine for job in record.jobs}) == machines


def test_the_targets_are_met_and_our_policies_beat_the_papers(summary: list[str]) -> None:
    """Against the sequential baseline at one request a second: makespan 5.4 times shorter,
    throughput 5.6 times, delay 97 % lower."""
    case = SimulationCase(read("paper"), "mixed", traffic=Traffic(1.0))
    results = {
        comparison.case.policy: comparison
        for comparison in compare(case.with_policies([*PAPERS, *OURS], [0.0]))
    }
    for name, comparison in results.items():
        gain = 1 - comparison.figures.delay / comparison.baseline.delay
        speedup = comparison.figures.throughput / comparison.baseline.throughput
        summary.append(
            f"simulate mixed 1/s {name}: makespan {comparison.speedup:.1f}x, "
            f"throughput {speedup:.1f}x, delay {100 * gain:.2f} % lower"
        )
        assert comparison.speedup >= 5.4
        assert speedup >= 5.6
        assert gain >= 0.97
    papers = min(results[name].figures.delay for name in PAPERS)
    assert all(results[name].figures.delay < papers for name in OURS)


def test_one_job_of_a_model_at_a_time_gives_about_the_papers_speedup() -> None:
    """The paper names this constraint as its own ("model-batch exclusivity", Section 6)."""
    case = SimulationCase(read("paper"), "light", "fcfs", Traffic(1.0), jobs_per_model=1)
    (comparison,) = compare([case])
    speedup, throughput = comparison.printed("speed-up"), comparison.printed("done/s")
    assert comparison.speedup == pytest.approx(speedup, rel=0.1)
    assert comparison.figures.throughput == pytest.approx(throughput, rel=0.1)


def test_the_baseline_of_the_paper_fits_a_rate_of_a_quarter() -> None:
    """What the paper's page says of the row that names no rate."""
    delays = []
    for seed in range(8):
        case = SimulationCase(read("paper"), "mixed", traffic=Traffic(0.25), seed=seed)
        delays.append(figures(baseline(case)).delay)
    assert sum(delays) / len(delays) == pytest.approx(2246.09, rel=0.1)


def test_a_decision_with_10000_queued_jobs_takes_under_a_millisecond(summary: list[str]) -> None:
    for name in ("priority", "shared+ahead+urgent"):
        timing = measure(named(name), queued=10_000, decisions=300)
        summary.append(
            f"scheduler {name}: {1000 * timing.decide:.3f} ms a decision "
            f"with {timing.queued} queued"
        )
        assert timing.decide < 0.001
