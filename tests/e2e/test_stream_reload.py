"""Certificates of a pipeline's two sides rotate and are revoked while requests are under way."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import shutil
import signal
import socket
import ssl
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.e2e.processes import SOON, listening, running
from tests.e2e.rotations import NOT_READ, READ, Log, Rotation, rotation, until
from tests.e2e.test_reload import certificate_at, connections_at
from tests.e2e.test_stream_material import overheard
from tests.e2e.test_stream_pipeline import MOSTLY_BFV, QUICK, ask, greets, program, send, strange
from tests.python.stream import models

from privet import keys as certificates
from privet.compiler.compile import Compiled
from privet.compiler.executor import execute
from privet.errors import LinkError, PeerError, PeerMisbehaved, PrivetError
from privet.runtime import Credentials
from privet.runtime.trust import PeerTrust
from privet.stream.cipher import BFV, PAILLIER, Cipher
from privet.stream.frames import FrameKind, Hello, Successor, TensorFrame, Welcome
from privet.stream.link import Patience, greet
from privet.stream.pair import StreamPair, pair
from privet.stream.preprocessing import PreparingData, PreprocessingAddress

__all__ = ["program", "rotation"]

pytestmark = pytest.mark.timeout(240)

BRIEF = Patience(silence=10.0, resume=2.0, connect=1.0)

RELOADS = pytest.mark.parametrize("reloads", [True, False], ids=["reloaded", "control"])


@pytest.fixture
def data_keys(rotation: Rotation, tmp_path: Path) -> Path:
    """The folder that the data provider reads: of the old authority, and trusts both."""
    return Path(shutil.copytree(rotation.old, tmp_path / "mine"))


def put(rotation: Rotation, folder: Path, *trusted: Path) -> None:
    """Gives the data provider new keys, which trust the authorities of some."""
    for name in ("client.pem", "client.key"):
        shutil.copy(rotation.new / name, folder)
    rotation.trust(folder, *trusted)


async def reload(parties: StreamPair) -> None:
    """What SIGHUP does at the model provider."""
    parties.tls.reload()
    await parties.model.renew()


async def renew(parties: StreamPair, data_keys: Path) -> None:
    """What SIGHUP does at the data provider."""
    await parties.data.renew(Credentials.from_directory(data_keys, "client"))


@MOSTLY_BFV
def test_requests_and_material_outlive_certificates_and_authorities(
    program: tuple[Compiled, Path], cipher: Cipher, rotation: Rotation, data_keys: Path
) -> None:
    compiled, folder = program
    old, new = rotation.old, rotation.new

    async def run() -> None:
        async with pair(
            folder, rotation.folder, data_keys=data_keys, cipher=cipher, ahead=3, patience=QUICK
        ) as parties:
            await ask(parties, compiled, 0)
            payloads = overheard(parties)
            (session,) = parties.model._sessions.values()
            assert session.client == rotation.shown(old, "client")
            load = [asyncio.create_task(ask(parties, compiled, seed)) for seed in range(1, 33)]
            rotation.put(new)
            await reload(parties)
            put(rotation, data_keys, old, new)
            await renew(parties, data_keys)
            assert not all(task.done() for task in load)
            # The old authority is taken out at both sides.
            rotation.put(new, new)
            await reload(parties)
            put(rotation, data_keys, new)
            await renew(parties, data_keys)
            await asyncio.gather(*load)
            await asyncio.gather(*(ask(parties, compiled, seed) for seed in range(33, 41)))
            assert list(parties.model._sessions.values()) == [session]
            assert session.client == rotation.shown(new, "client")
            (certificate, *_) = parties.data._dialler.certificates
            assert hashlib.sha256(certificate).hexdigest() == rotation.shown(new, "server")
            assert parties.data.link.connections >= 2
            # No entry was lost, and nothing was sent twice.
            assert parties.data.ledger.spoiled == 0
            places = [(tensor.request, tensor.place) for tensor in map(TensorFrame.parse, payloads)]
            assert len(places) == len(set(places)) == 40 * 3

    asyncio.run(run())


@RELOADS
def test_a_data_provider_whose_authority_is_gone_goes_on_no_further(
    program: tuple[Compiled, Path], rotation: Rotation, data_keys: Path, reloads: bool
) -> None:
    compiled, folder = program
    public = compiled.program.to_public_bytes()

    async def run() -> None:
        async with pair(
            folder, rotation.folder, data_keys=data_keys, cipher=BFV, ahead=1, patience=BRIEF
        ) as parties:
            await ask(parties, compiled, 0)
            # A second connection to the preparing worker, on which an entry was made.
            assert parties.model.receiver is not None
            where = PreprocessingAddress("127.0.0.1", parties.model.receiver.port, "127.0.0.1")
            files = Credentials.from_directory(data_keys, "client").files
            worker = PreparingData(public, files, 20.0)
            await asyncio.to_thread(worker.prepare, where, "before")
            rotation.put(rotation.new, rotation.new)
            if not reloads:
                await asyncio.to_thread(worker.prepare, where, "after")
                await ask(parties, compiled, 1)
                return
            began = time.monotonic()
            await reload(parties)
            async with asyncio.timeout(1.0):
                await parties.data.link.disconnected()
            for name in ("after", "anew"):
                with pytest.raises(PrivetError):
                    await asyncio.to_thread(worker.prepare, where, name)
            with pytest.raises(PeerError):
                await asyncio.gather(*(ask(parties, compiled, seed) for seed in range(1, 4)))
            assert time.monotonic() - began < 30
            assert parties.data.link.connections == 1

    asyncio.run(run())


@RELOADS
def test_a_model_provider_whose_authority_is_gone_gets_nothing_more(
    program: tuple[Compiled, Path], rotation: Rotation, data_keys: Path, reloads: bool
) -> None:
    compiled, folder = program

    async def run() -> None:
        async with pair(
            folder, rotation.folder, data_keys=data_keys, cipher=BFV, ahead=1, patience=BRIEF
        ) as parties:
            await ask(parties, compiled, 0)
            put(rotation, data_keys, rotation.new)
            if not reloads:
                await ask(parties, compiled, 1)
                return

            # It does not let itself be kept by what it has not acknowledged, either.
            async def ignore(number: int) -> None:
                pass

            parties.data.link._acknowledge = ignore  # type: ignore[method-assign]
            async with asyncio.timeout(5):
                await renew(parties, data_keys)
            assert not parties.data.link.connected
            with pytest.raises(LinkError):
                await ask(parties, compiled, 1)
            assert parties.data.link.connections == 1

    asyncio.run(run())


@pytest.mark.parametrize("judges", [True, False], ids=["judged", "control"])
def test_a_link_that_was_down_goes_to_nobody_whose_authority_is_gone(
    program: tuple[Compiled, Path], rotation: Rotation, data_keys: Path, judges: bool
) -> None:
    _, folder = program
    is_up, links = True, list[asyncio.StreamWriter]()

    async def through(port: int) -> int:
        """A port that leads to another as long as the link is up."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if not is_up:
                writer.transport.abort()
                return
            upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", port)
            links.extend((writer, upstream_writer))
            await asyncio.gather(_copy(reader, upstream_writer), _copy(upstream_reader, writer))

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        return int(server.sockets[0].getsockname()[1])

    async def run() -> None:
        nonlocal is_up
        rotation.put(rotation.new)
        patience = Patience(silence=10.0, resume=5.0, connect=2.0)
        async with pair(
            folder,
            rotation.folder,
            data_keys=data_keys,
            cipher=PAILLIER,
            patience=patience,
            through=through,
        ) as parties:
            if not judges:
                parties.data._dialler._trust = PeerTrust()
            is_up = False
            for writer in links:
                writer.transport.abort()
            await parties.data.link.disconnected()
            count = parties.data.link.connections
            # Whoever has the old authority's key takes the model provider's place.
            rotation.put(rotation.old)
            parties.tls.reload()
            put(rotation, data_keys, rotation.new)
            renewal = asyncio.create_task(renew(parties, data_keys))
            await asyncio.sleep(0.5)
            is_up = True
            if judges:
                with pytest.raises(LinkError):
                    await renewal
            else:
                await renewal
            assert (parties.data.link.connections > count) is not judges

    asyncio.run(run())


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(2**16):
            writer.write(data)
            await writer.drain()
    writer.transport.abort()


