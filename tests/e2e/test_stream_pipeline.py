"""The pipeline between two organisations over real sockets: workers die and connections break."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
import pytest
from tests.python.stream import models

from privet import keys
from privet.compiler.compile import Compiled
from privet.compiler.executor import execute
from privet.errors import LinkError, PeerError, PeerMisbehaved
from privet.runtime import Credentials
from privet.stream.cipher import BFV, PAILLIER, Cipher
from privet.stream.frames import NO_SESSION, FrameKind, Header, Hello, Opened, TensorFrame, Welcome
from privet.stream.link import Patience, first, greet, write
from privet.stream.pair import StreamPair, pair
from privet.stream.worker_pool import LocalPool

pytestmark = pytest.mark.timeout(240)

QUICK = Patience(silence=3.0, resume=20.0, connect=5.0)


MOSTLY_BFV = pytest.mark.parametrize(
    "cipher",
    [pytest.param(PAILLIER, marks=pytest.mark.slow), BFV],
    ids=lambda parameter: parameter.name,
)
"""For what happens beside the arithmetic: under Paillier, which takes longer, in the slow tests."""


@pytest.fixture(params=[PAILLIER, BFV], ids=lambda parameter: parameter.name)
def cipher(request: pytest.FixtureRequest) -> Cipher:
    """Either cipher: everything here holds under both."""
    parameter: Cipher = request.param
    return parameter


@pytest.fixture
def program(tmp_path: Path) -> tuple[Compiled, Path]:
    """A compiled perceptron and its folder."""
    compiled = models.perceptron()
    compiled.save(tmp_path / "program")
    return compiled, tmp_path / "program"


async def ask(parties: StreamPair, compiled: Compiled, seed: int) -> None:
    """One request, whose outputs are the fixed-point executor's."""
    sample = np.random.default_rng(seed).uniform(-1, 1, (1, 6))
    output = await parties.data.integers([sample])
    expected = execute(compiled.program, compiled.weights, [sample]).integers
    assert all(np.array_equal(array, other) for array, other in zip(output, expected, strict=True))


