"""Fifty clients at once: no request is lost, and the service does not grow."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.e2e.caller import ServiceCaller
from tests.e2e.services import Scene, put_digits, serving
from tests.e2e.test_serve_life import SEVEN

from privet import keys

CLIENTS = 50
SECONDS = float(os.environ.get("PRIVET_CROWD_SECONDS", "60"))
"""How long; ten minutes for a release: `PRIVET_CROWD_SECONDS=600`."""

RAMP_SECONDS = 5.0
"""Until all clients are there: fewer handshakes than these may be under way from one address."""

GROWTH_BYTES = 24 * 2**20
"""What the control plane may grow by between two looks, a quarter of the time after all clients are
there and at the end."""


def resident(pid: int) -> int:
    """Resident memory of a process in bytes."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors(pid: int) -> int:
    """How many files and sockets a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


async def client(scene: Scene, role: str, deadline: float, kinds: Counter[str]) -> None:
    """Asks again and again, every other time with a notice."""
    state = scene.folder / "clients" / role
    async with ServiceCaller(scene.address, scene.keys, state, role) as caller:
        while time.monotonic() < deadline:
            notice = None
            if kinds["asked"] % 2:
                notice = await caller.notify("digits")
                await caller.follow(notice)
            kinds["asked"] += 1
            job, results = await caller.follow(
                await caller.request("digits", notice=notice), [SEVEN]
            )
            assert job["outcome"] == "done", job
            assert int(np.argmax(results[0].outputs["logits"])) == 7
            kinds[job["outcome"]] += 1
        assert caller.failures == []


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 240)
def test_fifty_clients_at_once(tmp_path: Path, figures: list[str]) -> None:
    config = "input_range = [0, 1]\n[limits]\nqueued = 1000\n"
    put_digits(tmp_path / "repository", config=config)
    keys.make(tmp_path / "keys", keep_ca_key=True)
    roles = [f"client-{number}" for number in range(CLIENTS)]
    for role in roles:
        keys.issue(tmp_path / "keys", role)
    kinds: Counter[str] = Counter()

    async def crowd(scene: Scene) -> tuple[int, int]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(CLIENTS))
        deadline = time.monotonic() + SECONDS
        pid = scene.process.process.pid
        async with asyncio.TaskGroup() as group:
            for role in roles:
                group.create_task(client(scene, role, deadline, kinds))
                await asyncio.sleep(RAMP_SECONDS / CLIENTS)
            await asyncio.sleep(SECONDS / 4)
            early = resident(pid), descriptors(pid)
        late = resident(pid), descriptors(pid)
        assert late[1] <= early[1] + 5
        return late[0] - early[0], late[0]

    with serving(tmp_path, tmp_path / "keys") as scene:
        growth, size = asyncio.run(crowd(scene))
        assert scene.process.end(signal.SIGTERM) == 0
    assert kinds["done"] == kinds["asked"] > CLIENTS
    assert growth < GROWTH_BYTES
    figures.append(
        f"service: {kinds['done']} inferences of digits-cnn for {CLIENTS} clients in "
        f"{SECONDS:.0f} s ({kinds['done'] / SECONDS:.1f}/s), none lost; control plane "
        f"{size / 2**20:.0f} MiB, {growth / 2**20:+.1f} MiB since a quarter of the time"
    )
