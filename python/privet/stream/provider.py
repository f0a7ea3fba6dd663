"""The model provider's side of a stream: serves linear stages to any number of data providers."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import ssl
from collections.abc import Sequence

from privet.errors import NotAccepted, PeerMisbehaved, PrivetError
from privet.parties.credentials import common_name
from privet.parties.listening import Listening
from privet.parties.revocation import Revoked
from privet.stream.crew import Crew
from privet.stream.deliveries import Deliveries
from privet.stream.frames import NO_SESSION, Header, Hello, Kind, Welcome
from privet.stream.ledger import Ledger
from privet.stream.linear import LinearRounds
from privet.stream.link import Patience, broken, first, write
from privet.stream.preparing import Delivery
from privet.stream.session import Caller, Session
from privet.stream.stages import Stages
from privet.suites import STREAM, Guard

MOST_SESSIONS = 64

_log = logging.getLogger(__name__)


class ModelProvider:
    """Serves a program's linear stages with a crew that has a worker for each part of each.

    `parts[i]` is how many parts round `i` is computed in; `window` how many requests a data
    provider may have open. With `whole_inputs` workers get all of a tensor, not just what their
    part reads: what tensor partitioning saves. Over BFV `deliveries` are the pieces. `guard` holds
    data providers to a policy, which must accept this suite.
    """

    def __init__(
        self,
        stages: Stages,
        crew: Crew,
        parts: Sequence[int],
        guard: Guard,
        *,
        window: int = 16,
        patience: Patience | None = None,
        whole_inputs: bool = False,
        deliveries: Deliveries | None = None,
        revoked: Revoked | None = None,
    ) -> None:
        self.stages, self.window = stages, window
        self.deliveries = deliveries
        self._guard = guard
        self._rounds = LinearRounds(stages, crew, parts, whole_inputs=whole_inputs)
        self._patience = patience or Patience()
        self._sessions: dict[bytes, Session] = {}
        self._revoked = revoked or Revoked()
        self._listening: Listening | None = None
        self._watching: set[asyncio.Task[None]] = set()

    @property
    def ledger(self) -> Ledger:
        """What its rounds took."""
        return self._rounds.ledger

    async def listen(
        self, host: str, port: int, tls: ssl.SSLContext, preparing: int = 0
    ) -> tuple[str, int]:
        """Listens; the address that data providers connect to. The preparing worker listens at
        `preparing`."""
        if self.deliveries is not None:
            await self.deliveries.start(host, preparing, self._deliver, self.ledger)
        loop = asyncio.get_running_loop()

        def protocol() -> asyncio.StreamReaderProtocol:
            reader = asyncio.StreamReader(loop=loop)
            return asyncio.StreamReaderProtocol(reader, self._connected, loop=loop)

        self._listening = Listening(protocol, tls)
        return await self._listening.listen(host, port)

    async def close(self) -> None:
        """Ends all sessions."""
        if self._listening is not None:
            await self._listening.close()
        for session in list(self._sessions.values()):
            await session.close()
        for task in list(self._watching):
            task.cancel()
        if self.deliveries is not None:
            await self.deliveries.close()

    def _deliver(self, delivery: Delivery) -> None:
        session = self._sessions.get(delivery.session)
        if session is None or session.client != delivery.client:
            _log.warning("a piece was prepared for a session that there is not")
            return
        session.deliver(delivery)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._welcome(reader, writer)
        except (OSError, EOFError, TimeoutError, PrivetError) as error:
            _log.info("a connection ended: %s", error)
        finally:
            writer.transport.abort()

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _caller(writer)
        try:
            self._check(client.fingerprint)
            header, payload = await first(reader, self._patience)
            if header.kind is not Kind.HELLO:
                raise PeerMisbehaved("a greeting was due")
            hello = Hello.parse(payload)
            session = self._session(hello, client)
        except (PeerMisbehaved, NotAccepted) as error:
            text = str(error).encode()
            await write(writer, Header(Kind.REFUSED, len(text), 0, 0), text, self._patience)
            raise
        await session.link.detach()
        port = self.deliveries.port if self.deliveries is not None else 0
        welcome = Welcome(session.id, session.link.received, self.window, port).to_bytes()
        await write(writer, Header(Kind.WELCOME, len(welcome), 0, 0), welcome, self._patience)
        if hello.session == NO_SESSION:
            await session.link.send(Kind.PROGRAM, self.stages.program.to_public_bytes())
        await session.link.attach(reader, writer, hello.received)

    def _check(self, client: str) -> None:
        why = self._revoked.refuses(client)
        if why is not None:
            raise PeerMisbehaved(why)

    def _session(self, hello: Hello, caller: Caller) -> Session:
        client = caller.fingerprint
        refusal = self._guard.check(client, caller.name, STREAM.text)
        if refusal is not None:
            raise NotAccepted(refusal)
        if hello.session == NO_SESSION:
            if hello.cipher != self.stages.cipher.code:
                raise PeerMisbehaved(f"the cipher here is {self.stages.cipher}")
            if len(self._sessions) >= MOST_SESSIONS:
                raise PeerMisbehaved("too many sessions are open")
            session = Session(self._rounds, self.window, caller, self._guard, self._patience)
            self._sessions[session.id] = session
            task = asyncio.create_task(self._watch(session))
            self._watching.add(task)
            task.add_done_callback(self._watching.discard)
            return session
        found = self._sessions.get(hello.session)
        # Another's session looks as one that is not there.
        if found is None or found.client != client:
            raise PeerMisbehaved("there is no such session any more")
        return found

    async def _watch(self, session: Session) -> None:
        """Forgets a session that ended, had no connection for too long, or whose client's
        certificate was revoked."""
        without = 0.0
        while not session.over.is_set():
            step = min(1.0, self._patience.resume / 4)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(session.over.wait(), step)
            if why := self._revoked.refuses(session.client):
                await session.link.fail(PeerMisbehaved(why))
            without = 0.0 if session.link.connected else without + step
            if without > self._patience.resume:
                await session.link.fail(broken(self._patience.resume))
        self._sessions.pop(session.id, None)
        await session.link.detach()


def _caller(writer: asyncio.StreamWriter) -> Caller:
    link = writer.get_extra_info("ssl_object")
    certificate = link.getpeercert(binary_form=True)
    if certificate is None:
        raise PeerMisbehaved("a certificate is needed")
    return Caller(hashlib.sha256(certificate).hexdigest(), common_name(link.getpeercert()))
