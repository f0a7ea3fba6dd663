"""Executors by name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privet.errors import Misuse

if TYPE_CHECKING:
    from privet.service.executor import Executor


def make_executor(
    kind: str,
    *,
    address: str | None,
    keys: Path,
    state: Path,
    cores: int | None,
    jobs_per_core: int,
    memory: int | None,
    workers: int | None,
    host: str,
    advertise: str | None,
    first_port: int,
    dealer: str | None,
    max_material: int | None,
    policy: str,
    timeout: float,
    revoked: Path | None,
    trace: str | None,
) -> Executor:
    """The executor `local` or `ray`; sizes in bytes, `timeout` in seconds.

    # Errors
    `Misuse` if there is no such executor, or this machine has not so many cores.
    """
    each: dict[str, Any] = {
        "keys": keys,
        "state": state,
        "jobs_per_core": jobs_per_core,
        "memory": memory,
        "workers": workers,
        "first_port": first_port,
        "dealer": dealer,
        "max_material": max_material,
        "policy": policy,
        "timeout": timeout,
        "revoked": revoked,
        "trace": trace,
    }
    if kind == "ray":
        return _ray(address, cores, advertise, each)
    if kind != "local":
        raise Misuse(f"the executor is {kind!r}; possible are local, ray")
    if address is not None:
        raise Misuse("--address is for --executor ray")
    from privet.service.executor.local import LocalExecutor

    mine = sorted(os.sched_getaffinity(0))
    if cores is not None and cores > len(mine):
        raise Misuse(f"this process may use {len(mine)} cores, not {cores}")
    return LocalExecutor(
        cores=mine[:cores] if cores else None, host=host, advertise=advertise, **each
    )


def _ray(
    address: str | None, cores: int | None, advertise: str | None, each: dict[str, Any]
) -> Executor:
    if cores is not None or advertise is not None:
        raise Misuse(
            "with Ray, `ray start` says what cores a node has, and clients go to its address"
        )
    from privet.service.executor.ray import RayExecutor

    return RayExecutor(address=address or "auto", **each)