def test_a_model_provider_that_was_revoked_is_left(
    program: tuple[Compiled, Path], key_folder: Path, tmp_path: Path
) -> None:
    compiled, folder = program
    path = tmp_path / "revoked"
    path.write_text(certificates.fingerprint(key_folder / "client.pem"))

    async def run() -> None:
        async with pair(
            folder, key_folder, cipher=BFV, patience=QUICK, data_revoked=path
        ) as parties:
            # The control: whoever is not on the list is asked.
            await ask(parties, compiled, 0)
            path.write_text(certificates.fingerprint(key_folder / "server.pem"))

            async def ask_on() -> None:
                async with asyncio.timeout(10):
                    while True:
                        await ask(parties, compiled, 1)

            with pytest.raises(PeerMisbehaved, match="revoked"):
                await ask_on()
            assert not parties.data.link.connected
        with pytest.raises(PeerMisbehaved, match="revoked"):
            async with pair(folder, key_folder, cipher=BFV, patience=QUICK, data_revoked=path):
                pass

    asyncio.run(run())


def test_a_preparing_worker_asks_nothing_of_whom_was_revoked(
    program: tuple[Compiled, Path], key_folder: Path, tmp_path: Path
) -> None:
    compiled, folder = program
    path = tmp_path / "revoked"
    path.write_text("")

    async def run() -> None:
        async with pair(folder, key_folder, cipher=BFV, ahead=1, patience=QUICK) as parties:
            assert parties.model.receiver is not None
            where = PreprocessingAddress("127.0.0.1", parties.model.receiver.port, "127.0.0.1")
            files = Credentials.from_directory(key_folder, "client").files
            worker = PreparingData(compiled.program.to_public_bytes(), files, 20.0, str(path))
            await asyncio.to_thread(worker.prepare, where, "before")
            path.write_text(certificates.fingerprint(key_folder / "server.pem"))
            for name in ("connected", "anew"):
                with pytest.raises(PeerMisbehaved, match="revoked"):
                    await asyncio.to_thread(worker.prepare, where, name)

    asyncio.run(run())


