"""What clients ask for, and how it can end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from privet.errors import Misuse, PrivetError


class Phase(StrEnum):
    """Jobs of an inference: `PRE` (the paper's T_pre) makes material, `ON` (T_on) uses it."""

    PRE = "pre"
    ON = "on"

    # Each decision looks up many jobs by their phase, and an enumeration's own hash is Python.
    __hash__ = str.__hash__


PHASES = tuple(Phase)
"""Decisions go through them, and an enumeration's own iterator is Python, too."""


class Outcome(StrEnum):
    """How a submission ended; each ends in exactly one of these."""

    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed out"


class Why(StrEnum):
    """Why a submission was refused."""

    DUPLICATE = "duplicate id"
    DRAINING = "draining"
    FULL = "full"
    TOO_LARGE = "too large"
    UNKNOWN_NOTICE = "unknown notice"
    FOREIGN_NOTICE = "foreign notice"
    CANCELLED_NOTICE = "cancelled notice"
    USED_NOTICE = "used notice"
    OTHER_NOTICE = "notice for something else"
    NOT_READY = "no material"


class Refused(PrivetError):
    """A submission was not admitted; `why` says the reason for programs, the message for people.

    `retry`: the same submission may be admitted later.
    """

    def __init__(self, why: Why, message: str) -> None:
        super().__init__(message)
        self.why = why
        self.retry = why in (Why.FULL, Why.DRAINING)


@dataclass(frozen=True)
class Submission:
    """A request for inference, or (`notice`) an advance notice of one.

    `id` is unique for ever and chosen by the caller, without a slash; `client` whom the material
    belongs to (a certificate's fingerprint); `batch` the samples it asks for; `refers_to` the
    notice that announced this request. `timeout` is in seconds from the submission: a request that
    has not ended by then ends as timed out. `deadline` is a time on the scheduler's clock in
    seconds by which the client would like the answer; policies may use it, nothing ends by it.

    `only`: jobs of that phase alone, which need no material and leave none. Those of a session run
    on its `machine`, and the session says when their client has left; others run wherever there is
    room, while their client listens. A T_pre alone is a session's: a notice that keeps its memory
    for a while (`Scheduler.park`), `lease` seconds at most.

    `ready`: a request that nothing is made for: it is refused unless material lies ready for all of
    it, and fails if that is lost and no other is ready.

    `parties` must all wait (`Scheduler.party_waits`) for jobs of it to start, besides the client;
    each takes part in one job and says again that it waits for another.
    """

    id: str
    client: str
    model: str
    suite: str
    batch: int = 1
    notice: bool = False
    refers_to: str | None = None
    timeout: float | None = None
    deadline: float | None = None
    only: Phase | None = None
    machine: str = ""
    lease: float = 0.0
    parties: tuple[str, ...] = ()
    ready: bool = False

    def __post_init__(self) -> None:
        if not self.id or "/" in self.id:
            raise Misuse("an id is not empty and has no slash")
        if self.batch < 1:
            raise Misuse(f"a batch has at least one sample, not {self.batch}")
        if self.notice and self.refers_to is not None:
            raise Misuse("a notice refers to no other notice")
        if self.only is None and self.machine:
            raise Misuse("jobs of a session alone name their machine")
        if self.parties and not self.machine:
            raise Misuse("jobs of a session alone wait for parties")
        if self.only is Phase.PRE and not self.machine:
            raise Misuse("a T_pre alone is a session's, on a machine")
        if self.only is not None and self.notice != (self.only is Phase.PRE):
            raise Misuse("a T_pre alone is a notice, a T_on alone a request")
        if self.only is not None and self.refers_to is not None:
            raise Misuse("a job alone refers to no notice")
        if self.ready and (self.notice or self.only is not None):
            raise Misuse("a request that uses material may insist on what lies ready")
        if self.timeout is not None and not 0 < self.timeout < math.inf:
            raise Misuse(f"a timeout is a positive number of seconds, not {self.timeout}")
        if self.deadline is not None and not math.isfinite(self.deadline):
            raise Misuse(f"a deadline is a time in seconds, not {self.deadline}")


@dataclass(frozen=True)
class PlacedJob:
    """A job of the submission `request` in its place: on `cores` of `machine`, with at most
    `memory` bytes. `batch` samples go through the program at once."""

    job: str
    request: str
    phase: Phase
    client: str
    model: str
    suite: str
    batch: int
    machine: str
    cores: tuple[int, ...]
    memory: int
