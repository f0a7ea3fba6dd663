"""What the calls of an endpoint are answered by, and how another takes its place."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from privet.gateway.ahead import Ahead
from privet.gateway.client import ServiceClient


class Backend:
    """A client of the service, and the notices that it keeps ready. Whoever asks them does it
    within `in_use`, and may do so for as long as it takes: `close` waits."""

    def __init__(self, client: ServiceClient, ahead: Ahead) -> None:
        self.client = client
        self.ahead = ahead
        self._users = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @contextmanager
    def in_use(self) -> Iterator[Backend]:
        """It stays open meanwhile."""
        self._users += 1
        self._idle.clear()
        try:
            yield self
        finally:
            self._users -= 1
            if not self._users:
                self._idle.set()

    async def open(self) -> Backend:
        """Begins to keep notices ready."""
        await self.client.__aenter__()
        try:
            await self.ahead.__aenter__()
        except BaseException:
            await self.client.close()
            raise
        return self

    async def close(self) -> None:
        """Announces nothing more, and closes the client once nobody uses it."""
        await self.ahead.__aexit__()
        await self._idle.wait()
        await self.client.close()
