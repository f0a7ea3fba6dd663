"""A service and its clients: real processes, real sockets, real inferences."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import numpy as np
from tests.e2e.caller import ServiceCaller
from tests.e2e.services import put_zoo, serving
from tests.e2e.test_commands import key_folder

from privet.compiler.compile import load
from privet.compiler.executor import execute

__all__ = ["key_folder"]


def test_a_notice_then_a_request_of_a_model_of_the_zoo(key_folder: Path, tmp_path: Path) -> None:
    put_zoo(tmp_path / "repository", "m1")

    async def visit(address: str) -> None:
        async with ServiceCaller(address, key_folder, tmp_path / "client") as caller:
            metadata = await caller.good("GET", "/v2/models/m1")
            x = np.random.default_rng(1).normal(size=metadata["inputs"][0]["shape"]) / 4
            notice = await caller.notify("m1", truncation="exact")
            row, _ = await caller.follow(notice)
            assert (row["state"], row["outcome"], row["done"]) == ("prepared", "done", 1)
            stock = (await caller.good("GET", "/v2/models/m1"))["privet"]["stock"]
            assert list(stock.values()) == [1]
            request = await caller.request("m1", notice=notice)
            job, results = await caller.follow(request, [x])
            assert (job["outcome"], job["done"]) == ("done", 1)
            # Beside it lies what other services here have compiled.
            saved = map(load, (tmp_path / "state/server/programs").iterdir())
            served = metadata["privet"]["program"]
            program, weights = next(pair for pair in saved if pair[0].program_hash == served)
            expected = execute(program, weights, [x]).integers[0]
            # Truncations are exact, products under BFV are off by one unit at most.
            distance = np.abs(results[0].integers[0].astype(int) - expected.astype(int))
            assert distance.max() <= 4
            assert (await caller.good("GET", f"/v2/jobs/{notice}"))["state"] == "ended"

    with serving(tmp_path, key_folder) as scene:
        assert [(row["model"], row["ready"]) for row in scene.models] == [("m1", True)]
        asyncio.run(visit(scene.address))
        assert scene.process.end(signal.SIGTERM) == 0
