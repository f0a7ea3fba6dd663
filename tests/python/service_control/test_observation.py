"""Metrics and logs: they tell what happened, and no secret."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.e2e.caller import ServiceCaller
from tests.python.service_control.actors import Scene, eventually, scene

from privet.gateway.oip.observe import Observer
from privet.logs import JsonLines
from privet.service.control.identity import Gate, Token

TOKEN = "a-token-that-nobody-may-see"
SUITE = "suite=gmw linear exact tables"


def values(text: str) -> dict[str, float]:
    """Samples by name and labels."""
    return {
        " ".join(
            [sample.name, *(f"{key}={sample.labels[key]}" for key in sorted(sample.labels))]
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def announce(testbed: Scene, caller: ServiceCaller) -> tuple[str, str]:
    """A notice whose material is made, and the metrics then."""
    notice = await caller.notify("digits")
    testbed.executor.finish((await testbed.executor.granted("prepare")).job)
    await eventually(lambda: len(testbed.service.driver.scheduler.material.unused()) == 1)
    return notice, str((await caller.call("GET", "/metrics"))[1])


async def work(testbed: Scene, caller: ServiceCaller) -> str:
    """A notice, its request, one that fails, one that is refused; the metrics afterwards."""
    notice, text = await announce(testbed, caller)
    middle = values(text)
    assert middle[f"privet_stock model=digits/1 {SUITE}"] == 1
    assert middle["privet_queue_length queue=transit"] == 1
    assert middle["privet_queue_oldest_seconds queue=transit"] > 0
    assert middle["privet_queue_oldest_seconds queue=pre"] == 0
    await caller.request("digits", notice=notice)
    testbed.executor.finish((await testbed.executor.granted("infer")).job)
    await caller.request("digits")
    testbed.executor.fail((await testbed.executor.granted("prepare")).job, "absent")
    await caller.call("POST", "/v2/models/digits/requests", {"suite": "fss"})
    await caller.request("digits")
    await testbed.executor.granted("prepare")
    return str((await caller.call("GET", "/metrics"))[1])


def test_metrics_count_what_happened(folder: Path, key_folder: Path, program: Path) -> None:
    async def main() -> None:
        async with (
            scene(folder, key_folder, program) as testbed,
            ServiceCaller(testbed.address, key_folder, folder / "o", "operator") as caller,
        ):
            text = await work(testbed, caller)
            figures = values(text)
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
                "privet_handshakes_total outcome=done": 1,
                "privet_job_bytes_total phase=on sender=server": 2000,
                "privet_delay_seconds_count model=digits/1": 1,
                "privet_wait_seconds_count model=digits/1": 1,
                "privet_jobs_running phase=pre": 1,
                "privet_cores_taken machine=here": 1,
                "privet_cores machine=here": 2,
                "privet_queue_length queue=pre": 0,
            }
            assert {name: figures.get(name) for name in expected} == expected
            client = hashlib.sha256((key_folder / "operator.pem").read_bytes()).hexdigest()
            assert client[:8] not in text

    asyncio.run(main())


def test_logs_are_json_and_keep_secrets(
    folder: Path, key_folder: Path, program: Path, caplog: pytest.LogCaptureFixture
) -> None:
    token = Token(hashlib.sha256(TOKEN.encode()).hexdigest(), "olga", True)

    async def main() -> None:
        async with (
            scene(folder, key_folder, program, gate=Gate(tokens=(token,))) as testbed,
            ServiceCaller(testbed.address, key_folder, folder / "o", "operator") as caller,
        ):
            caller.headers = {"Authorization": f"Bearer {TOKEN}"}
            await work(testbed, caller)

    with caplog.at_level(logging.DEBUG, "privet"):
        asyncio.run(main())
    lines = [JsonLines().format(record) for record in caplog.records]
    records = [json.loads(line) for line in lines]
    assert all({"time", "level", "source", "message"} <= set(line) for line in records)
    ends = [line for line in records if line["message"] == "ended"]
    assert [line["outcome"] for line in ends] == ["done", "done", "failed"]
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


DASHBOARD = Path(__file__).parents[3] / "deploy" / "grafana" / "privet.json"
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}


def series(text: str) -> dict[str, set[str]]:
    """The names that Prometheus can be asked for, with their labels as far as samples tell them."""
    by_name: dict[str, set[str]] = {}
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
        by_name |= {name + suffix: set() for suffix in SUFFIXES[kind]}
    for name, labels in re.findall(r"^(\w+)\{(.*)\} ", text, re.MULTILINE):
        if name in by_name:
            by_name[name] |= set(re.findall(r'(\w+)="', labels))
    return by_name


def asked(target: dict[str, str]) -> tuple[set[str], set[str]]:
    """The metrics and the labels in a query of the dashboard and its legend."""
    expression = target["expr"]
    labels = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
    labels |= set(re.findall(r"[{,]\s*(\w+)\s*!?=", expression))
    for group in re.findall(r"by \(([^)]*)\)", expression):
        labels |= set(re.split(r",\s*", group))
    return set(re.findall(r"privet_\w+", expression)), labels


def test_the_dashboard_asks_for_what_there_is(
    folder: Path, key_folder: Path, program: Path
) -> None:
    async def main() -> str:
        async with (
            scene(folder, key_folder, program) as testbed,
            ServiceCaller(testbed.address, key_folder, folder / "o", "operator") as caller,
        ):
            return await work(testbed, caller)

    observer = Observer()
    observer.models["digits"].add(1.0, is_done=True)
    observer.calls["/v2", 200] += 1
    available = series(asyncio.run(main()) + observer.metrics())
    # What lay ready was used by then.
    available["privet_stock"] |= {"model", "suite"}
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len(panels) == len({panel["title"] for panel in panels}) > 10
    for panel in panels:
        for target in panel["targets"]:
            names, labels = asked(target)
            assert names, panel["title"]
            for name in names:
                assert labels <= available[name], (panel["title"], name)
    series_names = {name for entry in panels for t in entry["targets"] for name in asked(t)[0]}
    missed = {
        name.removesuffix("_bucket")
        for name in available
        if not re.search("_(sum|count|created)$", name)
    } - {name.removesuffix("_bucket") for name in series_names}
    assert missed == set(), "no metric is left out"


def test_a_query_for_a_metric_that_is_not_there_shows() -> None:
    target = {"expr": 'sum by (le, a) (rate(privet_x_bucket{b!="1"}[5m]))', "legendFormat": "{{c}}"}
    assert asked(target) == ({"privet_x_bucket"}, {"le", "a", "b", "c"})
    text = '# TYPE privet_x histogram\nprivet_x_bucket{le="1",a="m"} 1\n'
    assert series(text)["privet_x_bucket"] == {"le", "a"}
