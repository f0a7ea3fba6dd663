"""What a job may do, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from privet.errors import Misuse
from privet.runtime import PhaseCost

Phase = Literal["prepare", "infer", "fetch"]

Failure = Literal[
    "absent", "failed", "stopped", "timed out", "over memory", "crashed", "machine lost"
]
"""Why a job failed.

The client did not come or did not ask in time; the session failed (link, protocol, a store that is
full); the job was stopped by its owner; it took longer than its limit; it took more memory than its
bound; its process died; its machine was lost.
"""

GRACE_SECONDS = 15.0


@dataclass(frozen=True)
class Grant:
    """Leave for one client to have one job done once.

    `job` is a name that no other job ever has. `client` is the SHA-256 fingerprint of the client's
    certificate, `program` the program's hash, both in hexadecimal; `suite` the suite with its
    options, as plans and stores label it. `material` is the entry that an inference uses up, None
    for a preparation, for a fetch of encrypted weights and for an inference that needs none.

    `cores` are those of the node `machine`, `memory` the bytes that the job may take beyond what
    its process holds at rest. `seconds` limits the job from the client's request on; before that
    the client has `grace` seconds to connect and to ask. `trace` is the span that it belongs to.
    """

    job: str
    phase: Phase
    client: str
    program: str
    suite: str
    machine: str
    cores: tuple[int, ...]
    memory: int
    seconds: float
    material: str | None = None
    grace: float = GRACE_SECONDS
    trace: str | None = None

    def __post_init__(self) -> None:
        if self.phase != "infer" and self.material is not None:
            raise Misuse(f"job {self.job}: only an inference uses material")
        if not self.cores or self.memory < 1 or self.seconds <= 0 or self.grace <= 0:
            raise Misuse(f"job {self.job}: a job needs a core, memory and time")


@dataclass(frozen=True)
class JobOutcome:
    """How a job ended.

    `failure` is None if it was done; `message` then is empty, else it says more, for the log.
    `material` is the entry that was made or that the grant named. Of a failed inference it is gone
    for good, unless the job `keeps_material`: it ended before anybody touched the entry. `bytes` is
    what an entry that was made takes on the server's disk. `cost` is what the job took as the
    server saw it, None if it failed.

    `peak_rss` is the largest resident memory of the job's process in bytes while it ran, and
    `base_rss` what that process held just before, so that `memory` is the job's own; both are 0 if
    nobody could measure. `seconds` counts from the client's request, `waited` from the grant to
    that request; `seconds` is 0 if the client did not come to ask.
    """

    job: str
    failure: Failure | None = None
    message: str = ""
    material: str | None = None
    keeps_material: bool = False
    bytes: int = 0
    cost: PhaseCost | None = None
    peak_rss: int = 0
    base_rss: int = 0
    seconds: float = 0.0
    waited: float = 0.0

    @property
    def memory(self) -> int:
        """The job's own memory at its peak, in bytes."""
        return max(0, self.peak_rss - self.base_rss)
