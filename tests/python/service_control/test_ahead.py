"""Material made ahead: for clients that are there, and offered as jobs of their own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.e2e.caller import ServiceCaller
from tests.python.service_control.actors import Pretender, eventually, scene

from privet.scheduler import Fcfs
from privet.scheduler.policies import AheadPolicy
from privet.service.executor import Failure
from privet.service.jobs import Job


def test_a_client_that_waits_gets_material_before_it_asks(
    folder: Path, key_folder: Path, program: Path
) -> None:
    async def main() -> None:
        policy = AheadPolicy(Fcfs(), horizon=60.0)
        async with (
            scene(folder, key_folder, program, Pretender(0.01), policy=policy) as testbed,
            ServiceCaller(testbed.address, key_folder, folder / "c") as caller,
        ):
            for _ in range(3):
                await caller.request("digits")
                await eventually(lambda: not testbed.service.jobs.open())
            model = await caller.good("GET", "/v2/models/digits")
            assert model["privet"]["stock"] == {}
            sequence, kinds = 0, set()
            async with asyncio.timeout(10):
                while "ahead" not in kinds:
                    updates = await caller.good("GET", f"/v2/jobs?wait=5&ahead=1&seen={sequence}")
                    sequence = updates["sequence"]
                    kinds = {job["kind"] for job in updates["jobs"]}
            await eventually(lambda: len(testbed.service.driver.scheduler.material.unused()) >= 1)
            model = await caller.good("GET", "/v2/models/digits")
            assert sum(model["privet"]["stock"].values()) >= 1
            count = len(testbed.executor.jobs)
            id = await caller.request("digits")
            await eventually(lambda: not testbed.service.jobs.open())
            assert (await caller.good("GET", f"/v2/jobs/{id}"))["outcome"] == "done"
            later = list(testbed.executor.jobs.values())[count:]
            assert [job.grant.phase for job in later if job.grant.job.startswith(id)] == ["infer"]

    asyncio.run(main())


def test_what_is_made_ahead_is_not_counted_against_its_client(
    folder: Path, key_folder: Path, program: Path
) -> None:
    config = "input_range = [0, 1]\n[limits]\nqueued_per_client = 1\nnotices_per_client = 1\n"
    (folder / "repository/digits/config.toml").write_text(config)

    async def main() -> None:
        executor = Pretender(0.01)
        async with (
            scene(
                folder, key_folder, program, executor, policy=AheadPolicy(Fcfs(), horizon=60.0)
            ) as testbed,
            ServiceCaller(testbed.address, key_folder, folder / "c") as caller,
        ):
            for _ in range(3):
                await caller.request("digits")
                await eventually(lambda: not testbed.service.jobs.open())
            poll = asyncio.create_task(caller.call("GET", "/v2/jobs?wait=20&ahead=1&seen=99"))
            await eventually(lambda: len(testbed.service.driver.scheduler.material.unused()) >= 2)
            answers = [await caller.ask("POST", "/v2/models/digits/notices", {})]
            await eventually(lambda: not testbed.service.jobs.open())
            answers.append(await caller.ask("POST", "/v2/models/digits/notices", {}))
            assert [status for status, *_ in answers] == [202, 429]
            assert "1 entries that you asked for" in answers[1][1]["error"]
            poll.cancel()

    asyncio.run(main())


@pytest.mark.parametrize("failure", ["absent", "crashed", "timed out", "machine lost"])
def test_what_is_not_made_ahead_after_all_has_ended(
    failure: Failure, folder: Path, key_folder: Path, program: Path
) -> None:
    """Its client is told, and it counts no more among those that live."""

    async def main() -> None:
        executor = Pretender(0.01)
        async with (
            scene(
                folder, key_folder, program, executor, policy=AheadPolicy(Fcfs(), horizon=60.0)
            ) as testbed,
            ServiceCaller(testbed.address, key_folder, folder / "c") as caller,
        ):
            jobs = testbed.service.jobs

            def ahead() -> list[Job]:
                return [job for job in jobs.live() if job.kind == "ahead"]

            for _ in range(3):
                await caller.request("digits")
                await eventually(lambda: not jobs.open())
            executor.seconds = None
            poll = asyncio.create_task(caller.call("GET", "/v2/jobs?wait=20&ahead=1&seen=99"))
            await eventually(lambda: any(job.leases for job in ahead()))
            attempts = [job for job in ahead() if job.leases]
            for name in [name for job in attempts for name in job.leases]:
                executor.fail(name, failure)
            await eventually(lambda: not {job.id for job in attempts} & {job.id for job in ahead()})
            for job in attempts:
                answer = await caller.good("GET", f"/v2/jobs/{job.id}")
                assert (answer["state"], answer["go"]) == ("ended", [])
                assert failure in answer["reason"]
            poll.cancel()

    asyncio.run(main())
