"""Privet as a contender: `privet.run`, the way users run it."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

import privet
from benches.record import Sample
from benches.tasks import Floats, Task
from privet import keys
from privet.compiler.compile import Compiled, compile
from privet.suites import MaterialSuite

NAME = "privet"
ONE_BIT = "privet-one-bit"
DEALT = "privet-gmw-dealt"
FSS = "privet-fss"
SUITES: dict[str, MaterialSuite] = {
    NAME: privet.Gmw(),
    ONE_BIT: privet.Gmw(truncation="one-bit"),
    DEALT: privet.Gmw(correlations="dealer"),
    FSS: privet.Fss(),
}
"""Suites to run a task in. One-bit truncation is weaker
than the default, and what peers do."""


def prepare(model: Path, sample: Floats) -> Compiled:
    """The compiled program, its ranges measured on the very input; not part of the time."""
    return compile(model, calibration=[sample], smooth="piecewise")


def measure(name: str, task: Task, compiled: Compiled, sample: Floats, repetition: int) -> Sample:
    """One offline and one online phase between fresh processes.

    The offline phase includes all that a first contact takes: keys and base OTs; with a dealer, not
    the hidden weights, which travel once for each client.
    """
    suite = SUITES[name]
    load_seconds = None if suite.dealt else _load(compiled)
    run = privet.run(compiled, [sample], suite=suite)
    phases = (run.offline, run.online)
    return Sample(
        task.name,
        name,
        repetition,
        load_seconds=load_seconds,
        seconds=sum(phase.seconds for phase in phases),
        offline_seconds=run.offline.seconds,
        online_seconds=run.online.seconds,
        bytes_sent=sum(phase.bytes_client + phase.bytes_server for phase in phases),
        dealer_seconds=run.dealer.seconds if run.dealer else None,
        dealt_bytes=run.dealer.bytes_client + run.dealer.bytes_server if run.dealer else None,
        rounds=sum(phase.rounds for phase in phases),
        peak_rss_mb=max(phase.peak_rss_mb for phase in phases),
        max_abs_error=run.max_abs_error,
        largest_output=max(float(np.abs(array).max()) for array in run.reference.values()),
    )


def _load(compiled: Compiled) -> float:
    """Seconds in which a server loads a program and prepares its weights, once for all clients."""
    with tempfile.TemporaryDirectory(prefix="privet-bench-") as folder:
        keys.make(Path(folder) / "keys", ())
        credentials = privet.Credentials.from_directory(Path(folder) / "keys", "server")
        with privet.Server(credentials, state=Path(folder) / "state") as server:
            start = time.perf_counter()
            server.add(compiled.program, compiled.weights)
            return time.perf_counter() - start
