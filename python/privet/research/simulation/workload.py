"""Requests over time: the paper's two workloads, with Poisson arrivals from a seed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from privet.errors import InputError, Misuse
from privet.scheduler import Submission

#: Requests by model: the paper's Workload 1 (mixed) and 2 (light-dominant), Section 5.
WORKLOADS: Mapping[str, Mapping[str, int]] = {
    "mixed": {"m1": 200, "m2": 100, "hinet": 100, "alexnet": 75, "vgg16": 25},
    "light": {"m1": 330, "m2": 55, "hinet": 75, "alexnet": 35, "vgg16": 5},
}


def requests(workload: str) -> Mapping[str, int]:
    """Requests by model, of one of `WORKLOADS` or of one's own such as `m1=120,hinet=80`. Raises
    `InputError` if it is neither."""
    if workload in WORKLOADS:
        return WORKLOADS[workload]
    counts = {}
    for part in workload.split(","):
        model, _, count = part.partition("=")
        if not model or not count.isdecimal() or int(count) < 1:
            raise InputError(
                f"no workload {workload!r}; take {' or '.join(WORKLOADS)}, or m1=120,hinet=80"
            )
        counts[model] = int(count)
    return counts


@dataclass(frozen=True)
class Arrival:
    """A submission at a time in seconds."""

    at: float
    submission: Submission


@dataclass(frozen=True)
class Traffic:
    """How requests come: `rate` of them a second on average, in random order, a share of them
    (`notices`, from 0 to 1) announced `lead` seconds before, from `clients` clients in turn at
    random. `timeout` is each request's, in seconds."""

    rate: float = 1.0
    notices: float = 0.0
    lead: float = 30.0
    clients: int = 1
    timeout: float | None = None

    def __post_init__(self) -> None:
        if not (self.rate > 0 and 0 <= self.notices <= 1 and self.lead >= 0 and self.clients >= 1):
            raise Misuse(
                "a rate is above 0, a share of notices lies between 0 and 1, and a lead is no less "
                "than 0"
            )


def arrivals(
    counts: Mapping[str, int], suites: Sequence[str], traffic: Traffic, seed: int
) -> list[Arrival]:
    """The submissions in the order of time: requests `r0`, `r1`, ... and notices `n0`, ... of
    them. The same seed gives the same requests at the same times, whatever the notices.

    A notice that would come before time 0 comes at 0.
    """
    order = random.Random(f"order {seed}")
    models = [model for model, count in sorted(counts.items()) for _ in range(count)]
    order.shuffle(models)
    gaps, choices, noticed = (
        random.Random(f"{purpose} {seed}") for purpose in ("gaps", "who", "noticed")
    )
    now, out = 0.0, []
    for number, model in enumerate(models):
        now += gaps.expovariate(traffic.rate)
        client, suite = (
            f"c{choices.randrange(traffic.clients)}",
            suites[choices.randrange(len(suites))],
        )
        notice = None
        if noticed.random() < traffic.notices:
            notice = f"n{number}"
            submission = Submission(notice, client, model, suite, notice=True)
            out.append(Arrival(max(0.0, now - traffic.lead), submission))
        request = Submission(
            f"r{number}", client, model, suite, refers_to=notice, timeout=traffic.timeout
        )
        out.append(Arrival(now, request))
    return sorted(out, key=lambda arrival: arrival.at)
