"""How long 100 clients wait that ask again at once: what is queueing, and what is the policy."""

from __future__ import annotations

import heapq
import random

import numpy as np

from privet.scheduler import (
    GIB,
    Demand,
    Ended,
    Key,
    Limits,
    Machine,
    Phase,
    Profiles,
    Scheduler,
    Start,
    Submission,
    Usage,
    named,
)

CLIENTS, CORES = 100, 2
SECONDS = {Phase.PRE: 0.03, Phase.ON: 0.02}
SPREAD = 0.3
"""Standard deviation of the logarithm of a job's length."""

FIRST, LAST = 10.0, 60.0


def delays(policy: str) -> list[float]:
    """Seconds from question to answer, of the answers from `FIRST` to `LAST`."""
    draw, profiles = random.Random(1), Profiles()
    for phase, seconds in SECONDS.items():
        profiles.set(Key("m", "fss", 1, phase), Demand(1, 1000, seconds))
    scheduler = Scheduler([Machine("here", CORES, GIB)], profiles, named(policy), Limits())
    requests: dict[str, tuple[float, str]] = {}
    jobs: list[tuple[float, str, Phase, float]] = []
    waits: list[float] = []
    count, now = 0, 0.0

    def ask(client: str) -> None:
        nonlocal count
        count += 1
        requests[f"r{count}"] = now, client
        scheduler.submit(now, Submission(f"r{count}", client, "m", "fss"))

    for number in range(CLIENTS):
        ask(f"c{number}")
    while now < LAST:
        for action in scheduler.decide(now):
            if isinstance(action, Start):
                factor = draw.lognormvariate(-SPREAD * SPREAD / 2, SPREAD)
                duration = SECONDS[action.phase] * factor
                heapq.heappush(jobs, (now + duration, action.job, action.phase, duration))
            elif isinstance(action, Ended):
                start, client = requests.pop(action.id)
                if now > FIRST:
                    waits.append(now - start)
                ask(client)
        now, job, phase, duration = heapq.heappop(jobs)
        material = job if phase is Phase.PRE else None
        scheduler.finished(now, job, Usage(duration, 1000, 1000), material)
    return waits


def test_the_tail_of_equal_clients_is_that_of_fair_shares(figures: list[str]) -> None:
    """A client pays for what its jobs really took: whoever had long ones waits for all others."""
    ratios = {}
    for policy in ("fair+priority", "priority"):
        median, late = (float(value) for value in np.percentile(delays(policy), (50, 99)))
        ratios[policy] = late / median
        figures.append(f"{policy}: median {median:.2f} s, 99 % within {late:.2f} s")
    assert ratios["priority"] < 1.2
    assert ratios["fair+priority"] > 1.3
