"""How long the scheduler thinks: processor time of decisions with many jobs in its queues."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import ParamSpec, TypeVar

from privet.scheduler import (
    GIB,
    Demand,
    Key,
    Machine,
    Phase,
    Policy,
    Profiles,
    Scheduler,
    Start,
    Submission,
    Usage,
)

MODELS = ("m1", "m2", "hinet", "alexnet", "vgg16")
SUITES = ("first", "second")

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Overhead:
    """Processor seconds for each call with `queued` jobs waiting: mean and 99th percentile of
    `decide` (which starts the next job when one has ended), means of `submit` and `finished`."""

    policy: str
    queued: int
    decide: float
    decide_99: float
    submit: float
    finished: float


def measure(policy: Policy, queued: int = 10_000, decisions: int = 1000) -> Overhead:
    """Fills the queues of a scheduler with 96 busy cores, then ends and starts jobs one by one.

    Python's collector rests meanwhile: it would count what else this process keeps.
    """
    collected = gc.isenabled()
    gc.disable()
    try:
        return _measure(policy, queued, decisions)
    finally:
        if collected:
            gc.enable()


def _measure(policy: Policy, queued: int, decisions: int) -> Overhead:
    profiles = Profiles()
    for number, model in enumerate(MODELS):
        for suite in SUITES:
            profiles.set(Key(model, suite, 1, Phase.PRE), Demand(1 + number, GIB, 3.0 + number))
            profiles.set(Key(model, suite, 1, Phase.ON), Demand(1 + number, GIB, 1.0 + number))
    scheduler = Scheduler([Machine("m0", 96, 256 * GIB)], profiles, policy)
    submits = [_timed(_submit, scheduler, number, 0.0)[0] for number in range(queued)]
    running = [action.job for action in scheduler.decide(0.0) if isinstance(action, Start)]
    ends, decides = [], []
    for step in range(decisions):
        now = float(step + 1)
        ends.append(_timed(scheduler.finished, now, running.pop(0), Usage(3.0, GIB))[0])
        duration, actions = _timed(scheduler.decide, now)
        decides.append(duration)
        running += [action.job for action in actions if isinstance(action, Start)]
        _submit(scheduler, queued + step, now)
    decides.sort()
    slow = decides[int(0.99 * len(decides))]
    return Overhead(policy.name, queued, fmean(decides), slow, fmean(submits), fmean(ends))


def _submit(scheduler: Scheduler, number: int, now: float) -> None:
    model, suite = MODELS[number % len(MODELS)], SUITES[number % len(SUITES)]
    client = f"c{number % 50}"
    scheduler.submit(now, Submission(f"r{number}", client, model, suite))


def _timed(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> tuple[float, T]:
    began = time.thread_time()
    result = call(*args, **kwargs)
    return time.thread_time() - began, result
