"""The control plane holds clients to the service's policy before it admits a job."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.caller import ServiceCaller
from tests.python.service_control.actors import Scene, scene

from privet.errors import NotAccepted
from privet.service.limits import Exhausted
from privet.suites import make_policy

Play = Callable[..., None]


@pytest.fixture
def play(folder: Path, key_folder: Path, program: Path) -> Play:
    """Runs a test's coroutine beside a service, with one client."""

    def run(act: Any, **options: Any) -> None:
        async def main() -> None:
            async with (
                scene(folder, key_folder, program, **options) as testbed,
                ServiceCaller(testbed.address, key_folder, folder / "client", "client") as caller,
            ):
                await act(testbed, caller)

        asyncio.run(main())

    return run


ONE_BIT = {"truncation": "one-bit"}


def test_a_weaker_mode_is_refused_before_it_is_a_job(play: Play) -> None:
    async def refused(testbed: Scene, caller: ServiceCaller) -> None:
        for kind in ("requests", "notices"):
            status, answer, _ = await caller.ask("POST", f"/v2/models/digits/{kind}", ONE_BIT)
            assert (status, answer["reason"]) == (403, "policy")
            assert answer["error"].endswith("accepted for you: exact")
        assert testbed.service.jobs.open() == []
        assert testbed.executor.jobs == {}
        await caller.good("POST", "/v2/models/digits/requests", {})

    async def served(testbed: Scene, caller: ServiceCaller) -> None:
        await caller.good("POST", "/v2/models/digits/requests", ONE_BIT)
        assert testbed.service.jobs.open()

    play(refused)
    play(served, accepts=make_policy(truncation="one-bit"))


def test_requests_are_counted_over_modes_and_restarts_and_notices_are_not(play: Play) -> None:
    accepts = make_policy(truncation="one-bit", answers_per_hour=2)

    async def one(_it: Scene, caller: ServiceCaller) -> None:
        await caller.good("POST", "/v2/models/digits/notices", {})
        await caller.good("POST", "/v2/models/digits/requests", {})

    async def last(testbed: Scene, caller: ServiceCaller) -> None:
        await caller.good("POST", "/v2/models/digits/requests", {**ONE_BIT, "key": "once"})
        # The same call again is no other answer.
        await caller.good("POST", "/v2/models/digits/requests", {**ONE_BIT, "key": "once"})
        count = len(testbed.service.jobs.open())
        for body in ({}, ONE_BIT):
            status, answer, headers = await caller.ask("POST", "/v2/models/digits/requests", body)
            assert (status, answer["reason"]) == (429, "answers")
            assert 3000 < int(headers["Retry-After"]) <= 3600
        assert len(testbed.service.jobs.open()) == count
        await caller.good("POST", "/v2/models/digits/notices", {})

    play(one, accepts=accepts)
    play(last, accepts=accepts)


def test_who_insists_on_material_that_lies_ready_has_none_made_and_no_answer_counted(
    play: Play,
) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        for _ in range(2):
            status, answer, _ = await caller.ask(
                "POST", "/v2/models/digits/requests", {"ready": True}
            )
            assert (status, answer["reason"]) == (409, "no material")
        assert testbed.service.jobs.open() == []
        # The control: without that word some is made, and the answer counts.
        await caller.good("POST", "/v2/models/digits/requests", {})
        assert testbed.service.jobs.open()
        status, answer, _ = await caller.ask("POST", "/v2/models/digits/requests", {})
        assert (status, answer["reason"]) == (429, "answers")

    play(act, accepts=make_policy(answers_per_hour=1))


def test_sessions_of_suite_ckks_are_held_to_the_same_policy(play: Play) -> None:
    from privet.suites import Mode

    light = Mode("ckks", scenario="encrypted-data", flooding="light")
    noisy = Mode("ckks", scenario="encrypted-data", flooding="statistical")

    async def act(testbed: Scene, _visitor: ServiceCaller) -> None:
        with pytest.raises(NotAccepted, match="flooding light: accepted for you: statistical"):
            testbed.service.admit("client", None, light, 0)
        testbed.service.admit("client", None, noisy, 2)
        with pytest.raises(Exhausted):
            testbed.service.admit("client", None, noisy, 1)

    play(act, accepts=make_policy(answers_per_hour=2))
