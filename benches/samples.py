"""One measurement, whoever made it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    """One private run of a task between two processes, or why there is none (`failure`).

    `bytes_sent` counts both parties, `peak_rss_mb` the larger process. `rounds` is None where a
    contender does not count them, and `offline_seconds` and `online_seconds` where it does not
    tell the phases apart. `load_seconds` is what a server does once for all clients, not part of
    `seconds`; a contender without it does all work in every run. `again_seconds` and
    `again_bytes_sent` are a second run's in the same processes, which have their keys and base OTs
    by then; the first figures include those.
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
    rounds: int | None = None
    peak_rss_mb: float | None = None
    max_abs_error: float | None = None
    others: float | None = None
    failure: str | None = None
