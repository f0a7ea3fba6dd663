"""What a worker's process tells of whoever comes without a job."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from privet.service.executor.process import WorkerProcess

SECRET = b"SECRET-of-a-stranger"

STRANGERS = 20


def test_sessions_without_a_job_are_told_and_fill_no_log(
    key_folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    job = {
        **dict.fromkeys(("trace", "policy", "dealer", "max_material", "revoked")),
        "keys": str(key_folder),
        "state": str(tmp_path),
        "host": "127.0.0.1",
        "port": 0,
        "timeout": 5.0,
    }
    output: list[str] = []

    async def run() -> None:
        worker = await WorkerProcess.start(job)
        try:
            for _ in range(STRANGERS):
                reader, writer = await asyncio.open_connection("127.0.0.1", worker.port)
                writer.write(SECRET)
                await reader.read()  # until it is turned away
                writer.close()
            async with asyncio.timeout(20):
                while not output:
                    output.extend(capfd.readouterr().err.splitlines())
                    await asyncio.sleep(0.05)
        finally:
            await worker.kill()

    asyncio.run(run())
    output.extend(capfd.readouterr().err.splitlines())
    lines = [json.loads(line) for line in output if "without a job" in line]
    assert [(line["source"], line["times"]) for line in lines] == [("privet.service.worker", 1)]
    assert not any(SECRET.decode() in line for line in output)
