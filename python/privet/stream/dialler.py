"""Keeps a data provider's session connected."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable

from privet.errors import PeerMisbehaved, PrivetError
from privet.stream.cipher import Cipher
from privet.stream.frames import NO_SESSION, Hello, Welcome
from privet.stream.link import Link, Patience, broken, greet

AGAIN_SECONDS = 0.2
"""Between two attempts to connect."""

_log = logging.getLogger(__name__)


class Dialler:
    """Connects `link` to the model provider at `host` and `port`, whose certificate is of `name`.

    `agree` hears how many requests may be open. Of a session `session` is what it is called there
    and `preparing` the port of the preparing worker, 0 if there is none.
    """

    def __init__(
        self,
        host: str,
        port: int,
        name: str,
        tls: ssl.SSLContext,
        cipher: Cipher,
        link: Link,
        patience: Patience,
        agree: Callable[[int], None],
    ) -> None:
        self.address, self.name = (host, port), name
        self._tls = tls
        self._cipher, self._link, self._patience, self._agree = cipher, link, patience, agree
        self.session = NO_SESSION
        self.preparing = 0

    async def keep(self) -> None:
        """Connects, and again whenever the connection breaks, until the session is over."""
        loop = asyncio.get_running_loop()
        since = loop.time()
        while self._link.failure is None:
            try:
                await self._connect()
                since = loop.time()
            except PrivetError as error:
                await self._link.fail(error)
            except (OSError, EOFError, TimeoutError) as error:
                _log.info("no connection: %s", error)
            if loop.time() - since > self._patience.resume:
                await self._link.fail(broken(self._patience.resume))
            await asyncio.sleep(AGAIN_SECONDS)

    async def _connect(self) -> None:
        """One connection, from its greeting to its end."""
        async with asyncio.timeout(self._patience.connect):
            reader, writer = await asyncio.open_connection(
                *self.address, ssl=self._tls, server_hostname=self.name
            )
        try:
            hello = Hello(self._cipher.code, self.session, self._link.received)
            answer = await greet(reader, writer, hello.to_bytes(), self._patience)
            welcome = Welcome.parse(answer)
            if self.session not in (NO_SESSION, welcome.session):
                raise PeerMisbehaved("the model provider answers for another session")
            if self.session == NO_SESSION:
                self._agree(welcome.window)
            self.session, self.preparing = welcome.session, welcome.preparing
            await self._link.attach(reader, writer, welcome.received)
        finally:
            writer.transport.abort()
