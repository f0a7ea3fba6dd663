"""Material entries between two organisations over real sockets: used once, and made whatever
dies."""

from __future__ import annotations

import asyncio
import os
import signal
import struct
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from tests.e2e.test_stream_pipeline import QUICK, ask
from tests.python.stream import models

from privet import keys
from privet.compiler.compile import Compiled
from privet.errors import LinkError, PeerError, PeerMisbehaved, PrivetError
from privet.runtime import Credentials
from privet.stream.blinding import MOST_ENTRIES
from privet.stream.cipher import BFV
from privet.stream.frames import LARGEST_ENTRY, FrameKind, Opened, Stocked, TensorFrame
from privet.stream.link import Patience
from privet.stream.pair import StreamPair, pair
from privet.stream.preprocessing import POLL_SECONDS, PreparingData, PreprocessingAddress, name_of
from privet.stream.requester import DataProvider
from privet.stream.worker_pool import LocalPool

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def program(tmp_path: Path) -> tuple[Compiled, Path]:
    """A compiled perceptron and its folder."""
    compiled = models.perceptron()
    compiled.save(tmp_path / "program")
    return compiled, tmp_path / "program"


def overheard(parties: StreamPair) -> list[bytes]:
    """What the model provider sends to whom opens a session later: each tensor as a frame."""
    payloads: list[bytes] = []
    for session in parties.model._sessions.values():
        send = session.link.send

        async def tell(kind: FrameKind, payload: bytes, send=send) -> int:  # type: ignore[no-untyped-def]
            if kind is FrameKind.TENSOR:
                payloads.append(payload)
            return await send(kind, payload)  # type: ignore[no-any-return]

        session.link.send = tell  # type: ignore[method-assign]
    return payloads


def test_preparing_workers_die_under_load_and_requests_go_on(
    program: tuple[Compiled, Path], key_folder: Path, figures: list[str]
) -> None:
    compiled, folder = program

    async def run() -> None:
        async with pair(folder, key_folder, cipher=BFV, ahead=3, patience=QUICK) as parties:
            await ask(parties, compiled, 0)
            assert parties.model.receiver is not None
            load = [asyncio.create_task(ask(parties, compiled, seed)) for seed in range(1, 25)]
            (model_pid,) = await parties.model.receiver.processes()
            (data_pid,) = (await parties.preparing.processes()).values()
            os.kill(model_pid, signal.SIGKILL)
            await asyncio.wait(load, return_when=asyncio.FIRST_COMPLETED)
            os.kill(data_pid, signal.SIGKILL)
            await asyncio.gather(*load)
            # Both were replaced, and entries go on to be made.
            for seed in range(25, 32):
                await ask(parties, compiled, seed)
            assert await parties.model.receiver.processes() != [model_pid]
            assert list((await parties.preparing.processes()).values()) != [data_pid]
            assert parties.data.ledger.spoiled >= 1
            figures.append(
                f"stream over BFV: {parties.data.ledger.spoiled} entries spoiled by two deaths"
            )

    asyncio.run(run())


