"""Policies: the order of jobs, behind `Policy`."""

from privet.scheduler.policies.ahead import AheadPolicy, Budget
from privet.scheduler.policies.fair import Fair
from privet.scheduler.policies.named import named
from privet.scheduler.policies.orders import Deadline, Fcfs, Priority, Urgent
from privet.scheduler.policies.policy import Candidate, JobStream, Policy
from privet.scheduler.policies.shared import Shared
