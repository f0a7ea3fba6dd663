"""An operator takes a machine out while the other serves, over an executor that pretends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.caller import ServiceCaller
from tests.e2e.test_commands import privet
from tests.python.service_control.actors import (
    GIB,
    PretendedJob,
    Pretender,
    Scene,
    eventually,
    scene,
)
from tests.python.service_control.test_jobs import until

from privet.service import service as module
from privet.service.executor import ExecutorNode, Grant, MachineEvent
from privet.service.jobs import Job

TWO = (ExecutorNode("a", (0,), GIB, "127.0.0.1"), ExecutorNode("b", (1,), GIB, "127.0.0.1"))

Play = Callable[[Scene, ServiceCaller, ServiceCaller], Awaitable[None]]


@pytest.fixture
def play(folder: Path, key_folder: Path, program: Path) -> Callable[..., None]:
    """Runs a test's coroutine beside a service of two machines, with a client and an operator."""

    def run(act: Play, nodes: tuple[ExecutorNode, ...] = TWO) -> None:
        async def main() -> None:
            executor = Pretender(nodes=list(nodes), apart=True)
            async with (
                scene(folder, key_folder, program, executor) as testbed,
                ServiceCaller(testbed.address, key_folder, folder / "client") as caller,
                ServiceCaller(testbed.address, key_folder, folder / "o", "operator") as operator,
            ):
                await act(testbed, caller, operator)

        asyncio.run(main())

    return run