def test_a_redone_round_sends_nothing_twice(
    program: tuple[Compiled, Path], key_folder: Path
) -> None:
    compiled, folder = program

    async def run() -> None:
        async with pair(folder, key_folder, cipher=BFV, model_parts=[2, 1, 1]) as parties:
            await ask(parties, compiled, 0)
            payloads = overheard(parties)
            load = [asyncio.create_task(ask(parties, compiled, seed)) for seed in range(1, 17)]
            for place in ((0, 0), (1, 0)):
                os.kill((await parties.model_workers.processes())[place], signal.SIGKILL)
                await asyncio.wait(load, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.gather(*load)
            await ask(parties, compiled, 17)
            assert parties.model.ledger.redone >= 1
            tensors = [TensorFrame.parse(payload) for payload in payloads]
            places = [(tensor.request, tensor.place) for tensor in tensors]
            assert len(places) == len(set(places)) == 17 * 3

    asyncio.run(run())


def test_an_entry_is_used_once(program: tuple[Compiled, Path], key_folder: Path) -> None:
    compiled, folder = program

    async def run(entry: int) -> None:
        async with pair(folder, key_folder, cipher=BFV, patience=QUICK) as parties:
            # Used by the request, and by it alone.
            await ask(parties, compiled, 0)
            await parties.data.link.send(FrameKind.OPEN, Opened(2, entry).to_bytes())
            async with asyncio.timeout(20):
                while parties.model._sessions:
                    await asyncio.sleep(0.05)
            with pytest.raises(PeerError):
                await ask(parties, compiled, 1)

    for entry in (1, 1000, 0):
        asyncio.run(run(entry))


def test_an_entry_is_for_whom_opened_its_session(
    program: tuple[Compiled, Path], tmp_path: Path
) -> None:
    compiled, folder = program
    key_folder = tmp_path / "keys"
    keys.make(key_folder, keep_ca_key=True)
    keys.issue(key_folder, "stranger")
    public = compiled.program.to_public_bytes()

    async def run() -> None:
        async with pair(folder, key_folder, cipher=BFV, ahead=1, patience=QUICK) as parties:
            await ask(parties, compiled, 0)
            await parties.data.stock.filled(1)
            assert parties.model.receiver is not None
            (session,) = parties.model._sessions.values()
            entries = session._hiding._entries  # type: ignore[attr-defined]
            where = PreprocessingAddress("127.0.0.1", parties.model.receiver.port, "127.0.0.1")
            count = parties.model.ledger.entries
            files = Credentials.from_directory(key_folder, "stranger").files
            stranger = PreparingData(public, files, 20.0)
            names = name_of(session.id, 50), name_of(bytes(16), 1), "no name"
            for name in names:
                await asyncio.to_thread(stranger.prepare, where, name)
            async with asyncio.timeout(20):
                while parties.model.ledger.entries < count + len(names):
                    await asyncio.sleep(0.05)
            assert set(entries) == {2}
            # And its owner cannot fill the model provider's memory.
            for number in range(60, 60 + MOST_ENTRIES + 3):
                session.accept(_prepared(session.id, session.client, number))
            assert len(entries) == MOST_ENTRIES

    asyncio.run(run())


def test_a_number_that_no_frame_holds_stops_no_entries(
    program: tuple[Compiled, Path], key_folder: Path
) -> None:
    compiled, folder = program
    beyond = LARGEST_ENTRY + 1
    with pytest.raises(struct.error):
        Stocked(beyond).to_bytes()

    async def run() -> None:
        async with pair(folder, key_folder, cipher=BFV, ahead=1, patience=QUICK) as parties:
            await ask(parties, compiled, 0)
            assert parties.model.receiver is not None
            (session,) = parties.model._sessions.values()
            where = PreprocessingAddress("127.0.0.1", parties.model.receiver.port, "127.0.0.1")
            files = Credentials.from_directory(key_folder, "client").files
            owner = PreparingData(compiled.program.to_public_bytes(), files, 20.0)
            entries = parties.model.ledger.entries
            await asyncio.to_thread(owner.prepare, where, name_of(session.id, beyond))
            async with asyncio.timeout(20):
                while parties.model.ledger.entries <= entries:
                    await asyncio.sleep(0.05)
            # More than were in stock before.
            for seed in range(1, 4):
                await ask(parties, compiled, seed)

    asyncio.run(run())


def test_a_preparing_worker_makes_nothing_for_whom_was_revoked(
    program: tuple[Compiled, Path], tmp_path: Path
) -> None:
    compiled, folder = program
    key_folder, path = tmp_path / "keys", tmp_path / "revoked"
    keys.make(key_folder, keep_ca_key=True)
    keys.issue(key_folder, "other")
    path.write_text("")
    public = compiled.program.to_public_bytes()

    async def run() -> None:
        async with pair(folder, key_folder, cipher=BFV, ahead=1, revoked=path) as parties:
            await ask(parties, compiled, 0)
            assert parties.model.receiver is not None
            where = PreprocessingAddress("127.0.0.1", parties.model.receiver.port, "127.0.0.1")
            entries = parties.model.ledger.entries
            files = Credentials.from_directory(key_folder, "other").files
            other = PreparingData(public, files, 20.0)
            # The control: whoever is not on the list gets entries.
            await asyncio.to_thread(other.prepare, where, "connected")
            async with asyncio.timeout(20):
                while parties.model.ledger.entries < entries + 1:
                    await asyncio.sleep(0.05)
            path.write_text(keys.fingerprint(key_folder / "other.pem"))
            # What is made for it now goes nowhere, and ends the connection.
            with suppress(PrivetError):
                await asyncio.to_thread(other.prepare, where, "connected")
            for name in ("connected", "anew"):
                with pytest.raises(PrivetError):
                    await asyncio.to_thread(other.prepare, where, name)
            await ask(parties, compiled, 1)
            await asyncio.sleep(2 * POLL_SECONDS)
            assert parties.model.ledger.entries <= entries + 1 + 3

    asyncio.run(run())


def _prepared(session: bytes, client: str, number: int):  # type: ignore[no-untyped-def]
    from privet.stream.preprocessing import Prepared
    from privet.suites.costs import NOTHING

    return Prepared(client, session, number, ((), ()), NOTHING)


def test_requests_end_when_nothing_can_be_prepared(
    program: tuple[Compiled, Path], key_folder: Path
) -> None:
    compiled, folder = program
    patience = Patience(silence=3.0, resume=2.0, connect=1.0)

    async def run() -> None:
        async with pair(folder, key_folder, cipher=BFV, ahead=1, patience=patience) as parties:
            await ask(parties, compiled, 0)
            assert parties.model.receiver is not None
            await parties.model.receiver.close()
            began = time.monotonic()
            load = [asyncio.create_task(ask(parties, compiled, seed)) for seed in range(1, 8)]
            await asyncio.gather(*load, return_exceptions=True)
            with pytest.raises(LinkError, match="no entry could be prepared"):
                await ask(parties, compiled, 9)
            assert time.monotonic() - began < 20

    asyncio.run(run())


def test_preparing_workers_that_hang_are_replaced(
    program: tuple[Compiled, Path], key_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled, folder = program
    monkeypatch.setattr("privet.stream.pair.CALL_SECONDS", 8.0)

    async def run() -> None:
        pools = LocalPool(60.0), LocalPool(60.0)
        async with pair(
            folder, key_folder, cipher=BFV, ahead=1, pools=pools, patience=QUICK
        ) as parties:
            await ask(parties, compiled, 0)
            assert parties.model.receiver is not None
            (model_pid,) = await parties.model.receiver.processes()
            os.kill(model_pid, signal.SIGSTOP)
            await asyncio.gather(*(ask(parties, compiled, seed) for seed in range(4)))
            assert await parties.model.receiver.processes() != [model_pid]
            (data_pid,) = (await parties.preparing.processes()).values()
            os.kill(data_pid, signal.SIGSTOP)
            await asyncio.gather(*(ask(parties, compiled, seed) for seed in range(4)))
            assert list((await parties.preparing.processes()).values()) != [data_pid]

    asyncio.run(run())


def test_ciphers_must_agree(program: tuple[Compiled, Path], key_folder: Path) -> None:
    _, folder = program

    async def run() -> None:
        async with pair(folder, key_folder, cipher=BFV, patience=QUICK) as parties:
            tls = Credentials.from_directory(key_folder, "client").tls()
            other = DataProvider(*parties.data.address, tls, LocalPool(20.0), patience=QUICK)
            with pytest.raises(PeerMisbehaved, match="the cipher here is BFV"):
                await other.__aenter__()

    asyncio.run(run())


def test_masks_hide_a_request_that_is_asked_again(
    program: tuple[Compiled, Path], key_folder: Path
) -> None:
    compiled, folder = program

    async def run() -> None:
        async with pair(folder, key_folder, cipher=BFV, patience=QUICK) as parties:
            await ask(parties, compiled, 0)
            payloads = overheard(parties)
            for _ in range(3):
                await ask(parties, compiled, 5)
            first = [
                tensor.rows for tensor in map(TensorFrame.parse, payloads) if tensor.place == 0
            ]
            assert len(set(first)) == 3
            rows = [np.frombuffer(data, np.uint8).reshape(-1, 5) for data in first]
            common = set(map(bytes, rows[0])) & set(map(bytes, rows[1]))
            assert not common

    asyncio.run(run())
