"""Either side's workers on a Ray cluster, one server of which is killed under load."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.e2e.test_stream_pipeline import QUICK, ask
from tests.e2e.test_workers_ray import Nodes, nodes
from tests.python.stream import models

from privet.compiler.compile import PRIVATE_FILE, PUBLIC_FILE
from privet.errors import Misuse
from privet.stream.cipher import BFV, PAILLIER, Cipher
from privet.stream.pair import pair
from privet.stream.ray_pool import RayPool
from privet.stream.worker_pool import LocalPool, Part, Recipe
from privet.stream.workers import LinearWorker

__all__ = ["nodes"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


class Spread(RayPool):
    """Stages on the servers alpha and beta in turn."""

    async def start(self, recipe: Recipe, parts: Sequence[Part]) -> None:
        """Starts them there."""
        servers = ("alpha", "beta")
        await super().start(
            recipe, [Part(part.stage, part.part, servers[part.stage % 2]) for part in parts]
        )


@pytest.mark.parametrize("cipher", [PAILLIER, BFV], ids=lambda cipher: cipher.name)
@pytest.mark.parametrize("side", [0, 1], ids=["model", "data"])
def test_a_server_dies_under_load(
    side: int,
    cipher: Cipher,
    nodes: Nodes,
    tmp_path: Path,
    key_folder: Path,
    figures: list[str],
) -> None:
    compiled = models.perceptron()
    compiled.save(tmp_path / "program")

    async def run() -> None:
        cluster, local = Spread(nodes.address, 30.0), LocalPool(30.0)
        pools = (local, cluster) if side else (cluster, local)
        folder = tmp_path / "program"
        async with pair(folder, key_folder, cipher=cipher, pools=pools, patience=QUICK) as parties:
            await ask(parties, compiled, 0)
            load = [asyncio.create_task(ask(parties, compiled, seed)) for seed in range(200)]
            await asyncio.wait(load, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.to_thread(nodes.kill, "beta")
            os.kill((await local.processes())[0, 0], signal.SIGKILL)
            await asyncio.gather(*load)
            await ask(parties, compiled, 200)
            redo_count = (parties.data if side else parties.model).ledger.redone
            figures.append(
                f"stream on Ray, {cipher.name}: {redo_count} parts redone by side {side}"
            )
            assert redo_count >= 1

    asyncio.run(run())


def test_workers_have_the_secret_by_a_call(nodes: Nodes, tmp_path: Path, key_folder: Path) -> None:
    compiled = models.perceptron()
    compiled.save(tmp_path / "program")
    public, private = (
        (tmp_path / "program" / name).read_bytes() for name in (PUBLIC_FILE, PRIVATE_FILE)
    )

    async def run() -> None:
        pool = RayPool(nodes.address, 20.0)
        await pool.start(Recipe(LinearWorker, (public, PAILLIER, private)), [Part(0, 0, "alpha")])
        try:
            assert len(await pool.processes()) == 1
            with pytest.raises(Misuse, match="no worker"):
                await pool.call(1, 0, "process")
        finally:
            await pool.close()

    asyncio.run(run())
    with pytest.raises(Misuse, match="no Ray cluster"):
        asyncio.run(RayPool("127.0.0.1:1", 5.0).start(Recipe(LinearWorker, ()), []))
