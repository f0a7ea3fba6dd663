"""The two-phase scheduler of the service: a pure state machine, and the policies that order it.

Follows SwiftSNNI (Batool et al., ICPE 2026), Sections 3 and 4. See docs/explanation/scheduler.md.
"""

from privet.scheduler.actions import (
    Action,
    Drained,
    Ended,
    MaterialGone,
    MaterialReady,
    Probe,
    Start,
    Stop,
    TakeBack,
)
from privet.scheduler.limits import Limits
from privet.scheduler.machine import Machine
from privet.scheduler.material import Material, MaterialEntry
from privet.scheduler.policies import (
    AheadPolicy,
    Budget,
    Deadline,
    Fair,
    Fcfs,
    JobStream,
    Policy,
    Priority,
    Shared,
    named,
)
from privet.scheduler.profiles import GIB, Demand, Key, Profiles, Scaling, Usage
from privet.scheduler.scheduler import BY_CLIENT, Scheduler
from privet.scheduler.snapshot import QueueLine, Snapshot
from privet.scheduler.submission import Outcome, Phase, Refused, Submission, Why

__all__ = [
    "BY_CLIENT",
    "GIB",
    "Action",
    "AheadPolicy",
    "Budget",
    "Deadline",
    "Demand",
    "Drained",
    "Ended",
    "Fair",
    "Fcfs",
    "JobStream",
    "Key",
    "Limits",
    "Machine",
    "Material",
    "MaterialEntry",
    "MaterialGone",
    "MaterialReady",
    "Outcome",
    "Phase",
    "Policy",
    "Priority",
    "Probe",
    "Profiles",
    "QueueLine",
    "Refused",
    "Scaling",
    "Scheduler",
    "Shared",
    "Snapshot",
    "Start",
    "Stop",
    "Submission",
    "TakeBack",
    "Usage",
    "Why",
    "named",
]