class Wire:
    """Stands between the two organisations, and cuts connections."""

    def __init__(self, after: int) -> None:
        self._after = after
        self._port = 0
        self.cuts = 0
        self.open: set[asyncio.StreamWriter] = set()

    async def listen(self, port: int) -> int:
        """Forwards to a port; where it listens itself."""
        self._port = port
        server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        return int(server.sockets[0].getsockname()[1])

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, back = await asyncio.open_connection("127.0.0.1", self._port)
        self.open |= {writer, back}
        left = [self._after if self.cuts < 4 else 1 << 60]

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            while left[0] > 0 and (data := await source.read(1 << 14)):
                left[0] -= len(data)
                # The last entry goes in part: a frame breaks off in its middle.
                target.write(data if left[0] > 0 else data[: len(data) // 2])
                await target.drain()
            self.cut()

        with contextlib.suppress(OSError):
            await asyncio.gather(copy(reader, back), copy(answers, writer))

    def cut(self) -> None:
        """Ends all connections, without a word."""
        self.cuts += bool(self.open)
        for writer in self.open:
            writer.transport.abort()
        self.open.clear()


@MOSTLY_BFV
def test_killed_workers_are_replaced_and_their_requests_redone(
    program: tuple[Compiled, Path], cipher: Cipher, key_folder: Path, figures: list[str]
) -> None:
    compiled, folder = program

    async def run() -> None:
        async with pair(
            folder, key_folder, cipher=cipher, model_parts=[2, 1, 1], patience=QUICK
        ) as parties:
            await ask(parties, compiled, 0)
            load = [asyncio.create_task(ask(parties, compiled, seed)) for seed in range(1, 17)]
            pools = (parties.model_workers, parties.data_workers)
            victims = [await pool.processes() for pool in pools]
            for stage in (0, 1):
                for before in victims:
                    os.kill(before[stage, 0], signal.SIGKILL)
                await asyncio.wait(load, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.gather(*load)
            # A worker may have died between two calls; the next call finds out.
            await ask(parties, compiled, 17)
            after = [await pool.processes() for pool in pools]
            for old, new in zip(victims, after, strict=True):
                assert old.keys() == new.keys()
                places = {place for place in old if old[place] != new[place]}
                assert places == {(0, 0), (1, 0)}
            redo_counts = parties.model.ledger.redone, parties.data.ledger.redone
            assert min(redo_counts) >= 1
            figures.append(f"stream: {redo_counts} rounds redone after four workers were killed")

    asyncio.run(run())


@MOSTLY_BFV
def test_the_stream_goes_on_after_its_connection_was_cut(
    program: tuple[Compiled, Path], cipher: Cipher, key_folder: Path
) -> None:
    compiled, folder = program

    async def run() -> None:
        # A masked value is a hundredth of a ciphertext.
        wire = Wire(after=10_000 if cipher.masked else 60_000)
        count = 60 if cipher.masked else 12
        through = wire.listen
        async with pair(
            folder, key_folder, cipher=cipher, through=through, patience=QUICK
        ) as parties:
            await asyncio.gather(*(ask(parties, compiled, seed) for seed in range(count)))
            assert wire.cuts >= 2
            assert parties.data.link.connections == wire.cuts + 1
            wire.cut()
            await ask(parties, compiled, count)

    asyncio.run(run())


@MOSTLY_BFV
def test_requests_end_when_the_other_side_is_gone(
    program: tuple[Compiled, Path], cipher: Cipher, key_folder: Path
) -> None:
    compiled, folder = program
    patience = Patience(silence=1.0, resume=2.0, connect=1.0)

    async def run() -> None:
        async with pair(folder, key_folder, cipher=cipher, patience=patience) as parties:
            await ask(parties, compiled, 0)
            load = [asyncio.create_task(ask(parties, compiled, seed)) for seed in range(8)]
            await parties.model.close()
            start = time.monotonic()
            results = await asyncio.gather(*load, return_exceptions=True)
            assert time.monotonic() - start < 15
            assert any(isinstance(result, PeerError) for result in results)
            with pytest.raises(PeerError):
                await ask(parties, compiled, 9)

    asyncio.run(run())


@MOSTLY_BFV
def test_a_worker_that_hangs_is_replaced(
    program: tuple[Compiled, Path], cipher: Cipher, key_folder: Path
) -> None:
    compiled, folder = program

    async def run() -> None:
        pools = LocalPool(20.0), LocalPool(120.0)
        async with pair(folder, key_folder, cipher=cipher, pools=pools, patience=QUICK) as parties:
            await ask(parties, compiled, 0)
            stuck = (await pools[0].processes())[1, 0]
            os.kill(stuck, signal.SIGSTOP)
            await ask(parties, compiled, 1)
            assert (await pools[0].processes())[1, 0] != stuck
            assert parties.model.ledger.redone >= 1

    asyncio.run(run())


@pytest.mark.slow
def test_requests_side_by_side_are_half_as_quick_again_as_one_by_one(
    program: tuple[Compiled, Path], cipher: Cipher, key_folder: Path, figures: list[str]
) -> None:
    compiled, folder = program

    async def run() -> None:
        async with pair(folder, key_folder, cipher=cipher) as parties:
            await ask(parties, compiled, 0)
            start = time.monotonic()
            for seed in range(32):
                await ask(parties, compiled, seed)
            alone = time.monotonic() - start
            start = time.monotonic()
            await asyncio.gather(*(ask(parties, compiled, seed) for seed in range(32)))
            together = time.monotonic() - start
            figures.append(f"stream: 32 requests in {together:.2f} s, one by one {alone:.2f} s")
            assert alone > 1.5 * together

    asyncio.run(run())


Attack = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def strange(parties: StreamPair, keys_folder: Path, attack: Attack) -> None:
    """A data provider that does as it likes once it is connected."""
    host, port = parties.data.address
    tls = Credentials.from_directory(keys_folder, "client").tls()
    reader, writer = await asyncio.open_connection(host, port, ssl=tls, server_hostname=host)
    try:
        async with asyncio.timeout(15):
            await attack(reader, writer)
    finally:
        writer.transport.abort()


async def send(writer: asyncio.StreamWriter, kind: FrameKind, payload: bytes, number: int) -> None:
    await write(writer, Header(kind, len(payload), number, 0), payload, QUICK)


async def hangs_up(reader: asyncio.StreamReader) -> None:
    """Waits until the peer ends the connection."""
    with contextlib.suppress(OSError):
        while await reader.read(1 << 16):
            pass


async def greets(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cipher: Cipher
) -> Welcome:
    hello = Hello(cipher.code, NO_SESSION, 0).to_bytes()
    return Welcome.parse(await greet(reader, writer, hello, QUICK))


@MOSTLY_BFV
def test_strangers_and_false_frames_are_refused(
    program: tuple[Compiled, Path], cipher: Cipher, key_folder: Path, tmp_path: Path
) -> None:
    compiled, folder = program
    keys.make(tmp_path / "others")

    async def replays(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greets(reader, writer, cipher)
        for _ in range(2):
            await send(writer, FrameKind.KEY, bytes(9 * 256), 1)
        await hangs_up(reader)

    async def jumps(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greets(reader, writer, cipher)
        await send(writer, FrameKind.TENSOR, TensorFrame(1, 0, b"").to_bytes(), 2)
        await hangs_up(reader)

    async def asks_without_a_key(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await greets(reader, writer, cipher)
        await send(writer, FrameKind.OPEN, Opened(1, 0).to_bytes(), 1)
        await hangs_up(reader)

    async def sends_what_it_never_opened(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await greets(reader, writer, cipher)
        await send(writer, FrameKind.TENSOR, TensorFrame(1, 0, b"").to_bytes(), 1)
        await hangs_up(reader)

    async def has_another_cipher(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with pytest.raises(PeerMisbehaved, match="the cipher here is"):
            await greets(reader, writer, BFV if cipher is PAILLIER else PAILLIER)

    async def asks_too_much(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greets(reader, writer, cipher)
        header = Header(FrameKind.TENSOR, 1 << 30, 1, 0)
        writer.write(header.to_bytes())
        await hangs_up(reader)

    async def says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await hangs_up(reader)

    async def takes_over(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello = Hello(cipher.code, b"\x07" * 16, 0).to_bytes()
        with pytest.raises(PeerMisbehaved, match="no such session"):
            await greet(reader, writer, hello, QUICK)

    async def speaks_otherwise(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await send(writer, FrameKind.HELLO, b"GET / HTTP/1.1 and so on", 0)
        header, _ = await first(reader, QUICK)
        assert header.kind is FrameKind.REFUSED

    async def run() -> None:
        async with pair(folder, key_folder, cipher=cipher, patience=QUICK) as parties:
            for attack in (
                replays,
                jumps,
                asks_without_a_key,
                sends_what_it_never_opened,
                has_another_cipher,
                asks_too_much,
                says_nothing,
                takes_over,
                speaks_otherwise,
            ):
                await strange(parties, key_folder, attack)
            with pytest.raises((OSError, AssertionError)):
                await strange(parties, tmp_path / "others", replays)
            # Others go on undisturbed.
            await ask(parties, compiled, 1)

    asyncio.run(run())


@MOSTLY_BFV
def test_bad_rows_fail_their_request_alone(
    program: tuple[Compiled, Path], cipher: Cipher, key_folder: Path
) -> None:
    compiled, folder = program

    async def run() -> None:
        async with pair(folder, key_folder, cipher=cipher, patience=QUICK) as parties:
            size = parties.data.stages.row_bytes
            number, submission = await parties.data.begin()
            # Zero is no ciphertext, and no number of the ring has all its bits set.
            bad = b"\xff" if cipher.masked else b"\x00"
            await parties.data.send(number, [bad * 6 * size])
            with pytest.raises(PeerMisbehaved, match="model provider"):
                await asyncio.wait_for(submission.reply, 20)
            assert number == 1
            await ask(parties, compiled, 1)
            # A closed side says so, at once.
            await parties.data.close()
            with pytest.raises(LinkError, match="closed"):
                await ask(parties, compiled, 2)

    asyncio.run(run())


def test_a_revoked_data_provider_is_let_go(
    program: tuple[Compiled, Path], key_folder: Path, tmp_path: Path
) -> None:
    compiled, folder = program
    path = tmp_path / "revoked"
    path.write_text("")

    async def main() -> None:
        async with pair(folder, key_folder, cipher=BFV, patience=QUICK, revoked=path) as parties:
            await ask(parties, compiled, 1)
            path.write_text(keys.fingerprint(key_folder / "client.pem"))

            async def ask_on() -> None:
                async with asyncio.timeout(20):
                    while True:
                        await ask(parties, compiled, 2)

            with pytest.raises(PeerError, match="revoked"):
                await ask_on()

    asyncio.run(main())
