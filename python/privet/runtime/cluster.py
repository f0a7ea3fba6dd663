"""A Ray cluster: how a service's machines, and the stages of a pipeline, come to theirs.

A node whose resources name it (`ray start --resources '{"privet:alpha": 1}'`) is known as `alpha`,
also after a restart.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import Any

from privet.errors import Misuse
from privet.runtime.quantities import split_address

NAME = "privet:"
"""Begins the name of the resource that names a node."""

KNOCK_SECONDS = 10.0
"""How long the cluster's head may take to accept a connection."""


def load_ray() -> Any:
    """The module `ray`. Raises `Misuse` if it is not installed."""
    try:
        import ray
    except ImportError as error:
        raise Misuse("a cluster needs Ray: pip install 'privet[ray]'") from error
    return ray


async def join(ray: Any, address: str, **options: Any) -> None:
    """Connects this process to the cluster at `address`; `auto` finds the one of this machine.
    Raises `Misuse` if there is none."""
    try:
        # Ray itself would try for minutes.
        if address != "auto":
            async with asyncio.timeout(KNOCK_SECONDS):
                _, writer = await asyncio.open_connection(*split_address(address))
            writer.close()
        await asyncio.to_thread(ray.init, address=address, log_to_driver=False, **options)
    except (OSError, ValueError, RuntimeError) as error:
        raise Misuse(f"there is no Ray cluster at {address}: {error}") from error
    _keep_signals()


def _keep_signals() -> None:
    """Sets Python's handlers of signals again. Ray puts one of its own before them, which aborts
    the process three seconds after SIGTERM, in the middle of a drain."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        handler = signal.getsignal(number)
        if handler is not None:
            signal.signal(number, handler)


def names(node: Any) -> list[str]:
    """What a node is named, in order."""
    resources = node["Resources"]
    return sorted(key.removeprefix(NAME) for key in resources if key.startswith(NAME))
