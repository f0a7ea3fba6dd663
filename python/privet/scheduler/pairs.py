"""What the scheduler keeps of a submission: job pairs (a T_pre and its T_on) and their entry."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from privet.scheduler.policies.policy import JobStream
from privet.scheduler.submission import Submission


class PairStage(StrEnum):
    """Where a pair is. `PRE`, `TRANSIT` and `READY` are the paper's queues."""

    PRE = "pre"
    MAKING = "making"
    TRANSIT = "transit"
    READY = "ready"
    INFERRING = "inferring"
    OVER = "over"


@dataclass(eq=False, slots=True)
class SubmissionState:
    """A submission that was admitted. `ahead`: none was, the scheduler makes an entry on its own.

    `open`: pairs whose T_on (of a notice: T_pre) is not over. `claimed`: a request took the
    notice's pairs over.
    """

    submission: Submission
    arrived: float
    ahead: bool = False
    pairs: list[Pair] = field(default_factory=list)
    open: int = 0
    jobs: int = 0
    ended: bool = False
    claimed: bool = False

    @property
    def id(self) -> str:
        """The submission's id."""
        return self.submission.id

    def next_job(self, phase: str) -> str:
        """A job id that was never used."""
        self.jobs += 1
        return f"{self.id}/{phase}#{self.jobs}"


@dataclass(eq=False, slots=True)
class Pair:
    """A T_pre and the T_on that uses what it made; or one of them alone.

    `maker`: the entry under whose id T_pre runs; `request`: the one that waits for the T_on.
    `since`: when it came to its stage. `machine` and `material`: where its entry lies, and which.
    `reserved`: the machine kept for it. Equal only to itself.
    """

    stream: JobStream
    maker: SubmissionState
    request: SubmissionState | None
    stage: PairStage = PairStage.PRE
    since: float = 0.0
    key: float = 0.0
    machine: str | None = None
    material: str | None = None
    job: str | None = None
    reruns: int = 0
    reserved: str | None = None

    @property
    def owner(self) -> SubmissionState:
        """The request, or else the notice."""
        return self.request or self.maker

    @property
    def alone(self) -> bool:
        """Whether it is a single job, without material."""
        return self.maker.submission.only is not None

    @property
    def in_session(self) -> bool:
        """Whether it is a session's, on the machine of that."""
        return bool(self.maker.submission.machine)
