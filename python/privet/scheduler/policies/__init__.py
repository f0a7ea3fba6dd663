"""Policies: the order of jobs, one small file each, behind `Policy`."""

from privet.scheduler.policies.fcfs import Fcfs
from privet.scheduler.policies.policy import Candidate, Policy, Stream, View
from privet.scheduler.policies.priority import Priority

__all__ = ["Candidate", "Fcfs", "Policy", "Priority", "Stream", "View"]
