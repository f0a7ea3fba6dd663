"""Sweeps: one thing varied at a time, all else as told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from privet.research.simulation.study import OURS, PAPERS, Case

POLICIES = (*PAPERS, "deadline", "fair", "urgent", *OURS)
BETAS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
MACHINES = (1, 2, 4)
RATES = (0.25, 0.5, 1.0, 1.5, 2.0)


@dataclass(frozen=True)
class Point:
    """A case of the sweep `sweep` at the place `x` on its axis."""

    sweep: str
    x: float
    case: Case


def points(case: Case) -> Iterator[Point]:
    """Sweeps over rates, notices and machines with each policy, and over beta.

    Beta and machines only matter when jobs wait: they are swept at twice the rate of `case`.
    """
    busy = replace(case, traffic=replace(case.traffic, rate=2 * case.traffic.rate))
    for policy in POLICIES:
        for rate in RATES:
            moved = replace(case.traffic, rate=rate * case.traffic.rate)
            yield Point("rate", moved.rate, replace(case, policy=policy, traffic=moved))
        for share in SHARES:
            moved = replace(case.traffic, notices=share)
            yield Point("notices", share, replace(case, policy=policy, traffic=moved))
        for machines in MACHINES:
            yield Point("machines", machines, replace(busy, policy=policy, machines=machines))
    for policy in ("priority", "urgent", "shared+priority"):
        for beta in BETAS:
            yield Point("beta", beta, replace(busy, policy=policy, beta=beta))
