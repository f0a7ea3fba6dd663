"""How long 100 clients wait that ask again at once: what is queueing, and what is the policy."""

from __future__ import annotations

import heapq
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from privet.scheduler.policies import fair
from privet.scheduler.snapshot import RunningStatus

CLIENTS, CORES = 100, 2
SECONDS = {Phase.PRE: 0.03, Phase.ON: 0.02}
SPREAD = 0.3
"""Standard deviation of the logarithm of a job's length."""

FIRST, LAST = 10.0, 60.0


def delays(policy: str, delayed: float = 0.0) -> list[float]:
    """Seconds from question to answer, of the answers from `FIRST` to `LAST`. So many of all jobs
    are delayed by half a second, by nobody's fault."""
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
                hiccup = 0.5 if draw.random() < delayed else 0.0
                duration = SECONDS[action.phase] * factor + hiccup
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


def test_the_tail_of_equal_clients(figures: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The control has no accounts: whoever had long jobs waits for all others."""
    late = {}
    for name, policy, seconds in (
        ("fair", "fair+priority", fair.ACCOUNT_SECONDS),
        ("control", "fair+priority", 0.0),
        ("priority", "priority", 0.0),
    ):
        monkeypatch.setattr(fair, "ACCOUNT_SECONDS", seconds)
        for delayed in (0.0, 0.001):
            points = np.percentile(delays(policy, delayed), (50, 99, 100))
            late[name, delayed] = points / points[0]
            median, most, last = map(float, points)
            told = f"median {median:.2f} s, 99 % within {most:.2f} s, all within {last:.2f} s"
            figures.append(f"{name}, {delayed:.1%} delayed: {told}")
    assert late["priority", 0.0][1] < 1.2
    assert late["fair", 0.0][1] < 1.3 < 1.5 < late["control", 0.0][1]
    assert late["fair", 0.001][2] < 3.0 < 9.0 < late["control", 0.001][2]


@given(st.lists(st.tuples(st.floats(0, 20), st.floats(0, 20))))
def test_an_account_holds_little_and_forgives_less(jobs: list[tuple[float, float]]) -> None:
    """A client is charged with what its jobs took but for the account, and a share in the long run;
    never with more."""
    account = fair.Account()
    charged = taken = estimated = 0.0
    for estimate, seconds in jobs:
        charged += estimate + account.enter(estimate, seconds)
        taken, estimated = taken + seconds, estimated + estimate
        held = fair.ACCOUNT_SECONDS + fair.WRITTEN_OFF * estimated
        assert taken - held - 1e-6 <= charged <= taken + 1e-6


@pytest.mark.parametrize("kept", [5, 3])
def test_what_a_forgotten_account_held_is_charged(
    kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of five clients one has jobs that take twice their estimate, whoever still has an account."""
    monkeypatch.setattr(fair, "KEPT", kept)
    policy, now, taken = fair.Fair(), 0.0, dict.fromkeys("abcde", 0.0)
    for number in range(5000):
        client = min("abcde", key=policy.share)
        run = RunningStatus(
            f"{number}",
            "",
            Phase.ON,
            client,
            "m",
            "fss",
            1,
            "here",
            (0,),
            0,
            now,
            now + 0.1,
            now + 9.0,
            False,
        )
        policy.began(now, run)
        now += 0.2 if client == "a" else 0.1
        policy.ended(now, run)
        taken[client] += now - run.started
    assert taken["a"] < 1.1 * taken["b"]
