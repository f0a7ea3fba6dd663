"""Jobs start for clients that wait for updates; those of clients that left are cancelled."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.caller import ServiceCaller
from tests.python.service_control.actors import Pretender, Scene, eventually, scene

from privet import keys
from privet.scheduler import Limits
from privet.service import limits


def test_an_answer_goes_on_until_a_worker_has_each_inference(
    folder: Path, key_folder: Path, program: Path
) -> None:
    async def main() -> None:
        executor = Pretender()
        async with (
            scene(folder, key_folder, program, executor) as it,
            ServiceCaller(it.address, key_folder, folder / "c") as client,
        ):
            path = "/v2/models/digits/requests"

            async def ask(**body: object) -> tuple[str, list[dict[str, Any]]]:
                """The answer's type, and its lines."""
                asking = asyncio.create_task(client.ask("POST", path, {"wait": 20, **body}))
                executor.finish((await executor.granted("prepare")).job)
                executor.finish((await executor.granted("infer")).job)
                status, told, headers = await asking
                assert status == 202
                await eventually(lambda: not it.service.jobs.live())
                kind = headers["Content-Type"].partition(";")[0]
                return kind, [told] if isinstance(told, dict) else [
                    *map(json.loads, told.splitlines())
                ]

            kind, lines = await ask(follow=True)
            assert kind == "application/x-ndjson"
            (first,) = lines[0]["news"]["jobs"]
            leases = [lease for it in (first, *lines[1:]) for lease in it["go"]]
            assert [lease["phase"] for lease in leases] == ["prepare", "infer"]
            assert {it["id"] for it in (first, *lines[1:])} == {lines[0]["id"]}
            # Clients of earlier versions get the first line alone, as they did.
            kind, (told,) = await ask()
            assert (kind, set(told)) == ("application/json", set(lines[0]))
            # One that waits no longer gets its answer's end.
            waiting = client.ask("POST", path, {"wait": 0.5, "follow": True})
            status, told, _ = await waiting
            assert (status, len(told.splitlines())) == (202, 1)
            # One that goes in between leaves nothing behind.
            gone = asyncio.create_task(client.ask("POST", path, {"wait": 20, "follow": True}))
            await eventually(lambda: it.service.jobs.waiting(first_of(it)) == 1)
            gone.cancel()
            await eventually(lambda: it.service.jobs.waiting(first_of(it)) == 0)

    asyncio.run(main())


def first_of(it: Scene) -> str:
    """The client of a job that lives."""
    return it.service.jobs.live()[0].client


def test_only_clients_that_wait_for_news_are_granted_jobs(
    folder: Path, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LEAVING_SECONDS", 0.2)
    made = tmp_path / "keys"
    keys.make(made, keep_ca_key=True)
    keys.issue(made, "absent")
    executor = Pretender(0.01)

    async def main() -> None:
        async with (
            scene(folder, made, program, executor, bounds=Limits(absent_seconds=1.5)) as it,
            ServiceCaller(it.address, made, folder / "c") as client,
            ServiceCaller(it.address, made, folder / "a", "absent") as absent,
        ):
            left = [await absent.request("digits", key=f"k{n}") for n in range(5)]
            id = await client.request("digits")
            await asyncio.sleep(0.3)
            assert not executor.jobs
            while (await client.good("GET", f"/v2/jobs/{id}?wait=1"))["state"] != "ended":
                pass
            assert {job.partition("/")[0] for job in executor.jobs} == {id}
            # One that comes back in time finds its job by its key, and is served; others are not.
            again = await absent.request("digits", key="k0")
            assert again == left[0]
            await eventually(lambda: not it.service.jobs.live())
            told = await absent.good("GET", f"/v2/jobs/{left[1]}")
            assert told["outcome"] == "cancelled"
            assert "left" in told["reason"]
            fresh = await absent.request("digits", key="k9")
            while (await absent.good("GET", f"/v2/jobs/{fresh}?wait=1"))["state"] != "ended":
                pass
            assert (await absent.good("GET", f"/v2/jobs/{fresh}"))["outcome"] == "done"

    asyncio.run(main())
