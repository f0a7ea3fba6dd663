"""Certificates that were revoked or are out of date: refused from the next request on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
from tests.attacks.scene import INPUT, small_model
from tests.e2e.caller import ServiceCaller
from tests.python.service_control.actors import Pretender, eventually, scene
from tests.python.service_control.conftest import folder, program

from privet import keys
from privet.errors import Misuse, PeerError, PeerMisbehaved, PrivetError
from privet.runtime import Client, Credentials, Dealer, Server
from privet.runtime.revocation import Revoked, read_fingerprints
from privet.service.control.identity import Gate, tls

__all__ = ["folder", "program"]

SOON = 20.0


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """Keys of a server and two clients."""
    keys.make(tmp_path / "keys", keep_ca_key=True)
    keys.issue(tmp_path / "keys", "other")
    return tmp_path / "keys"


def dated(folder: Path, days: float, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keys that were made so many days from now, valid for ninety; of `late` for one."""

    class Then(datetime):
        """Another day."""

        @classmethod
        def now(cls, tz: Any = None) -> Then:
            moment = datetime.now(tz) + timedelta(days=days)
            return cls.fromtimestamp(moment.timestamp(), tz)

    with monkeypatch.context() as patch:
        patch.setattr(keys, "datetime", Then)
        keys.make(folder, keep_ca_key=True)
        for name, valid in (("late", 1), ("other", 90)):
            keys.issue(folder, name, days=valid)
    return folder


def test_a_list_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "revoked"
    path.write_text("# nobody yet\n")
    revoked = Revoked(path)
    assert revoked.refuses("ab" * 32) is None
    of_openssl = f"sha256 Fingerprint={':'.join(['CD'] * 32)}"
    path.write_text(f"{'ab' * 32}  # lost laptop\n{of_openssl}\n")
    for client in ("ab" * 32, "cd" * 32):
        assert revoked.refuses(client) == "this certificate was revoked"
    assert revoked.refuses("ef" * 32) is None
    # Replaced by a rename, as editors do, with the same size and a time that was set back.
    before = path.stat()
    fresh = tmp_path / "fresh"
    fresh.write_text(path.read_text().replace("ab" * 32, "ef" * 32))
    os.utime(fresh, ns=(before.st_atime_ns, before.st_mtime_ns))
    fresh.rename(path)
    assert revoked.refuses("ab" * 32) is None
    assert revoked.refuses("ef" * 32) is not None


@pytest.mark.parametrize(
    "break_",
    [
        lambda path: path.write_text("ab12\n"),
        lambda path: path.write_text("sha256 Fingerprint=\n"),
        lambda path: path.write_text(f"{'ab' * 32}=\n"),
        lambda path: path.unlink(),
    ],
)
def test_a_list_that_cannot_be_read_refuses_everybody(
    tmp_path: Path, break_: Callable[[Path], object]
) -> None:
    path = tmp_path / "revoked"
    path.write_text("")
    revoked = Revoked(path)
    break_(path)
    assert "cannot be read" in str(revoked.refuses("ab" * 32))
    with pytest.raises(Misuse):
        Revoked(path)
    path.write_text("\n")
    assert revoked.refuses("ab" * 32) is None


def test_a_wrong_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "revoked"
    path.write_text(f"{'ab' * 32}\nserver.pem\n")
    with pytest.raises(Misuse, match="line 2"):
        read_fingerprints(path)


def test_a_server_refuses_the_next_request_of_a_connected_client(
    pair: Path, tmp_path: Path
) -> None:
    compiled = small_model()
    path = tmp_path / "revoked"
    path.write_text("")
    state = tmp_path / "server"
    server_keys = Credentials.from_directory(pair, "server")
    with Server(server_keys, state=state, revoked=path, timeout=SOON) as server:
        server.add(compiled.program, compiled.weights)
        port = server.start().address[1]

        def client(role: str) -> Client:
            credentials = Credentials.from_directory(pair, role)
            return Client("localhost", port, credentials, state=tmp_path / role, timeout=SOON)

        first = client("client")
        with client("other") as second:
            first.prepare(2)
            assert np.isfinite(first.infer([INPUT]).outputs["y"]).all()
            path.write_text(keys.fingerprint(pair / "client.pem") + "\n")
            with pytest.raises(PeerError, match="revoked"):
                first.infer([INPUT])
            with pytest.raises(PeerError):
                client("client")
            # The control: nobody else notices.
            assert np.isfinite(second.infer([INPUT]).outputs["y"]).all()
        with suppress(PrivetError):
            first.close()


