"""A client's session at a worker after a job: another job of its own, and no other way to one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.attacks.scene import INPUT, small_model
from tests.e2e.floor import Floor, floor

from privet import keys
from privet.compiler.compile import Compiled
from privet.errors import PeerError


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return small_model()


@pytest.mark.parametrize("whose", ["own", "nobody's", "another's", "a revoked one's"])
def test_a_session_that_stays_open_needs_a_grant_for_each_job(
    tmp_path: Path, key_folder: Path, compiled: Compiled, whose: str
) -> None:
    revoked = tmp_path / "revoked"
    revoked.touch()
    own = keys.fingerprint(key_folder / "client.pem")

    async def second_job(stage: Floor) -> str | None:
        """Why the second job on a session is refused, if it is."""
        job = await stage.executor.run(stage.grant("prepare"))
        try:
            with stage.client(job.port, job.host) as client:
                (material,) = await asyncio.to_thread(client.prepare)
                assert (await job.outcome()).failure is None
                running = None
                if whose != "nobody's":
                    owner = "ab" * 32 if whose == "another's" else own
                    grant = stage.grant("infer", material=material, client=owner)
                    running = await stage.executor.run(grant)
                if whose == "a revoked one's":
                    revoked.write_text(own + "\n")
                await asyncio.to_thread(client.infer, [INPUT], material=material)
                assert running is not None
                assert (await running.outcome()).material == material
        except PeerError as error:
            return str(error)
        return None

    async def run() -> str | None:
        async with floor(tmp_path, key_folder, compiled, workers=1, revoked=revoked) as stage:
            return await second_job(stage)

    refusal = asyncio.run(run())
    if whose == "own":
        assert refusal is None
    else:
        assert "revoked" in str(refusal) if "revoked" in whose else "no grant" in str(refusal)


def test_an_offer_ends_a_session_that_would_not_know_of_it(
    tmp_path: Path, key_folder: Path, compiled: Compiled
) -> None:
    small_model(seed=1, name="other").save(tmp_path / "other")

    async def two_jobs(stage: Floor) -> None:
        job = await stage.executor.run(stage.grant("prepare"))
        with stage.client(job.port, job.host) as client:
            await asyncio.to_thread(client.prepare)
            await job.outcome()
            await stage.executor.offer(tmp_path / "other")
            await stage.executor.run(stage.grant("prepare"))
            await asyncio.to_thread(client.prepare)

    async def run() -> None:
        async with floor(tmp_path, key_folder, compiled, workers=1) as stage:
            with pytest.raises(PeerError, match="the link to the peer is closed"):
                await two_jobs(stage)

    asyncio.run(run())
