"""Executors by name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from privet.errors import Misuse

if TYPE_CHECKING:
    from privet.service.executor import Executor


def make_executor(
    kind: str,
    *,
    address: str | None,
    cores: int | None,
    host: str,
    advertise: str | None,
    **each: Any,
) -> Executor:
    """The executor `local` or `ray`; `each` are options that both take for each machine. Raises
    `Misuse` if there is no such executor, or this machine has not so many cores."""
    if kind == "ray":
        if cores is not None or advertise is not None:
            raise Misuse(
                "with Ray, `ray start` says what cores a node has, and clients go to its address"
            )
        from privet.service.executor.ray import RayExecutor

        return RayExecutor(address=address or "auto", **each)
    if kind != "local":
        raise Misuse(f"the executor is {kind!r}; possible are local, ray")
    if address is not None:
        raise Misuse("--address is for --executor ray")
    from privet.service.executor.local import LocalExecutor

    usable = sorted(os.sched_getaffinity(0))
    if cores is not None and cores > len(usable):
        raise Misuse(f"this process may use {len(usable)} cores, not {cores}")
    return LocalExecutor(
        cores=usable[:cores] if cores else None, host=host, advertise=advertise, **each
    )
