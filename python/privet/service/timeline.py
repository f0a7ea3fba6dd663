"""The last minutes: which job ran when on every core, and the paper's figures over them.

Delay D is from a request to the end of its inference, wait W from the request to the start of it
(SwiftSNNI, Section 5.3 and Figure 5); a notice before it counts for neither.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from privet.service.records import JobRun
from privet.service.repository import FETCH

WINDOW_SECONDS = 600.0
MOST_RUNS = 4000


class Timeline:
    """Runs that ended within the window; times in seconds since 1970."""

    def __init__(self, earlier: Iterable[JobRun] = ()) -> None:
        self._runs: deque[JobRun] = deque(earlier, maxlen=MOST_RUNS)

    def add(self, run: JobRun) -> None:
        """A run has ended."""
        self._runs.append(run)

    def runs(self) -> Iterable[JobRun]:
        """The runs that are remembered."""
        return self._runs

    def document(self, now: float, since: float = 0.0) -> list[dict[str, Any]]:
        """The runs of the window that ended after `since`, the oldest first, for the page."""
        while self._runs and self._runs[0].ended < now - WINDOW_SECONDS:
            self._runs.popleft()
        return [
            {
                "job": run.job,
                "phase": run.phase,
                "model": model_name(run.model),
                "suite": run.suite,
                "machine": run.machine,
                "cores": list(run.cores),
                "started": run.started,
                "ended": run.ended,
                "failure": run.failure,
            }
            for run in self._runs
            if run.ended > since
        ]


def phase_of(phase: str, suite: str) -> str:
    """What a job does, of which schedules know whether it makes material: `pre`, `on` for an
    inference, or `fetch`."""
    return "fetch" if suite.endswith(FETCH) else phase


def model_name(model: str) -> str:
    """A schedule's name of a model as people read it: without the program's hash."""
    return model.partition("@")[0]


SPAN_SECONDS = 60.0
MOST = 20_000


@dataclass(frozen=True)
class RunSpan:
    """A job that had `cores` from when to when."""

    cores: tuple[int, ...]
    started: float
    ended: float


@dataclass(frozen=True, slots=True)
class CompletedRequest:
    """A request that was done at the time `at`; times in seconds."""

    at: float
    delay: float
    wait: float


class Monitor:
    """Remembers requests for a span of time."""

    def __init__(self) -> None:
        self._completed: deque[CompletedRequest] = deque(maxlen=MOST)

    def add(self, request: CompletedRequest) -> None:
        """A request was done."""
        self._completed.append(request)

    def document(self, now: float, started: float, spans: Iterable[RunSpan], cores: int) -> Any:
        """The figures of the last minute, or since the service `started`; null where there is
        nothing to tell. `spans` are those of jobs that ran or run then."""
        while self._completed and self._completed[0].at < now - SPAN_SECONDS:
            self._completed.popleft()
        span = max(1e-9, min(SPAN_SECONDS, now - started))
        delays = sorted(job.delay for job in self._completed)
        count = len(delays)
        busy = sum(
            len(interval.cores)
            * max(0.0, min(now, interval.ended) - max(now - span, interval.started))
            for interval in spans
        )
        return {
            "seconds": span,
            "done": count,
            "per_second": count / span,
            "mean_delay": sum(delays) / count if count else None,
            "delay_95": delays[min(count - 1, int(0.95 * count))] if count else None,
            "mean_wait": sum(job.wait for job in self._completed) / count if count else None,
            "utilisation": min(1.0, busy / (cores * span)) if cores else None,
        }
