"""Metrics and logs: they tell what happened, and no secret."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.e2e.caller import ServiceCaller
from tests.python.service_control.actors import Scene, eventually, scene

from privet.logs import JsonLines
from privet.service.control.identity import Gate, Token

TOKEN = "a-token-that-nobody-may-see"
SUITE = "suite=gmw linear exact tables"


def values(text: str) -> dict[str, float]:
    """Samples by name and labels."""
    return {
        " ".join([it.name, *(f"{key}={it.labels[key]}" for key in sorted(it.labels))]): it.value
        for family in text_string_to_metric_families(text)
        for it in family.samples
    }


async def work(it: Scene, caller: ServiceCaller) -> str:
    """A notice, its request, one that fails, one that is refused; the metrics afterwards."""
    notice = await caller.notify("digits")
    it.executor.finish((await it.executor.granted("prepare")).job)
    await eventually(lambda: len(it.service.driver.scheduler.material.unused()) == 1)
    between = values((await caller.call("GET", "/metrics"))[1])
    assert between[f"privet_stock model=digits/1 {SUITE}"] == 1
    assert between["privet_queue_length queue=transit"] == 1
    assert between["privet_queue_oldest_seconds queue=transit"] > 0
    assert between["privet_queue_oldest_seconds queue=pre"] == 0
    await caller.request("digits", notice=notice)
    it.executor.finish((await it.executor.granted("infer")).job)
    await caller.request("digits")
    it.executor.fail((await it.executor.granted("prepare")).job, "absent")
    await caller.call("POST", "/v2/models/digits/requests", {"suite": "fss"})
    await caller.request("digits")
    await it.executor.granted("prepare")
    _, text = await caller.call("GET", "/metrics")
    return str(text)


def test_metrics_count_what_happened(folder: Path, key_folder: Path, program: Path) -> None:
    async def main() -> None:
        async with (
            scene(folder, key_folder, program) as it,
            ServiceCaller(it.address, key_folder, folder / "o", "operator") as caller,
        ):
            text = await work(it, caller)
            found = values(text)
            expected = {
                f"privet_submissions_total kind=request model=digits/1 {SUITE}": 3,
                f"privet_submissions_total kind=notice model=digits/1 {SUITE}": 1,
                "privet_ended_total kind=request outcome=done": 1,
                "privet_ended_total kind=request outcome=failed": 1,
                "privet_ended_total kind=notice outcome=done": 1,
                "privet_jobs_total failure=none phase=pre": 1,
                "privet_jobs_total failure=none phase=on": 1,
                "privet_jobs_total failure=absent phase=pre": 1,
                "privet_material_total fate=made model=digits/1": 1,
                "privet_material_total fate=used model=digits/1": 1,
                "privet_rejections_total reason=bad request": 1,
                "privet_job_bytes_total phase=on sender=server": 2000,
                "privet_delay_seconds_count model=digits/1": 1,
                "privet_wait_seconds_count model=digits/1": 1,
                "privet_jobs_running phase=pre": 1,
                "privet_cores_taken machine=here": 1,
                "privet_cores machine=here": 2,
                "privet_queue_length queue=pre": 0,
            }
            assert {name: found.get(name) for name in expected} == expected
            client = hashlib.sha256((key_folder / "operator.pem").read_bytes()).hexdigest()
            assert client[:8] not in text

    asyncio.run(main())


def test_logs_are_json_and_keep_secrets(
    folder: Path, key_folder: Path, program: Path, caplog: pytest.LogCaptureFixture
) -> None:
    token = Token(hashlib.sha256(TOKEN.encode()).hexdigest(), "olga", True)

    async def main() -> None:
        async with (
            scene(folder, key_folder, program, gate=Gate(tokens=(token,))) as it,
            ServiceCaller(it.address, key_folder, folder / "o", "operator") as caller,
        ):
            caller.headers = {"Authorization": f"Bearer {TOKEN}"}
            await work(it, caller)

    with caplog.at_level(logging.DEBUG, "privet"):
        asyncio.run(main())
    lines = [JsonLines().format(record) for record in caplog.records]
    told = [json.loads(line) for line in lines]
    assert all({"time", "level", "source", "message"} <= set(line) for line in told)
    ended = [line for line in told if line["message"] == "ended"]
    assert [line["outcome"] for line in ended] == ["done", "done", "failed"]
    text = "\n".join(lines)
    for secret in (TOKEN, token.digest, (key_folder / "server.key").read_text().splitlines()[1]):
        assert secret not in text


def test_a_trace_is_one_line() -> None:
    try:
        raise ValueError("of two\nlines")
    except ValueError as error:
        fields = {"name": "privet.x", "msg": "failed", "exc_info": (type(error), error, None)}
        record = logging.makeLogRecord(fields)
    line = JsonLines().format(record)
    assert "\n" not in line
    trace = json.loads(line)["trace"]
    assert trace[0] == "ValueError"
    assert "test_observation.py" in trace[1]
    assert "of two" not in line
