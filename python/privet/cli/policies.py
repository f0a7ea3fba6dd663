"""Policies of the scheduler by name."""

from __future__ import annotations

from collections.abc import Callable

from privet.errors import Misuse
from privet.scheduler import Policy, Priority
from privet.scheduler.policies import Ahead, Budget, Deadline, Fair, Fcfs

NAMES = ("fcfs", "priority", "deadline", "fair")
"""Each also as `ahead+NAME`, which makes material ahead."""

PREFIX = "ahead+"


def make_policy(name: str, beta: float, ahead_bytes: int) -> Policy:
    """The policy of a name. `beta` is for `priority`; `ahead_bytes` bounds material made ahead.

    # Errors
    `Misuse` if there is none.
    """
    inner = name.removeprefix(PREFIX)
    orders: dict[str, Callable[[], Policy]] = {
        "fcfs": Fcfs,
        "priority": lambda: Priority(beta),
        "deadline": Deadline,
        "fair": Fair,
    }
    if inner not in orders:
        raise Misuse(
            f"the policy is {name!r}; possible are {', '.join(NAMES)}, each also as {PREFIX}NAME"
        )
    order = orders[inner]()
    return Ahead(order, Budget(bytes=ahead_bytes)) if inner != name else order
