"""The plain listener: health and metrics for anybody, and nothing else."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

from aiohttp.test_utils import TestClient, TestServer

from privet.service.control.handlers.health import probe_app
from privet.service.service import Service


def test_the_probe_listener_answers_health_and_metrics_alone() -> None:
    reasons: list[str | None] = ["it starts", None]
    service = SimpleNamespace(
        why_not_ready=lambda: reasons.pop(0),
        metrics=SimpleNamespace(render=lambda: (b"privet_up 1\n", "text/plain; version=0.0.4")),
    )

    async def act() -> None:
        async with TestClient(TestServer(probe_app(cast(Service, service)))) as client:
            assert (await client.get("/v2/health/live")).status == 200
            response = await client.get("/v2/health/ready")
            reply = {"ready": False, "reason": "it starts"}
            assert (response.status, await response.json()) == (503, reply)
            assert (await client.get("/v2/health/ready")).status == 200
            assert await (await client.get("/metrics")).text() == "privet_up 1\n"
            for path in ("/v2/models/digits", "/", "/v2/jobs"):
                assert (await client.get(path)).status == 404
            assert (await client.post("/v2/health/live")).status == 405

    asyncio.run(act())
