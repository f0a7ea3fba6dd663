"""Somebody asks for fifty inferences and leaves: another client's takes as long as alone."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from tests.e2e.caller import ServiceCaller
from tests.e2e.services import put_digits, serving
from tests.e2e.test_serve_life import SEVEN

from privet import keys

ABANDONED = 50


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
            beside = await once()
            # Who comes back in time finds its jobs; the others are ended.
            assert (await absent.good("GET", f"/v2/jobs/{ids[0]}"))["state"] == "queued"
            return alone, beside

    options = ("--cores", 1, "--grace", 5, "--absent", 20)
    with serving(tmp_path, tmp_path / "keys", *options) as scene:
        alone, beside = asyncio.run(main(scene.address))
    assert beside < 3 * alone + 1.0
    figures.append(f"an inference alone {alone:.2f} s, beside 50 abandoned {beside:.2f} s")
