"""A member of a cohort that a service coordinates: it waits for inferences, one after the other.

Each inference is a process of its own with a new share of a new key; nothing is kept between two.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from privet.errors import LinkError, PeerBusy, PrivetError
from privet.gateway.calls import Calls
from privet.gateway.catalog import version_path
from privet.gateway.relay import relay
from privet.runtime.homomorphic import Endpoint
from privet.runtime.member import take_part
from privet.suites.costs import PhaseCost

PAUSE_SECONDS = 0.5

Heard = Callable[[PhaseCost | PrivetError | None], None]
"""Hears that an inference has begun (None), what it has cost, or why it failed."""


@dataclass(frozen=True)
class Seat:
    """Where a member takes part: a version of a model at a service, as member `member`, with its
    `program` (of member 0 both halves)."""

    model: str
    version: int
    program: Path
    member: int


async def take_seat(
    calls: Calls, seat: Seat, endpoint: Endpoint, heard: Heard, wait: float
) -> None:
    """Takes part in inferences until it is cancelled. One that failed, for instance because another
    party left, is told of, and the next is waited for; a service that is away is tried for `wait`
    seconds.

    # Errors
    What the service refuses the member for; `LinkError` if it stays away.
    """
    path = version_path(seat.model, seat.version) + "/session"
    limit = time.monotonic() + wait
    while True:
        began, begun = time.monotonic(), threading.Event()

        def begins(begun: threading.Event = begun) -> None:
            begun.set()
            heard(None)

        try:
            heard(await _once(calls, path, seat, endpoint, begins))
        except PrivetError as error:
            if begun.is_set():
                heard(error)
            elif not isinstance(error, LinkError | PeerBusy):
                raise
            elif time.monotonic() - began > PAUSE_SECONDS:  # it was there before
                limit = time.monotonic() + wait
            elif time.monotonic() > limit:
                raise
            await asyncio.sleep(PAUSE_SECONDS)
            await calls.reach(wait)
        else:
            limit = time.monotonic() + wait


async def _once(
    calls: Calls, path: str, seat: Seat, endpoint: Endpoint, begins: Callable[[], None]
) -> PhaseCost:
    async with relay(calls, path) as (socket, failures):
        where = replace(endpoint, socket=socket)
        try:
            return await asyncio.to_thread(take_part, seat.program, seat.member, where, begins)
        except LinkError as error:
            # What broke the link is what the service said, if it said anything.
            raise (failures[0] if failures else error) from error
