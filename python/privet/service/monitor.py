"""The paper's figures over the last minutes: delay D, wait W, throughput, and how busy cores were.

D is from a request to the end of its inference, W from the request to the start of it (SwiftSNNI,
Section 5.3); a notice before it counts for neither.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

SPAN_SECONDS = 60.0
MOST = 20_000


@dataclass(frozen=True)
class Span:
    """A job that had `cores` from when to when."""

    cores: tuple[int, ...]
    started: float
    ended: float


@dataclass(frozen=True)
class Done:
    """A request that was done at the time `at`; times in seconds."""

    at: float
    delay: float
    wait: float


class Monitor:
    """Remembers requests for a span of time."""

    def __init__(self) -> None:
        self._done: deque[Done] = deque(maxlen=MOST)

    def add(self, done: Done) -> None:
        """A request was done."""
        self._done.append(done)

    def document(self, now: float, started: float, spans: Iterable[Span], cores: int) -> Any:
        """The figures of the last minute, or since the service `started`; null where there is
        nothing to tell. `spans` are those of jobs that ran or run then."""
        while self._done and self._done[0].at < now - SPAN_SECONDS:
            self._done.popleft()
        span = max(1e-9, min(SPAN_SECONDS, now - started))
        delays = sorted(done.delay for done in self._done)
        count = len(delays)
        busy = sum(
            len(it.cores) * max(0.0, min(now, it.ended) - max(now - span, it.started))
            for it in spans
        )
        return {
            "seconds": span,
            "done": count,
            "per_second": count / span,
            "mean_delay": sum(delays) / count if count else None,
            "delay_95": delays[min(count - 1, int(0.95 * count))] if count else None,
            "mean_wait": sum(done.wait for done in self._done) / count if count else None,
            "utilisation": min(1.0, busy / (cores * span)) if cores else None,
        }
