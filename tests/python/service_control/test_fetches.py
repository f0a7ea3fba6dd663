"""Fetches of encrypted weights at the control plane: who may, how often, and what they count as."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.caller import ServiceCaller
from tests.e2e.test_kept_weights import compiled
from tests.python.service_control.actors import Scene, scene

from privet.scheduler.submission import Refused, Why
from privet.service.service import FETCHES
from privet.suites import make_policy

MODE = {"encrypts": "weights", "rounds": "log"}
REQUESTS = "/v2/models/digits/requests"
Play = Callable[..., None]


@pytest.fixture(scope="module")
def kept_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept")
    compiled(folder, 1).save(folder / "program")
    return folder / "program"


@pytest.fixture
def play(folder: Path, key_folder: Path, kept_program: Path) -> Play:
    """Runs a test's coroutine beside a service, with one client."""

    def run(act: Any, program: Path = kept_program, **options: Any) -> None:
        async def main() -> None:
            options.setdefault("accepts", make_policy(encrypts="weights"))
            async with (
                scene(folder, key_folder, program, **options) as testbed,
                ServiceCaller(testbed.address, key_folder, folder / "client", "client") as caller,
            ):
                await act(testbed, caller)

        asyncio.run(main())

    return run


async def fetch(caller: ServiceCaller, **fields: Any) -> tuple[int, Any, Any]:
    """Asks for a fetch."""
    return await caller.ask("POST", REQUESTS, MODE | {"fetch": True} | fields)


async def fetched(testbed: Scene, caller: ServiceCaller, **outcome: Any) -> Any:
    """A fetch that ends well; what the client reads of it."""
    status, job, _ = await fetch(caller)
    assert status == 202, job
    path = f"/v2/jobs/{job['id']}"
    fetch_job = await testbed.executor.granted("fetch")
    assert (await caller.good("GET", path))["state"] == "fetching"
    testbed.executor.finish(fetch_job.job, **outcome)
    document = await caller.good("GET", path)
    while document["state"] != "ended":
        document = await caller.good("GET", f"{path}?wait=5&seen={document['sequence']}")
    return document


def test_the_default_policy_refuses_and_says_what_it_accepts(play: Play) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        for body in (MODE, MODE | {"fetch": True}):
            status, answer, _ = await caller.ask("POST", REQUESTS, body)
            assert (status, answer["reason"]) == (403, "policy")
            assert answer["error"].endswith(
                "does not accept encrypts weights: accepted for you: masks"
            )
        assert testbed.executor.jobs == {}
        await caller.good("POST", REQUESTS, {"encrypts": "masks"})

    play(act, accepts=make_policy())


def test_a_policy_accepts_them_of_one_client_alone(play: Play, tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    for name, status in (("privet client", 202), ("somebody else", 403)):
        file.write_text(f'[clients."{name}".accepts]\nencrypts = ["masks", "weights"]\n')

        async def act(testbed: Scene, caller: ServiceCaller, status: int = status) -> None:
            assert (await fetch(caller))[0] == status

        play(act, accepts=make_policy(file))


def test_a_fetch_is_a_job_on_one_core_and_no_answer(play: Play) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        document = await fetched(testbed, caller, seconds=0.01)
        assert (document["kind"], document["outcome"]) == ("fetch", "done")
        assert document["encrypts"] == "weights"
        (fetch_job,) = testbed.executor.jobs.values()
        grant = fetch_job.grant
        assert (grant.phase, grant.material, len(grant.cores)) == ("fetch", None, 1)
        assert grant.suite == "gmw log exact kept-weights"
        # What a quick link took is not held against the next.
        (job,) = [row for row in testbed.service.profiles.rows() if row["suite"].endswith("fetch")]
        assert job["seconds"] > 0.5
        assert grant.seconds >= 60
        (run,) = testbed.service.timeline.runs()
        assert run.phase == "fetch"
        assert (await caller.ask("POST", REQUESTS, MODE))[0] == 202
        assert (await caller.ask("POST", REQUESTS, MODE))[0] == 429

    accepts = make_policy(encrypts="weights", answers_per_hour=1)
    play(act, accepts=accepts)


def test_a_client_fetches_one_at_a_time_and_not_again_and_again(
    play: Play, key_folder: Path, folder: Path
) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        assert (await fetch(caller))[0] == 202
        fetch_job = await testbed.executor.granted("fetch")
        for _ in range(2):
            status, answer, headers = await fetch(caller)
            assert (status, int(headers["Retry-After"])) == (429, 5), answer
        async with ServiceCaller(testbed.address, key_folder, folder / "o", "operator") as other:
            # Of two cores one is for others.
            assert (await fetch(other))[0] == 429
            testbed.executor.finish(fetch_job.job)
            for _ in range(FETCHES - 1):
                await fetched(testbed, caller)
            status, answer, headers = await fetch(caller)
            assert (status, answer["reason"]) == (429, "fetches")
            assert "keep them" in answer["error"]
            assert int(headers["Retry-After"]) > 10_000
            await fetched(testbed, other)

    play(act)


def test_a_fetch_that_is_refused_counts_as_none(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        def full(_: Any) -> None:
            raise Refused(Why.FULL, "the queue is full")

        with monkeypatch.context() as patch:
            patch.setattr(testbed.service.driver, "submit", full)
            for _ in range(FETCHES + 1):
                status, answer, _ = await fetch(caller)
                assert (status, answer["reason"]) != (429, "fetches")
                assert status >= 400
        for _ in range(FETCHES):
            await fetched(testbed, caller)
        status, answer, _ = await fetch(caller)
        assert (status, answer["reason"]) == (429, "fetches")

    play(act)


def test_there_is_nothing_to_fetch_in_other_modes(play: Play) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        for other in ({"encrypts": "masks"}, {"encrypts": None, "suite": "gmw"}):
            body = {key: value for key, value in {**MODE, **other}.items() if value is not None}
            status, answer, _ = await caller.ask("POST", REQUESTS, body | {"fetch": True})
            assert (status, "keep nothing" in answer["error"]) == (400, True)
        assert testbed.executor.jobs == {}

    play(act)
