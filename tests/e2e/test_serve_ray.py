"""A service whose jobs run on a Ray cluster, one node of which is killed under load."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.e2e.caller import ServiceCaller
from tests.e2e.services import Scene, put_digits, serving
from tests.e2e.test_commands import key_folder
from tests.e2e.test_serve_life import SEVEN
from tests.e2e.test_workers_ray import Nodes, nodes

__all__ = ["key_folder", "nodes"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


async def ask(caller: ServiceCaller) -> str:
    """One inference; its outcome, right if it is done."""
    job, results = await caller.follow(await caller.request("digits"), [SEVEN])
    if job["outcome"] == "done":
        assert int(np.argmax(results[-1].outputs["logits"])) == 7
    return str(job["outcome"])


def test_a_node_dies_and_the_service_goes_on(
    nodes: Nodes, key_folder: Path, tmp_path: Path
) -> None:
    put_digits(tmp_path / "repository")
    told: Counter[str] = Counter()

    async def crowd(scene: Scene) -> None:
        async with ServiceCaller(scene.address, key_folder, tmp_path / "c") as caller:
            machines: set[str] = set()
            async with ServiceCaller(
                scene.address, key_folder, tmp_path / "o", "operator"
            ) as operator:

                async def look() -> set[str]:
                    state = await operator.good("GET", "/v2/state")
                    machines.update(job["machine"] for job in state["running"])
                    return {machine["name"] for machine in state["machines"]}

                assert await look() == {"alpha", "beta"}
                notice = await caller.notify("digits")
                await caller.follow(notice)
                for number in range(24):
                    told[await ask(caller)] += 1
                    if number == 8:
                        nodes.kill("alpha")
                    if number == 16:
                        nodes.add("gamma")
                    await look()
                async with asyncio.timeout(120):
                    while await look() != {"beta", "gamma"}:
                        await asyncio.sleep(0.2)
                told[await ask(caller)] += 1

    words = ("--executor", "ray", "--address", nodes.address, "--memory", "1GiB", "--grace", 60)
    with serving(tmp_path, key_folder, *words) as scene:
        asyncio.run(crowd(scene))
        assert scene.process.end(signal.SIGTERM) == 0
    assert told.total() == 25
    assert told["done"] >= 24
    assert set(told) <= {"done", "failed"}
