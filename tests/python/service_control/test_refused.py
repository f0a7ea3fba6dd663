"""Whoever is let in no more: streams that are open end, and refusals do not fill the log."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from pathlib import Path

import aiohttp
import pytest
from tests.e2e.caller import ServiceCaller, tls
from tests.python.service_control.actors import Scene, scene

from privet import keys
from privet.keys import fingerprint
from privet.runtime.revocation import Revoked
from privet.service.control import app
from privet.service.control.identity import Gate
from privet.service.limits import ServiceLimits

SOON = 20.0


class StillOpen(AssertionError):
    """A stream goes on that should have ended."""


def events(testbed: Scene, keys: Path, role: str, token: str) -> aiohttp.ClientSession:
    """A session that follows the operator's events."""
    return aiohttp.ClientSession(
        f"https://localhost:{testbed.address.rpartition(':')[2]}",
        connector=aiohttp.TCPConnector(ssl=tls(keys, role)),
        headers={"Authorization": f"Bearer {token}"},
    )


@pytest.mark.parametrize("credential", ["certificate", "token", "role"])
def test_the_operators_events_end_when_their_reader_is_let_in_no_more(
    folder: Path, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, credential: str
) -> None:
    key_folder, revoked, tokens = tmp_path / "keys", tmp_path / "revoked", tmp_path / "tokens"
    keys.make(key_folder)
    revoked.write_text("")
    digest = hashlib.sha256(b"secret").hexdigest()
    tokens.write_text(f"{digest} ann operator\n")
    role = "client" if credential == "role" else "operator"
    gate = Gate(tokens=tokens, revoked=Revoked(revoked))

    async def main() -> None:
        async with (
            scene(folder, key_folder, program, gate=gate) as testbed,
            events(testbed, key_folder, role, "secret") as session,
            session.get("/v2/events") as answer,
        ):
            assert answer.status == 200
            for _ in range(3):  # it goes on while nothing is taken away
                assert await answer.content.readuntil(b"\n\n")
            if credential == "certificate":
                revoked.write_text(fingerprint(key_folder / "operator.pem"))
            elif credential == "token":
                tokens.write_text(f"{hashlib.sha256(b'other').hexdigest()} ann operator\n")
            else:
                tokens.write_text(f"{digest} ann\n")
            async with asyncio.timeout(SOON):
                for _ in range(3):
                    if not await answer.content.readline():
                        return
                    await answer.content.readuntil(b"\n\n")
            raise StillOpen

    asyncio.run(main())
    # Nobody who looks at the start alone notices.
    revoked.write_text("")
    tokens.write_text(f"{digest} ann operator\n")
    monkeypatch.setattr(Gate, "is_operator", lambda *_: True)
    with pytest.raises(StillOpen):
        asyncio.run(main())


@pytest.mark.parametrize("path", ["/v2/state", "/nowhere", "/v2/models/none"])
def test_a_client_that_is_refused_again_and_again_fills_no_log(
    folder: Path,
    tmp_path: Path,
    program: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
) -> None:
    caplog.set_level(logging.INFO, app.__name__)
    key_folder = tmp_path / "keys"
    keys.make(key_folder, keep_ca_key=True)
    keys.issue(key_folder, "other")

    def lines() -> list[int]:
        records = [record for record in caplog.records if record.message == "call"]
        return [vars(record)["times"] for record in records if vars(record)["status"] >= 400]

    async def main() -> None:
        async with (
            scene(folder, key_folder, program) as testbed,
            ServiceCaller(testbed.address, key_folder, folder / "c") as caller,
            ServiceCaller(testbed.address, key_folder, folder / "o", "other") as other,
        ):
            for _ in range(20):
                assert (await caller.call("GET", path))[0] in (403, 404)
            assert lines() == [1]
            # Another client's refusals are told as well.
            assert (await other.call("GET", path))[0] in (403, 404)
            assert lines() == [1, 1]

    asyncio.run(main())
    caplog.clear()
    # Without the bound each call is a line.
    monkeypatch.setattr(app._Account, "_due", lambda *_: 1)
    with pytest.raises(AssertionError):
        asyncio.run(main())


def test_calls_of_operators_that_a_client_makes_count_among_its_own(
    folder: Path, key_folder: Path, program: Path
) -> None:
    async def main() -> None:
        async with (
            scene(folder, key_folder, program, limits=ServiceLimits(calls_per_second=4)) as testbed,
            ServiceCaller(testbed.address, key_folder, folder / "c") as caller,
        ):
            codes = [(await caller.call("GET", "/v2/state"))[0] for _ in range(12)]
            assert codes[0] == 403
            assert 429 in codes

    asyncio.run(main())


@pytest.mark.parametrize("origin", ["http://[::1", "http://[name]/", "null", "https://elsewhere"])
def test_an_origin_that_is_no_address_is_another_one(
    folder: Path, key_folder: Path, program: Path, origin: str
) -> None:
    async def main() -> None:
        async with (
            scene(folder, key_folder, program) as testbed,
            ServiceCaller(testbed.address, key_folder, folder / "c") as caller,
        ):
            caller.headers["Origin"] = origin
            status, answer = await caller.call("POST", "/v2/models/digits/notices", {})
            assert (status, answer["reason"]) == (403, "other origin")

    asyncio.run(main())
