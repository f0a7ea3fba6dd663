"""What the scheduler bounds, whatever its policy."""

from __future__ import annotations

from dataclasses import dataclass

from privet.scheduler.submission import Phase


@dataclass(frozen=True)
class Limits:
    """Bounds; times in seconds.

    A job may take `job_factor` times its estimate, at least `job_floor` seconds, and never beyond
    the timeout of its submission. A job that could not finish for a cause outside it is run again
    at most `reruns` times. A job that has waited in one queue for `patience` goes before all that
    have not, whatever the policy says. Material unclaimed for `material_seconds` is deleted; so is
    the oldest unclaimed on a machine where a request's would take more than `material_bytes`
    otherwise (a notice's finds no room then). Jobs for which no machine is large enough fail after
    `homeless_seconds`. `queue` bounds the job pairs that are admitted and not over,
    `queue_per_client` those of one client. `reserve`: keep room for the first in line (without it a
    job that needs much can wait for its `patience` behind others).
    `jobs_per_model`: how many jobs of one model may run at a time, if that is bounded.
    `in_line`: phases in which no job passes one that comes before it and cannot start yet.
    `absent_seconds`: a job starts only while its client listens (`Scheduler.client_listens`), and
    what waits for a client that has not listened for so long is cancelled; None: clients are taken
    to be there always, as in a simulation. With it,
    `answer_seconds` is how long a client has to call that is asked whether it is there, and one
    that lets its job wait while others do.
    """

    job_factor: float = 10.0
    job_floor: float = 60.0
    reruns: int = 2
    patience: float = 3600.0
    material_seconds: float = 86_400.0
    material_bytes: int | None = None
    homeless_seconds: float = 60.0
    queue: int = 100_000
    queue_per_client: int = 10_000
    reserve: bool = True
    jobs_per_model: int | None = None
    in_line: frozenset[Phase] = frozenset()
    absent_seconds: float | None = None
    answer_seconds: float = 1.5

    def of_job(self, now: float, expected: float, arrived: float, timeout: float | None) -> float:
        """Seconds that a job may take from `now`, given its `expected` length."""
        limit = max(self.job_floor, self.job_factor * expected)
        return limit if timeout is None else min(limit, max(0.0, arrived + timeout - now))

    def of_pairs(self, client: int, total: int) -> bool:
        """Whether that many open pairs of one client, and of all, are within the bounds."""
        return client <= self.queue_per_client and total <= self.queue
