"""Privet as a contender: `privet.run`, the way users run it."""

from __future__ import annotations

from pathlib import Path

import privet
from benches.samples import Sample
from benches.tasks import Floats, Task
from privet.compile import Compiled, compile

NAME = "privet"


def prepare(model: Path, sample: Floats) -> Compiled:
    """The compiled program, its ranges measured on the very input; not part of the time."""
    return compile(model, calibration=[sample])


def measure(task: Task, compiled: Compiled, sample: Floats, repetition: int) -> Sample:
    """One offline and one online phase between two fresh processes."""
    run = privet.run(compiled, [sample])
    phases = (run.offline, run.online)
    return Sample(
        task.name,
        NAME,
        repetition,
        seconds=sum(phase.seconds for phase in phases),
        offline_seconds=run.offline.seconds,
        online_seconds=run.online.seconds,
        bytes_sent=sum(phase.bytes_client + phase.bytes_server for phase in phases),
        rounds=sum(phase.rounds for phase in phases),
        peak_rss_mb=max(phase.peak_rss_mb for phase in phases),
        max_abs_error=run.max_abs_error,
    )
