"""How many jobs may wait or run at once, of a client and of all."""

from __future__ import annotations

from dataclasses import dataclass

from privet.service.jobs import Jobs
from privet.service.repository import Version


@dataclass(frozen=True)
class LimitReached:
    """Why there is no place for a further job: `own` if the client has its share, else all have.
    `reason` is a word for metrics."""

    text: str
    own: bool

    @property
    def reason(self) -> str:
        """A word for metrics and programs."""
        return "queue" if self.own else "full"

    def __str__(self) -> str:
        return self.text


def limit_reached(jobs: Jobs, client: str, version: Version, most: int) -> LimitReached | None:
    """Looks whether a client may have a further job of a version where all may have `most`."""
    limits, everybody = version.config.limits, jobs.open()
    of_model = [job for job in everybody if job.version.model == version.model]
    mine = sum(job.client == client for job in of_model)
    if mine >= limits.queued_per_client:
        return LimitReached(f"you have {mine} jobs of {version.model} already", own=True)
    if len(everybody) >= most or len(of_model) >= limits.queued:
        return LimitReached("the queue is full: try again later", own=False)
    return None