def test_a_session_goes_on_with_the_certificate_that_it_named_alone(
    program: tuple[Compiled, Path], rotation: Rotation
) -> None:
    _, folder = program
    old, new = rotation.old, rotation.new

    async def run() -> None:
        async with pair(folder, old, cipher=BFV, patience=QUICK) as parties:
            sessions: list[bytes] = []

            def resumes(received: int) -> bytes:
                return Hello(BFV.code, sessions[0], received).to_bytes()

            async def opens(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                sessions.append((await greets(reader, writer, BFV)).session)

            async def names(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                welcome = await greet(reader, writer, resumes(1), QUICK)
                assert Welcome.parse(welcome).session == sessions[0]
                name = bytes.fromhex(rotation.shown(new, "client"))
                await send(writer, FrameKind.SUCCESSOR, Successor(name).to_bytes(), 1)
                await reader.read(1)
                await asyncio.sleep(0.5)

            async def goes_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                welcome = await greet(reader, writer, resumes(1), QUICK)
                assert Welcome.parse(welcome).received == 1

            async def is_refused(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter
            ) -> None:
                with pytest.raises(PeerMisbehaved, match="no such session"):
                    await greet(reader, writer, resumes(1), QUICK)

            await strange(parties, old, opens)
            await strange(parties, new, is_refused)
            await strange(parties, old, names)
            await strange(parties, new, goes_on)
            await strange(parties, old, is_refused)

    asyncio.run(run())


def test_both_commands_read_certificates_again(rotation: Rotation, data_keys: Path) -> None:
    old, new = rotation.old, rotation.new
    compiled = models.perceptron()
    model, sample = data_keys / "model.onnx", data_keys / "x.npy"
    onnx.save(compiled.source, model)
    x = np.random.default_rng(1).uniform(-1, 1, (1, 6))
    np.save(sample, x)
    logs = Log(data_keys / "provider.log"), Log(data_keys / "data.log")
    words = ("pipeline", "provider", model, "--keys", rotation.folder, "--reveal-values")
    with ExitStack() as stack:
        provider, address = stack.enter_context(
            listening(*words, "--input-range", -1, 1, log=logs[0].path)
        )
        call: list[object] = ["pipeline", "data", address, "--keys", data_keys, "--input", sample]
        call += ["--repeat", 400, "--window", 2, "--ahead", 2]
        data = stack.enter_context(running(*call, log=logs[1].path))
        until(lambda: connections_at(address))
        fingerprint = certificate_at(address, new)
        rotation.put(new)
        logs[0].hangup(provider, READ)
        assert certificate_at(address, new) == rotation.shown(new, "server") != fingerprint
        put(rotation, data_keys, old, new)
        logs[1].hangup(data, READ)
        # A file that cannot be used leaves everything as it was.
        (rotation.folder / "server.key").write_text("none")
        logs[0].hangup(provider, NOT_READ)
        assert certificate_at(address, new) == rotation.shown(new, "server")
        rotation.put(new, new)
        logs[0].hangup(provider, READ)
        # Somebody else of the old authority is let in no more.
        host, _, port = address.rpartition(":")
        context = Credentials.from_directory(old, "client").tls()
        with (
            socket.create_connection((host, int(port)), SOON) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as link,
            pytest.raises(ssl.SSLError),
        ):
            link.recv(1)
        report = data.next()
        expected = execute(compiled.program, compiled.weights, [x]).outputs["y"]
        assert len(report["outputs"]) == 400
        assert all(
            np.allclose(outputs["y"], expected, atol=2**-10) for outputs in report["outputs"]
        )
        assert report["offline"]["spoiled"] == 0
        assert provider.end(signal.SIGTERM) == 0
