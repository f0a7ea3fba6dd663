"""Policies: the order of jobs, one small file each, behind `Policy`."""

from privet.scheduler.policies.ahead import Ahead, Budget
from privet.scheduler.policies.deadline import Deadline
from privet.scheduler.policies.fair import Fair
from privet.scheduler.policies.fcfs import Fcfs
from privet.scheduler.policies.named import named
from privet.scheduler.policies.policy import Candidate, Policy, Stream
from privet.scheduler.policies.priority import Priority
from privet.scheduler.policies.shared import Shared
from privet.scheduler.policies.urgent import Urgent

__all__ = [
    "Ahead",
    "Budget",
    "Candidate",
    "Deadline",
    "Fair",
    "Fcfs",
    "Policy",
    "Priority",
    "Shared",
    "Stream",
    "Urgent",
    "named",
]
