"""Records of jobs: what is written at once, and what a moment later with others."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from privet.errors import Misuse
from privet.service import records as module
from privet.service.records import RESTARTED, Records

CLIENT = "cd" * 32


def job(id: str, **fields: Any) -> Any:
    """A job as far as records look at it."""
    version = SimpleNamespace(model="m", number=1, program=SimpleNamespace(program_hash="ab" * 32))
    facts = {"client": CLIENT, "kind": "request", "samples": 1, "notice": None, "created": 1e9}
    suite = SimpleNamespace(label="gmw")
    document = {"id": id, "kind": "request"}
    return SimpleNamespace(
        **facts, version=version, choice=suite, id=id, document=lambda: document, **fields
    )


def outcomes(path: Path) -> dict[str, str | None]:
    """What another process sees."""
    with closing(sqlite3.connect(path)) as base:
        return dict(base.execute("SELECT id, outcome FROM jobs"))


def done(id: str) -> Any:
    """A job that is done."""
    return job(id, ended=1e9 + 1, outcome="done", reason="")


def test_jobs_are_written_at_once_and_ends_with_the_next_or_soon(tmp_path: Path) -> None:
    path = tmp_path / "service.sqlite"

    async def act() -> None:
        records = Records(path)
        records.submitted(job("a"))
        assert outcomes(path) == {"a": None}
        records.ended(done("a"))
        assert outcomes(path) == {"a": None}
        assert records.waiting == 0, "what waits for others is not late"
        records.submitted(job("b"))
        assert outcomes(path) == {"a": "done", "b": None}
        records.ended(done("b"))
        record = records.past(CLIENT, "b")
        assert record is not None
        assert record["outcome"] == "done"
        records.submitted(job("c"))
        records.ended(done("c"))
        async with asyncio.timeout(10):
            while outcomes(path)["c"] is None:
                await asyncio.sleep(module.SOON_SECONDS / 4)
        records.close()

    asyncio.run(act())


def test_a_kill_takes_the_latest_ends_and_no_job(tmp_path: Path) -> None:
    path, copy = tmp_path / "service.sqlite", tmp_path / "copy.sqlite"

    async def act() -> None:
        records = Records(path)
        records.submitted(job("a"))
        records.ended(done("a"))
        with closing(sqlite3.connect(path)) as base, closing(sqlite3.connect(copy)) as killed:
            base.backup(killed)
        records.close()

    asyncio.run(act())
    assert outcomes(path) == {"a": "done"}
    after = Records(copy)
    assert after.interrupt(2e9) == 1
    record = after.past(CLIENT, "a")
    assert record is not None
    assert (record["outcome"], record["reason"]) == ("failed", RESTARTED)
    after.close()


def test_of_profiles_the_latest_is_written_when_all_catch_up(tmp_path: Path) -> None:
    path = tmp_path / "service.sqlite"
    key = {"model": "m", "suite": "gmw", "batch": 1, "phase": "on"}
    row = {**key, "cores": 1, "memory": 5, "material": 0}

    def written() -> list[Any]:
        with closing(sqlite3.connect(path)) as base:
            return base.execute("SELECT seconds FROM profiles").fetchall()

    records = Records(path)
    for seconds in (1.0, 2.0):
        records.keep_profile({**row, "seconds": seconds})
        records.submitted(job(f"j{seconds}"))
    assert written() == []
    records.catch_up()
    assert written() == [(2.0,)]
    records.keep_profile({**row, "seconds": 3.0})
    records.close()
    assert written() == [(3.0,)]


def test_a_file_without_room_or_that_is_none_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "service.sqlite"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # less than a page
    try:
        with pytest.raises(Misuse, match="make room on the disk"):
            Records(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    Records(path).close()  # and has let go of it
    path.write_bytes(b"no records " * 1000)
    with pytest.raises(Misuse, match="move it away"):
        Records(path)
