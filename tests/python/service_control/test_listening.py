"""Jobs start for clients that wait for updates; those of clients that left are cancelled."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.e2e.caller import ServiceCaller
from tests.python.service_control.actors import Pretender, eventually, scene

from privet import keys
from privet.scheduler import Limits
from privet.service import limits


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
