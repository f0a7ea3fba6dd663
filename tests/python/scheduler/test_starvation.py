"""Bounded waits under sustained load, whatever the policy prefers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from privet.research.simulation.clock import Clock, Setup
from privet.research.simulation.workload import Arrival
from privet.scheduler import (
    GIB,
    Demand,
    Fcfs,
    Key,
    Limits,
    Machine,
    Phase,
    Policy,
    Priority,
    Profiles,
    Submission,
    named,
)
from privet.scheduler.policies import Candidate

PATIENCE = 60.0
LONGEST = 20.0


class Newest(Policy):
    """The newest first: the most unfair order."""

    name = "newest"

    def key(self, job: Candidate) -> float:
        """Minus the time of entry."""
        return -job.queued


def profiles() -> Profiles:
    """Narrow jobs of 4 s, and large ones of all cores and nearly all memory for 20 s and 10 s."""
    table = Profiles()
    for phase, narrow, large in ((Phase.PRE, 4.0, LONGEST), (Phase.ON, 2.0, 10.0)):
        table.set(Key("narrow", "fss", 1, phase), Demand(1, GIB, narrow))
        table.set(Key("large", "fss", 1, phase), Demand(4, 7 * GIB, large))
    return table


def load() -> list[Arrival]:
    """An hour in which narrow jobs alone keep 4 cores 75 % busy, and a large one every 150 s adds
    20 %."""
    out = [Arrival(2.0 * n, Submission(f"r{n}", f"c{n % 7}", "narrow", "fss")) for n in range(1800)]
    out += [Arrival(150.0 * n, Submission(f"w{n}", "big", "large", "fss")) for n in range(1, 24)]
    return sorted(out, key=lambda arrival: arrival.at)


def longest_wait(policy: Policy, limits: Limits) -> float:
    """Seconds that a large request waited at most for its T_on."""
    machine = Machine("here", 4, 8 * GIB)
    record = Clock(Setup([machine], profiles(), limits, jitter=0.0), policy).run(load())
    assert len(record.inputs) == 1823
    return max(entry.start - entry.arrival for entry in record.inputs if entry.model == "large")


@pytest.mark.parametrize(
    "make",
    [
        Fcfs,
        Newest,
        lambda: Priority(0.0),
        lambda: Priority(1.0),
        lambda: named("fair"),
        lambda: named("deadline"),
        lambda: named("urgent", beta=0.0),
        lambda: named("shared+ahead+priority", beta=0.0),
    ],
)
def test_large_requests_wait_a_bounded_time(make: Callable[[], Policy]) -> None:
    """In each of two queues: its patience, then what runs, then those who waited longer."""
    bound = 2 * (PATIENCE + 2 * LONGEST + 10.0)
    assert longest_wait(make(), Limits(patience=PATIENCE)) <= bound


def test_without_patience_the_worst_policy_starves_them() -> None:
    """The test above can fail: this order, with neither patience nor room kept, breaks its bound
    by far."""
    limits = Limits(patience=1e9, reserve=False)
    assert longest_wait(Newest(), limits) > 1000.0