def test_a_dealer_turns_a_revoked_party_away(pair: Path, tmp_path: Path) -> None:
    path = tmp_path / "revoked"
    path.write_text(keys.fingerprint(pair / "client.pem"))
    errors: list[str] = []
    with Dealer(
        Credentials.from_directory(pair, "dealer"),
        revoked=path,
        on_dealt=lambda report: errors.append(str(report.error)),
    ) as dealer:
        dealer.start()
        compiled = small_model()
        server_credentials = Credentials.from_directory(pair, "server")
        address = f"localhost:{dealer.address[1]}"
        with Server(
            server_credentials, state=tmp_path / "server", dealer=address, timeout=SOON
        ) as server:
            server.add(compiled.program, compiled.weights)
            port = server.start().address[1]
            credentials = Credentials.from_directory(pair, "client")
            client = Client(
                "localhost",
                port,
                credentials,
                state=tmp_path / "client",
                suite="fss",
                dealer=address,
                timeout=SOON,
            )
            with pytest.raises(PrivetError):
                client.prepare()
            with suppress(PrivetError):
                client.close()
    assert any("revoked" in text for text in errors)


def test_the_control_plane_refuses_and_ends_what_runs(
    folder: Path, pair: Path, program: Path, tmp_path: Path
) -> None:
    path, tokens = tmp_path / "revoked", tmp_path / "tokens"
    path.write_text("")
    digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    tokens.write_text(f"{digest} someone\n")
    revoked = Revoked(path)
    gate = Gate(tokens=tokens, revoked=revoked)

    async def main() -> None:
        executor = Pretender()
        async with (
            scene(folder, pair, program, executor, gate, revoked=revoked) as testbed,
            ServiceCaller(testbed.address, pair, folder / "c") as client,
            ServiceCaller(testbed.address, pair, folder / "o", "other") as other,
        ):
            client.headers = other.headers = {"Authorization": "Bearer test"}
            id = await client.request("digits")
            await executor.granted("prepare")
            path.write_text(keys.fingerprint(pair / "client.pem"))
            # The next call over the connection that is open, and the job that runs.
            status, answer = await client.call("GET", f"/v2/jobs/{id}")
            assert (status, answer["reason"]) == (403, "revoked")
            await eventually(lambda: not testbed.service.jobs.live())
            job = testbed.service.jobs.find(id)
            assert job is not None
            assert job.outcome == "cancelled"
            assert (await other.call("GET", "/v2/jobs"))[0] == 200
            tokens.write_text(f"{'0' * 64} someone\n")
            assert (await other.call("GET", "/v2/jobs"))[0] == 401
            tokens.write_text("nonsense\n")
            assert (await other.call("GET", "/v2/jobs"))[0] == 503
            tokens.write_text(f"{digest} someone\n")
            assert (await other.call("GET", "/v2/jobs"))[0] == 200

    asyncio.run(main())


@pytest.mark.parametrize(("days", "message"), [(-200, "expired on"), (30, "not valid before")])
def test_an_own_certificate_out_of_date_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: float, message: str
) -> None:
    folder = dated(tmp_path / "keys", days, monkeypatch)
    with pytest.raises(Misuse, match=message):
        tls(folder)
    for role in ("server", "dealer", "client"):
        with pytest.raises(Misuse, match=message):
            Credentials.from_directory(folder, role)
    # The control: files of today.
    keys.make(tmp_path / "today")
    assert tls(tmp_path / "today") is not None


def test_a_clients_expired_certificate_is_refused(
    folder: Path, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = dated(tmp_path / "keys", -3, monkeypatch)

    async def main() -> None:
        async with (
            scene(folder, pair, program) as testbed,
            ServiceCaller(testbed.address, pair, folder / "c", "late") as late,
            ServiceCaller(testbed.address, pair, folder / "o", "other") as other,
        ):
            with pytest.raises(aiohttp.ClientError):
                await late.call("GET", "/v2/health/live")
            assert (await other.call("GET", "/v2/health/live"))[0] == 200

    asyncio.run(main())
    monkeypatch.setattr("privet.runtime.credentials.check_dates", lambda path: None)
    compiled = small_model()
    with Server(Credentials.from_directory(pair, "server"), state=tmp_path / "s") as server:
        server.add(compiled.program, compiled.weights)
        port = server.start().address[1]
        credentials = Credentials.from_directory(pair, "late")
        with pytest.raises(PeerMisbehaved, match="refused"):
            Client("localhost", port, credentials, state=tmp_path / "late", timeout=SOON)
