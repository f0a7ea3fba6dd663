"""Clients that wait are present, and for a moment after."""

from __future__ import annotations

import asyncio

import pytest

from privet.service import limits
from privet.service.limits import ActiveClients

LEAVING_SECONDS = 1.0


def test_a_client_is_present_until_a_moment_after_its_last_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "LEAVING_SECONDS", LEAVING_SECONDS)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        changes: list[tuple[bool, float]] = []
        clients = ActiveClients(lambda _, presence: changes.append((presence, loop.time())))
        for _ in range(2):
            # It comes again before the first alarm, and once waits for longer than that.
            for seconds in (0.0, 1.2 * LEAVING_SECONDS, 0.0):
                with clients.of("anna"), clients.of("anna"):
                    await asyncio.sleep(seconds)
                left = loop.time()
                await asyncio.sleep(0.2 * LEAVING_SECONDS)
            assert [presence for presence, _ in changes] == [True]
            async with asyncio.timeout(10):
                while len(changes) < 2:
                    await asyncio.sleep(0.01)
            (_, (is_present, moment)) = changes
            assert not is_present
            assert moment >= left + 0.99 * LEAVING_SECONDS
            changes.clear()

    asyncio.run(main())
