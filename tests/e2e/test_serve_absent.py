"""Clients that ask and leave, or that are stopped: inferences of others hardly wait for them."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import time
from contextlib import AsyncExitStack
from pathlib import Path

import numpy as np
import pytest
from tests.e2e.caller import ServiceCaller
from tests.e2e.processes import SOON
from tests.e2e.services import put_digits, serving
from tests.e2e.test_commands import PRIVET
from tests.e2e.test_serve_life import SEVEN

from privet import keys
from privet.scheduler import Limits
from privet.service.driver import LATE_SECONDS

ABANDONED = 50
STOPPED = 3


@pytest.mark.timeout(120)
def test_abandoned_requests_delay_nobody(tmp_path: Path, figures: list[str]) -> None:
    """The control is in `tests/python/scheduler/test_clients.py`, in simulated time: without the
    rule the other waits for fifty times the grace."""
    put_digits(tmp_path / "repository")
    keys.make(tmp_path / "keys", keep_ca_key=True)
    keys.issue(tmp_path / "keys", "absent")

    async def main(address: str) -> tuple[float, float]:
        async with (
            ServiceCaller(address, tmp_path / "keys", tmp_path / "c") as caller,
            ServiceCaller(address, tmp_path / "keys", tmp_path / "a", "absent") as absent,
        ):

            async def once() -> float:
                start = time.monotonic()
                job, results = await caller.follow(await caller.request("digits"), [SEVEN])
                assert job["outcome"] == "done", job
                assert results[0].outputs["logits"].argmax() == 7
                return time.monotonic() - start

            await once()
            alone = await once()
            ids = [await absent.request("digits") for _ in range(ABANDONED)]
            crowded = await once()
            # Who comes back in time finds its jobs; the others are ended.
            assert (await absent.good("GET", f"/v2/jobs/{ids[0]}"))["state"] == "queued"
            return alone, crowded

    options = ("--cores", 1, "--grace", 5, "--absent", 20)
    with serving(tmp_path, tmp_path / "keys", *options) as scene:
        alone, with_others = asyncio.run(main(scene.address))
    assert with_others < 3 * alone + 1.0
    figures.append(f"an inference alone {alone:.2f} s, beside 50 abandoned {with_others:.2f} s")


def test_stopped_clients_delay_nobody_for_long(tmp_path: Path, figures: list[str]) -> None:
    """They keep their calls open, so they seem to listen. The control is in
    `tests/python/scheduler/test_lateness.py`: without the rule each has the core for the grace.
    """
    put_digits(tmp_path / "repository")
    keys.make(tmp_path / "keys", keep_ca_key=True)
    np.save(tmp_path / "seven.npy", SEVEN)
    names = [f"stopped{number}" for number in range(STOPPED)]
    for name in ("holder", *names):
        keys.issue(tmp_path / "keys", name)

    async def once(caller: ServiceCaller) -> float:
        start = time.monotonic()
        job, results = await caller.follow(await caller.request("digits"), [SEVEN])
        assert job["outcome"] == "done", job
        assert results[0].outputs["logits"].argmax() == 7
        return time.monotonic() - start

    async def main(address: str) -> tuple[float, float]:
        def caller(name: str) -> ServiceCaller:
            return ServiceCaller(address, tmp_path / "keys", tmp_path / name, name)

        async with AsyncExitStack() as stack:
            client, holder, *others = [
                await stack.enter_async_context(caller(name))
                for name in ("client", "holder", *names)
            ]
            await once(client)
            alone = await once(client)
            # Somebody has the core while the others ask. It calls, so it is there.
            job = await holder.request("digits")
            while (await holder.good("GET", f"/v2/jobs/{job}?wait=1"))["state"] != "preparing":
                pass
            processes = [stack.enter_context(infer(address, name)) for name in names]
            for other in others:
                while not (await other.good("GET", "/v2/jobs"))["jobs"]:
                    await holder.good("GET", "/v2/jobs")
                    await asyncio.sleep(0.05)
            for process in processes:
                process.send_signal(signal.SIGSTOP)
            await holder.good("DELETE", f"/v2/jobs/{job}")
            crowded = await once(client)
            # Those that go on find their jobs.
            for process in processes:
                process.send_signal(signal.SIGCONT)
                assert await asyncio.to_thread(process.wait, SOON) == 0
            return alone, crowded

    def infer(address: str, name: str) -> subprocess.Popen[bytes]:
        identity = tmp_path / f"{name} keys"
        identity.mkdir()
        shutil.copy(tmp_path / "keys" / "ca.pem", identity)
        for suffix in ("pem", "key"):
            shutil.copy(tmp_path / "keys" / f"{name}.{suffix}", identity / f"client.{suffix}")
        words = ["infer", address, "--keys", identity, "--state", tmp_path / f"{name} state"]
        words += ["--input", tmp_path / "seven.npy"]
        return subprocess.Popen([*PRIVET, *map(str, words)], stdout=subprocess.DEVNULL)

    with serving(tmp_path, tmp_path / "keys", "--cores", 1, "--grace", 30) as scene:
        alone, with_others = asyncio.run(main(scene.address))
    assert with_others < 3 * alone + LATE_SECONDS + Limits().answer_seconds + 2.0
    figures.append(
        f"an inference alone {alone:.2f} s, beside {STOPPED} stopped clients {with_others:.2f} s"
    )
