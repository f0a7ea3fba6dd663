"""The last minutes of every core: which job ran when, as in the paper's Figure 5."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from privet.service.records import Run

WINDOW_SECONDS = 600.0
MOST_RUNS = 4000


class Timeline:
    """Runs that ended within the window; times in seconds since 1970."""

    def __init__(self, earlier: Iterable[Run] = ()) -> None:
        self._runs: deque[Run] = deque(earlier, maxlen=MOST_RUNS)

    def add(self, run: Run) -> None:
        """A run has ended."""
        self._runs.append(run)

    def runs(self) -> Iterable[Run]:
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
                "model": shown(run.model),
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


def shown(model: str) -> str:
    """A schedule's name of a model as people read it: without the program's hash."""
    return model.partition("@")[0]
