"""SIGHUP: certificates, policy and models are read again, and what runs goes on."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import socket
import time
import urllib.request
from pathlib import Path

import numpy as np
from tests.e2e.caller import ServiceCaller
from tests.e2e.processes import SOON
from tests.e2e.services import put_digits, serving
from tests.e2e.test_commands import MODELS, key_folder, privet

from privet import keys as certificates
from privet.errors import PrivetError
from privet.gateway import ServiceClient
from privet.runtime import Credentials

__all__ = ["key_folder"]

HELD = np.load(MODELS / "digits-cnn.npz")
SEVEN = HELD["inputs"][HELD["labels"] == 7][:1]
NEVER = 3600.0
"""Seconds between two looks at the models: what has changed is seen at SIGHUP alone."""


async def asked(address: str, keys: Path, state: Path) -> int:
    """What a client of these keys is told."""
    credentials = Credentials.from_directory(keys, "client")
    async with ServiceClient(address, credentials, state=state, patience=5.0) as client:
        result = await client.infer("digits", [SEVEN], timeout=SOON)
        return int(np.argmax(result.outputs["logits"]))


async def until_answered(address: str, keys: Path, state: Path) -> int:
    """The same, once it is told something."""
    end = time.monotonic() + SOON
    while True:
        try:
            return await asked(address, keys, state)
        except PrivetError:
            if time.monotonic() > end:
                raise


async def until_refused(address: str, keys: Path, state: Path) -> str:
    """Why the client gets nothing any more."""
    end = time.monotonic() + SOON
    while time.monotonic() < end:
        try:
            await asked(address, keys, state)
        except PrivetError as error:
            return str(error)
    raise AssertionError("the client is answered for ever")


async def until_newest(address: str, keys: Path, state: Path, version: int) -> None:
    """Returns once the newest version that the service has of the model is this."""
    credentials = Credentials.from_directory(keys, "client")
    async with ServiceClient(address, credentials, state=state) as client, asyncio.timeout(SOON):
        while (await client.model("digits")).version != version:
            await asyncio.sleep(0.05)


def test_certificates_policy_and_models_are_read_again(key_folder: Path, tmp_path: Path) -> None:
    put_digits(tmp_path / "repository")
    keys, policy = tmp_path / "keys", tmp_path / "policy.toml"
    shutil.copytree(key_folder, keys)
    policy.write_text("")
    others = tmp_path / "others"
    certificates.make(others)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        probe = "127.0.0.1:{1}".format(*free.getsockname())
    audit = ("--audit", tmp_path / "audit.log")
    options = ("--accept", policy, "--probe", probe, "--poll", NEVER, *audit)
    with serving(tmp_path, keys, *options) as scene:
        with urllib.request.urlopen(f"http://{probe}/v2/health/ready") as answer:
            assert answer.status == 200

        async def act() -> None:
            def hangup() -> None:
                scene.process.process.send_signal(signal.SIGHUP)

            async with ServiceCaller(scene.address, key_folder, tmp_path / "waits") as caller:
                # A job that was granted before goes on afterwards.
                request = await caller.request("digits")
                put_digits(scene.repository, version=2)
                await until_newest(scene.address, key_folder, tmp_path / "a", 1)
                hangup()
                job, _ = await caller.follow(request, [SEVEN])
                assert job["outcome"] == "done"
            await until_newest(scene.address, key_folder, tmp_path / "a", 2)
            shutil.copytree(others, keys, dirs_exist_ok=True)
            (keys / "ca.pem").write_text("none")  # nothing is taken from files like these
            hangup()
            assert await asked(scene.address, key_folder, tmp_path / "a") == 7
            shutil.copy(others / "ca.pem", keys)
            hangup()
            assert await until_answered(scene.address, others, tmp_path / "b") == 7
            assert "certificate" in await until_refused(scene.address, key_folder, tmp_path / "a")
            policy.write_text('[accepts]\nsuite = ["fss"]\n')
            hangup()
            assert "accept" in await until_refused(scene.address, others, tmp_path / "b")

        asyncio.run(act())
    report = privet("audit-log", audit[1])
    assert report["problems"] == []
    lines = [json.loads(line) for line in audit[1].read_text().splitlines()]
    assert len(lines) == report["lines"]
    policies = [line["policy"]["accepts"]["suite"] for line in lines if line["event"] == "policy"]
    assert policies[0] != policies[-1] == ["fss"]
    jobs = {line["job"] for line in lines if line.get("outcome") == "done"}
    clients = {line["client"] for line in lines if line.get("job") in jobs and "client" in line}
    assert clients == {
        certificates.fingerprint(folder / "client.pem") for folder in (key_folder, others)
    }
    assert [line["mode"]["suite"] for line in lines if line["event"] == "refused"][-1] == "gmw"
