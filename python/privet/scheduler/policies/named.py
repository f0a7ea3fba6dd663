"""Policies by name, for configuration files and the command line."""

from __future__ import annotations

from collections.abc import Callable

from privet.errors import Misuse
from privet.scheduler.policies.ahead import AheadPolicy, Budget
from privet.scheduler.policies.fair import Fair
from privet.scheduler.policies.orders import Deadline, Fcfs, Priority, Urgent
from privet.scheduler.policies.policy import Policy
from privet.scheduler.policies.shared import Shared

#: Policies that order the jobs, and those that go over one (`ahead+priority`).
ORDERS = ("fcfs", "priority", "deadline", "fair", "urgent")
OVER = ("ahead", "shared", "fair")


def named(name: str, beta: float = 0.1, budget: Budget | None = None) -> Policy:
    """The policy of a name: one of `ORDERS`, with any of `OVER` and plus signs before it, such as
    `shared+ahead+fair+priority`. `fair` alone is `fair+fcfs`. `beta` is that of `priority` and
    `urgent`, `budget` that of `ahead`. Raises `Misuse` if there is no such policy."""
    orders: dict[str, Callable[[], Policy]] = {
        "fcfs": Fcfs,
        "priority": lambda: Priority(beta),
        "deadline": Deadline,
        "fair": Fair,
        "urgent": lambda: Urgent(beta),
    }
    *prefixes, order = name.split("+")
    if order not in orders or not set(prefixes) <= set(OVER) or len(prefixes) != len(set(prefixes)):
        raise Misuse(
            f"no policy {name!r}; take one of {', '.join(ORDERS)}, "
            f"perhaps after {' or '.join(f'{base}+' for base in OVER)}"
        )
    policy = orders[order]()
    wraps: dict[str, Callable[[Policy], Policy]] = {
        "shared": Shared,
        "ahead": lambda order: AheadPolicy(order, budget),
        "fair": Fair,
    }
    for prefix in reversed(prefixes):
        policy = wraps[prefix](policy)
    return policy
