"""One measurement, whoever made it."""

from __future__ import annotations

from dataclasses import dataclass, replace

# How far a result may be from plaintext, as a share of the largest output where that is above one:
# the errors of fixed point stay below it in every task, and any slip lies above.
TOLERANCE = 0.05


@dataclass(frozen=True)
class Sample:
    """One private run of a task between two processes, or why there is none (`failure`).

    `bytes_sent` counts both parties, `peak_rss_mb` the larger process. `rounds` is None where a
    contender does not count them, and `offline_seconds` and `online_seconds` where it does not
    tell the phases apart. `load_seconds` is what a server does once for all clients, not part of
    `seconds`; a contender without it does all work in every run. `again_seconds` and
    `again_bytes_sent` are a second run's in the same processes, which have their keys and base OTs
    by then; the first figures include those.
    `dealer_seconds` and `dealt_bytes` (to both parties) are a dealer's part, which lies within
    `offline_seconds`.
    `largest_output` is the plaintext's, which errors are held against.
    `others` is the share of the machine that went to other people's processes, 0 to 1.
    """

    task: str
    contender: str
    repetition: int
    seconds: float | None = None
    offline_seconds: float | None = None
    online_seconds: float | None = None
    bytes_sent: int | None = None
    load_seconds: float | None = None
    again_seconds: float | None = None
    again_bytes_sent: int | None = None
    dealer_seconds: float | None = None
    dealt_bytes: int | None = None
    rounds: int | None = None
    peak_rss_mb: float | None = None
    max_abs_error: float | None = None
    largest_output: float | None = None
    others: float | None = None
    failure: str | None = None

    def checked(self) -> Sample:
        """The same, or a failure if the result is too far from plaintext."""
        allowed = TOLERANCE * max(1.0, self.largest_output or 0.0)
        if self.max_abs_error is None or self.max_abs_error <= allowed:
            return self
        return replace(self, failure=f"the result is wrong by {self.max_abs_error:.3g}")
