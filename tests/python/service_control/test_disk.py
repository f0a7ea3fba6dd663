"""A full disk: the service says so, serves what needs none, and goes on when there is room."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.e2e.caller import ServiceCaller
from tests.python.service_control.actors import Pretender, Scene, eventually, scene

from privet.service import service as module


def fill(testbed: Scene, full: bool) -> None:
    """The database has no page left, or room again: SQLite then says what it says on a full
    disk."""
    base = testbed.service.records._base
    (pages,) = base.execute("PRAGMA page_count").fetchone()
    base.execute(f"PRAGMA max_page_count = {pages if full else 1 << 30}")


def crowd(testbed: Scene) -> None:
    """Uses up the room in the pages that there are."""
    base = testbed.service.records._base
    base.execute("CREATE TABLE IF NOT EXISTS filler (text)")
    fill(testbed, full=True)
    until_full(lambda number: base.execute("INSERT INTO filler VALUES (?)", ("x" * 200,)))


def until_full(write: Callable[[int], object]) -> None:
    """Writes until there is no room."""

    def fill_up() -> None:
        for number in range(10_000):
            write(number)

    with pytest.raises(sqlite3.Error, match="full"):
        fill_up()


def test_a_full_disk_ends_nothing(
    folder: Path,
    key_folder: Path,
    program: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SWEEP_SECONDS", 0.1)
    room = 1 << 40
    monkeypatch.setattr(module, "free_bytes", lambda folder: room)

    async def main() -> None:
        nonlocal room
        executor = Pretender()
        async with (
            scene(folder, key_folder, program, executor) as testbed,
            ServiceCaller(testbed.address, key_folder, folder / "c") as client,
        ):
            first = await client.request("digits")
            job = await executor.granted("prepare")
            crowd(testbed)
            # What is left on the pages of the jobs' table would take a few lines more.
            testbed.service.records._base.execute("PRAGMA query_only = ON")
            room = 0
            executor.seconds = 0.01
            executor.finish(job.job)
            # Material is recorded by the store that holds it: the inference goes on.
            await eventually(lambda: not testbed.service.jobs.live())
            document = await client.good("GET", f"/v2/jobs/{first}")
            assert (document["state"], document["outcome"]) == ("ended", "done")
            for path in ("digits/requests", "digits/notices"):
                status, answer = await client.call("POST", f"/v2/models/{path}", {})
                assert (status, answer["reason"]) == (507, "disk")
                assert "disk is full" in answer["error"]
            assert (await client.call("GET", "/v2/health/ready"))[0] == 503
            for path in ("/v2/health/live", "/v2/models", "/v2/models/digits", "/v2/jobs"):
                assert (await client.call("GET", path))[0] == 200
            await asyncio.sleep(0.5)
            assert testbed.service.records.waiting > 0
            fill(testbed, full=False)
            testbed.service.records._base.execute("PRAGMA query_only = OFF")
            room = 1 << 40
            await eventually(lambda: testbed.service.records.waiting == 0)
            assert (await client.call("GET", "/v2/health/ready"))[0] == 200
            first_job = testbed.service.jobs.find(first)
            assert first_job is not None
            record = testbed.service.past(first_job.client, first)
            assert record is not None
            assert record["outcome"] == "done"
            second = await client.request("digits")
            await eventually(lambda: not testbed.service.jobs.live())
            assert (await client.good("GET", f"/v2/jobs/{second}"))["outcome"] == "done"
            room = 1 << 20
            assert (await client.call("POST", "/v2/models/digits/requests", {}))[0] == 507

    with caplog.at_level(logging.ERROR, "privet"):
        asyncio.run(main())
    messages = [record.message for record in caplog.records if "records" in record.message]
    assert messages == ["records cannot be written: is the disk full?"]