def test_a_machine_is_drained_by_command_while_the_other_serves(
    play: Callable[..., None], key_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SWEEP_SECONDS", 0.1)

    async def act(testbed: Scene, caller: ServiceCaller, operator: ServiceCaller) -> None:
        place = f"localhost:{testbed.address.rpartition(':')[2]}"

        def command(*extra: object, code: int = 0) -> Any:
            words = ("drain", place, "b", "--keys", key_folder, *extra)
            return asyncio.to_thread(privet, *words, code=code)

        ids = [await caller.request("digits") for _ in range(2)]
        await eventually(lambda: len(testbed.executor.jobs) == 2)
        other = next(job for job in testbed.executor.jobs.values() if job.grant.machine == "b")
        stays = await command("--timeout", "0.2", code=1)
        assert "b still runs 1 of its jobs after 0.2 s" in stays["error"]["message"]
        drained = asyncio.create_task(command())
        ids.append(await caller.request("digits"))
        testbed.executor.finish(other.job)
        first = await testbed.executor.granted("infer")
        assert first.grant.machine == "b", "its material lies there"
        testbed.executor.finish(first.job)
        assert await drained == {"machine": "b", "drained": True}
        assert await command() == {"machine": "b", "drained": True}, "it is out already"
        assert [node.name for node in testbed.executor.released] == ["b"]
        name = testbed.executor.nodes[0].name

        async def serve() -> None:
            while True:
                for job in list(testbed.executor.jobs.values()):
                    testbed.executor.finish(job.job)
                await asyncio.sleep(0.01)

        serving = asyncio.create_task(serve())
        for id in ids:
            assert (await until(caller, id, "ended"))["outcome"] == "done"
        later = [
            job for job in testbed.executor.jobs.values() if job is not first and job is not other
        ]
        assert {job.grant.machine for job in later} == {name} == {"a"}
        assert await command("--back") == {"machine": "b", "drained": False}
        await eventually(lambda: {node.name for node in testbed.service.driver.nodes} == {"a", "b"})
        reply = await command("--back", code=2)
        assert "no machine 'b' was taken out" in reply["error"]["message"], "it is there already"
        status, answer = await operator.call("DELETE", "/v2/machines/a/drain")
        assert (status, answer["reason"]) == (409, "machine"), "nobody took it out"
        assert len(testbed.executor.nodes) == 2
        serving.cancel()

    play(act)


def test_material_of_a_drained_machine_stays_on_its_disk(
    play: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SWEEP_SECONDS", 0.05)

    async def act(testbed: Scene, caller: ServiceCaller, operator: ServiceCaller) -> None:
        notice = await caller.notify("digits")
        job = await testbed.executor.granted("prepare")
        testbed.executor.finish(job.job, material="e" * 32)
        await until(caller, notice, "prepared")
        machine = job.grant.machine
        # Another job keeps the machine busy, so that the sweep sees it while it is drained.
        busy = [await caller.request("digits", rounds="log") for _ in range(2)]
        await eventually(lambda: len(testbed.executor.jobs) == 3)
        monkeypatch.setattr("privet.service.material.SETTLING_SECONDS", -1.0)
        await operator.good("POST", f"/v2/machines/{machine}/drain")
        document = await until(caller, notice, "ended")
        assert "machine drained" in document["reason"]
        await asyncio.sleep(0.3)
        assert testbed.executor.discarded == []
        assert "e" * 32 not in testbed.service.driver.scheduler.material
        assert "found" not in (await operator.call("GET", "/metrics"))[1], "no sweep took it in"
        for id in busy:
            await caller.call("DELETE", f"/v2/jobs/{id}")
        await eventually(lambda: [node.name for node in testbed.executor.released] == [machine])
        assert "e" * 32 in testbed.executor.store
        await operator.good("DELETE", f"/v2/machines/{machine}/drain")
        await eventually(lambda: "e" * 32 in testbed.service.driver.scheduler.material)

    play(act)


def test_what_cannot_be_drained_is_refused_with_the_reason(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, caller: ServiceCaller, operator: ServiceCaller) -> None:
        for method, machine, text in (
            ("POST", "a", "a is the only machine that takes jobs: add another one first"),
            ("POST", "zeta", "there is no machine zeta"),
            ("DELETE", "zeta", "no machine 'zeta' was taken out"),
        ):
            status, answer = await operator.call(method, f"/v2/machines/{machine}/drain")
            assert (status, text in answer["error"]) == (409, True), answer
        assert (await caller.call("POST", "/v2/machines/a/drain"))[0] == 403

    play(act, nodes=TWO[:1])


def test_the_page_of_another_site_drains_nothing(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, caller: ServiceCaller, operator: ServiceCaller) -> None:
        operator.headers["Origin"] = "https://elsewhere.example"
        status, answer = await operator.call("POST", "/v2/machines/b/drain")
        assert (status, answer["reason"]) == (403, "other origin")
        assert not testbed.service.driver.scheduler.drains("b")
        operator.headers["Origin"] = f"https://localhost:{testbed.address.rpartition(':')[2]}"
        assert (await operator.call("POST", "/v2/machines/b/drain"))[0] == 200

    play(act)


def test_a_machine_that_is_lost_as_it_takes_a_job_has_nobody_come_to_it(
    play: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No client hears of a job that no worker waits for, and another machine runs it."""

    async def act(testbed: Scene, caller: ServiceCaller, _operator: ServiceCaller) -> None:
        executor, tell = testbed.executor, testbed.service.jobs.changed
        documents: list[dict[str, Any]] = []

        async def run(grant: Grant) -> PretendedJob:
            monkeypatch.undo()
            job = await executor.run(grant)
            job.port = 0
            executor.pending.put_nowait(MachineEvent("lost", TWO[grant.machine == "b"]))
            executor.fail(grant.job, "machine lost")
            return job

        def changed(job: Job, *, quietly: bool = False) -> None:
            documents.extend(lease.document() for lease in job.leases.values())
            tell(job, quietly=quietly)

        monkeypatch.setattr(executor, "run", run)
        testbed.service.driver._changed = changed
        id = await caller.request("digits")
        repeat = await executor.granted("prepare")
        (first, second) = (job.grant for job in executor.jobs.values())
        assert first.machine != second.machine
        await eventually(lambda: bool(documents))
        assert {(lease["job"], lease["port"]) for lease in documents} == {(repeat.job, repeat.port)}
        executor.finish(repeat.job)
        executor.finish((await executor.granted("infer")).job)
        assert (await until(caller, id, "ended"))["outcome"] == "done"

    play(act)
