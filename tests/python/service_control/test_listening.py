"""Jobs start for clients that wait for updates; those of clients that left are cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.caller import ServiceCaller
from tests.python.service_control.actors import GIB, Pretender, eventually, scene
from tests.python.service_control.test_jobs import until

from privet import keys
from privet.scheduler import Limits
from privet.service import driver, limits
from privet.service.executor import ExecutorNode


def test_only_clients_that_wait_for_updates_are_granted_jobs(
    folder: Path, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LEAVING_SECONDS", 0.2)
    key_folder = tmp_path / "keys"
    keys.make(key_folder, keep_ca_key=True)
    keys.issue(key_folder, "absent")
    executor = Pretender(0.01)

    async def main() -> None:
        async with (
            scene(
                folder, key_folder, program, executor, bounds=Limits(absent_seconds=1.5)
            ) as testbed,
            ServiceCaller(testbed.address, key_folder, folder / "c") as client,
            ServiceCaller(testbed.address, key_folder, folder / "a", "absent") as absent,
        ):
            left = [await absent.request("digits", key=f"k{n}") for n in range(5)]
            id = await client.request("digits")
            await asyncio.sleep(0.3)
            assert not executor.jobs
            while (await client.good("GET", f"/v2/jobs/{id}?wait=1"))["state"] != "ended":
                pass
            assert {job.partition("/")[0] for job in executor.jobs} == {id}
            # One that comes back in time finds its job by its key, and is served; others are not.
            repeat = await absent.request("digits", key="k0")
            assert repeat == left[0]
            await eventually(lambda: not testbed.service.jobs.live())
            job = await absent.good("GET", f"/v2/jobs/{left[1]}")
            assert job["outcome"] == "cancelled"
            assert "left" in job["reason"]
            fresh = await absent.request("digits", key="k9")
            while (await absent.good("GET", f"/v2/jobs/{fresh}?wait=1"))["state"] != "ended":
                pass
            assert (await absent.good("GET", f"/v2/jobs/{fresh}"))["outcome"] == "done"

    asyncio.run(main())


def test_a_job_of_a_client_that_calls_no_more_is_taken_back_for_others(
    folder: Path, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "LATE_SECONDS", 0.2)
    key_folder = tmp_path / "keys"
    keys.make(key_folder, keep_ca_key=True)
    for name in ("first", "second"):
        keys.issue(key_folder, name)
    executor = Pretender(nodes=[ExecutorNode("here", (0,), 4 * GIB, "127.0.0.1")])
    bounds = Limits(absent_seconds=30.0, answer_seconds=0.5)

    async def main() -> None:
        async with (
            scene(folder, key_folder, program, executor, bounds=bounds) as testbed,
            ServiceCaller(testbed.address, key_folder, folder / "c") as client,
            ServiceCaller(testbed.address, key_folder, folder / "f", "first") as first,
            ServiceCaller(testbed.address, key_folder, folder / "s", "second") as second,
        ):
            wish = {"wait": 60}
            reply = await first.good("POST", "/v2/models/digits/requests", wish)
            (go,) = reply["news"]["jobs"][0]["go"]
            call = asyncio.create_task(second.good("POST", "/v2/models/digits/requests", wish))
            await asyncio.sleep(0.1)
            id = await client.request("digits")
            job = await until(client, id, "preparing")
            # The second was asked: its call ended long before its time, and it did not call again.
            assert call.done()
            assert (await call)["news"]["jobs"][0]["go"] == []
            # The first is in line again once it calls, and has as much time as before.
            executor.finish(job["go"][0]["job"], material="a" * 32)
            executor.finish((await executor.granted("infer")).job)
            sequence = (await first.good("GET", "/v2/jobs"))["sequence"]
            repeat = await first.good("GET", f"/v2/jobs/{reply['id']}?wait=5&seen={sequence}")
            assert repeat["go"][0]["job"] != go["job"]
            assert repeat["go"][0]["grace"] == go["grace"]

    asyncio.run(main())


@asynccontextmanager
async def granted_first(
    folder: Path, program: Path, key_folder: Path, executor: Pretender, answer_seconds: float
) -> AsyncIterator[tuple[ServiceCaller, ServiceCaller, str, dict[str, Any]]]:
    """A service of one core, which a job of `first` was granted: another client, `first`, its
    request, and the grant."""
    keys.make(key_folder, keep_ca_key=True)
    keys.issue(key_folder, "first")
    bounds = Limits(absent_seconds=30.0, answer_seconds=answer_seconds)
    async with (
        scene(folder, key_folder, program, executor, bounds=bounds) as testbed,
        ServiceCaller(testbed.address, key_folder, folder / "c") as client,
        ServiceCaller(testbed.address, key_folder, folder / "f", "first") as first,
    ):
        reply = await first.good("POST", "/v2/models/digits/requests", {"wait": 60})
        (go,) = reply["news"]["jobs"][0]["go"]
        yield client, first, reply["id"], go


class Holding(Pretender):
    """Takes no job back, as if its client had connected."""

    async def take_back(self, job: str) -> None:
        """Remembers that."""
        self.withdrawn.append(job)


def test_a_client_that_connects_late_and_does_not_ask_has_lapsed(
    folder: Path, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "LATE_SECONDS", 0.1)
    executor = Holding(nodes=[ExecutorNode("here", (0,), 4 * GIB, "127.0.0.1")])

    async def main() -> None:
        async with granted_first(folder, program, tmp_path / "keys", executor, 0.1) as parties:
            client, first, request, go = parties
            waits = asyncio.create_task(until(client, await client.request("digits"), "preparing"))
            await eventually(lambda: executor.withdrawn == [go["job"]])
            executor.fail(go["job"], "absent", waited=go["grace"] + 0.1)
            await waits
            assert (await first.good("GET", f"/v2/jobs/{request}"))["outcome"] == "failed"

    asyncio.run(main())


def test_a_client_that_calls_keeps_its_job_although_others_wait(
    folder: Path, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "LATE_SECONDS", 0.2)
    executor = Pretender(nodes=[ExecutorNode("here", (0,), 4 * GIB, "127.0.0.1")])

    async def main() -> None:
        async with granted_first(folder, program, tmp_path / "keys", executor, 0.3) as parties:
            client, first, _, go = parties
            await first.good("GET", "/v2/jobs")
            id = await client.request("digits")
            sequence = (await client.good("GET", f"/v2/jobs/{id}"))["sequence"]
            document = await client.good("GET", f"/v2/jobs/{id}?wait=1.5&seen={sequence}")
            assert document["state"] == "queued"
            assert not executor.jobs[go["job"]].end.done()

    asyncio.run(main())
