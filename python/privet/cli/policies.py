"""Policies of the scheduler by name."""

from __future__ import annotations

from privet.errors import Misuse
from privet.scheduler import Fcfs, Policy, Priority

NAMES = ("fcfs", "priority")


def make_policy(name: str, beta: float) -> Policy:
    """The policy of a name.

    # Errors
    `Misuse` if there is none.
    """
    if name == "fcfs":
        return Fcfs()
    if name == "priority":
        return Priority(beta)
    raise Misuse(f"the policy is {name!r}; possible are {', '.join(NAMES)}")
