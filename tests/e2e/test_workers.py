"""Jobs in worker processes: what a grant admits, and what it does not."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.scene import INPUT, small_model
from tests.e2e.floor import SUITE, Floor, floor

from privet.compiler.compile import Compiled
from privet.errors import InvalidProgram, Misuse, PeerError, PrivetError
from privet.runtime import Client
from privet.service.executor import Grant
from privet.service.executor.local import LocalExecutor

Scenario = Callable[[Callable[[Floor], Awaitable[None]]], None]


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return small_model()


@pytest.fixture
def on_floor(tmp_path: Path, key_folder: Path, compiled: Compiled) -> Callable[..., None]:
    """Plays a scenario on a floor with these options of its executor."""

    def play(scenario: Callable[[Floor], Awaitable[None]], **options: Any) -> None:
        async def run() -> None:
            async with floor(tmp_path, key_folder, compiled, **options) as stage:
                await scenario(stage)

        asyncio.run(run())

    return play


def test_jobs_may_share_a_core(on_floor: Callable[..., None]) -> None:
    cpu = min(os.sched_getaffinity(0))

    async def scenario(stage: Floor) -> None:
        (machine,) = stage.executor.machines()
        assert machine.cores == (cpu, 2 * cpu + 1)
        preparations = (stage.prepare(cores=(core,)) for core in machine.cores)
        results = await asyncio.gather(*preparations)
        assert [outcome.failure for _, outcome in results] == [None, None]
        with pytest.raises(Misuse, match="has the cores"):
            await stage.executor.run(stage.grant("prepare", cores=(3 * cpu + 2,)))

    on_floor(scenario, cores=[cpu], jobs_per_core=2)


def test_jobs_run_and_tell_what_they_took(on_floor: Callable[..., None]) -> None:
    async def scenario(stage: Floor) -> None:
        material, outcome = await stage.prepare()
        assert (outcome.failure, outcome.material) == (None, material)
        assert outcome.cost is not None
        assert outcome.cost.bytes_client > 0
        assert outcome.peak_rss >= outcome.base_rss > 1 << 20
        assert 0 < outcome.cost.seconds <= outcome.seconds
        (entry,) = await stage.executor.material("local")
        grant = stage.grant("prepare")
        assert (entry.id, entry.peer) == (material, grant.client)
        assert (entry.program, entry.suite) == (grant.program, grant.suite)
        inference = await stage.infer(material, cores=stage.executor.machines()[0].cores)
        assert (inference.failure, inference.material) == (None, material)
        assert inference.waited > 0
        assert await stage.executor.material("local") == []

    on_floor(scenario)


def test_material_serves_on_any_worker(on_floor: Callable[..., None]) -> None:
    async def scenario(stage: Floor) -> None:
        material, _ = await stage.prepare()
        # Occupies the worker that made it, which is the first to be found idle.
        if len(stage.executor.machines()[0].cores) < 2:
            pytest.fail("this test needs two cores")
        first, second = stage.executor.machines()[0].cores[:2]
        other = await stage.executor.run(stage.grant("prepare", cores=(first,)))
        assert (await stage.infer(material, cores=(second,))).failure is None
        await stage.executor.stop(other.job)
        assert (await other.outcome()).failure == "stopped"

    on_floor(scenario)


async def refusal(stage: Floor, grant: Grant, work: Callable[[Client], Any]) -> str:
    """What the client hears when it asks for `work`; the job then does what it was for."""
    job = await stage.executor.run(grant)
    with pytest.raises(PeerError) as excinfo:
        await stage.ask(job, work)
    if grant.phase == "prepare":
        await stage.ask(job, lambda client: client.prepare())
    else:
        await stage.ask(job, lambda client: client.infer([INPUT], material=grant.material))
    assert (await job.outcome()).failure is None
    return str(excinfo.value)


def test_wrong_requests_are_refused_and_spend_nothing(on_floor: Callable[..., None]) -> None:
    async def scenario(stage: Floor) -> None:
        first, second = (await stage.prepare())[0], (await stage.prepare())[0]
        use_first = stage.grant("infer", material=first)

        def infer(client: Client) -> object:
            return client.infer([INPUT], material=second)

        assert "is to prepare" in await refusal(stage, stage.grant("prepare"), infer)
        third, _ = await stage.prepare()
        # The client's half of the second entry is spent by its attempt; the server's is not.
        assert {entry.id for entry in await stage.executor.material("local")} >= {first, second}

        def infer_third(client: Client) -> object:
            return client.infer([INPUT], material=third)

        assert "another material entry" in await refusal(stage, use_first, infer_third)
        grant = stage.grant("infer", material=(await stage.prepare())[0])
        assert "is to infer" in await refusal(stage, grant, lambda client: client.prepare())

    on_floor(scenario)


def test_another_program_or_suite_is_refused(on_floor: Callable[..., None]) -> None:
    async def scenario(stage: Floor) -> None:
        other = small_model(seed=1, name="other")
        other.save(stage.folder / "other")
        program = await stage.executor.offer(stage.folder / "other")
        job = await stage.executor.run(stage.grant("prepare", program=program, grace=2.0))
        with pytest.raises(PeerError, match="another program"):
            await stage.ask(job, lambda client: client.prepare())
        outcome = await job.outcome()
        assert (outcome.failure, outcome.message) == ("absent", "the grant is for another program")
        await stage.executor.withdraw(program)
        with pytest.raises(Misuse, match="not offered"):
            await stage.executor.run(stage.grant("prepare", program=program))

        grant = stage.grant("prepare", suite=SUITE.replace("linear", "log"), grace=2.0)
        job = await stage.executor.run(grant)
        with pytest.raises(PeerError, match="grant is for suite"):
            await stage.ask(job, lambda client: client.prepare())
        assert (await job.outcome()).failure == "absent"

    on_floor(scenario)


def test_a_stranger_is_refused_whatever_it_asks(on_floor: Callable[..., None]) -> None:
    async def scenario(stage: Floor) -> None:
        entry_id, _ = await stage.prepare()
        job = await stage.executor.run(stage.grant("prepare", client="ab" * 32, grace=3.0))
        for work in (
            lambda client: client.prepare(),
            lambda client: client.infer([INPUT], material=entry_id),
        ):
            with pytest.raises(PeerError, match="no grant for this client"):
                await stage.ask(job, work)
        outcome = await job.outcome()
        assert outcome.failure == "absent"
        assert [entry.id for entry in await stage.executor.material("local")] == [entry_id]

    on_floor(scenario)


def test_a_grant_serves_once(on_floor: Callable[..., None]) -> None:
    async def scenario(stage: Floor) -> None:
        job = await stage.executor.run(stage.grant("prepare"))

        def prepare_twice(client: Client) -> None:
            client.prepare()
            with pytest.raises(PeerError, match="no grant"):
                client.prepare()

        with pytest.raises(PeerError):  # the goodbye of a session that was refused
            await stage.ask(job, prepare_twice)
        assert (await job.outcome()).failure is None
        with pytest.raises(PeerError, match="no grant"):
            await stage.ask(job, lambda client: client.prepare())
        assert len(await stage.executor.material("local")) == 1

    on_floor(scenario)


def test_a_client_that_does_not_come_leaves_its_material(on_floor: Callable[..., None]) -> None:
    async def scenario(stage: Floor) -> None:
        material, _ = await stage.prepare()
        job = await stage.executor.run(stage.grant("infer", material=material, grace=0.2))
        assert not await job.started()
        outcome = await job.outcome()
        assert (outcome.failure, outcome.keeps_material, outcome.seconds) == ("absent", True, 0.0)
        assert (await stage.infer(material)).failure is None

    on_floor(scenario)


def test_the_pool_keeps_to_the_cores(on_floor: Callable[..., None]) -> None:
    """Every thread of the worker that has a job is on the job's core."""

    async def scenario(stage: Floor) -> None:
        executor = stage.executor
        assert isinstance(executor, LocalExecutor)
        core = executor.node.cores[-1]
        job = await executor.run(stage.grant("prepare", cores=(core,)))
        affinities = []

        def look(*_step: object) -> None:
            for pid in executor.workers():
                # A thread that ends between the two looks has no cores any more.
                with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                    tasks = [int(name) for name in os.listdir(f"/proc/{pid}/task")]
                    affinities.append([os.sched_getaffinity(task) for task in tasks])

        await stage.ask(job, lambda client: client.prepare(progress=look))
        assert (await job.outcome()).failure is None
        assert any(all(cores == {core} for cores in threads) for threads in affinities)

    on_floor(scenario)


def test_what_cannot_be_granted(on_floor: Callable[..., None]) -> None:
    async def scenario(stage: Floor) -> None:
        executor, cores = stage.executor, stage.executor.machines()[0].cores
        job = await executor.run(stage.grant("prepare", job="one", memory=3 << 30))
        for fields, reason in (
            ({"job": "one"}, "runs already"),
            ({}, "has its cores"),
            ({"cores": cores[1:], "memory": 2 << 30}, "have its memory"),
            ({"cores": (999,)}, "has the cores"),
            ({"machine": "elsewhere"}, "no machine"),
        ):
            with pytest.raises(Misuse, match=reason):
                await executor.run(stage.grant("prepare", **fields))
        await executor.stop(job.job)
        with pytest.raises(Misuse, match="only an inference uses material"):
            stage.grant("prepare", material="00" * 16)
        with pytest.raises(InvalidProgram):
            await executor.offer(stage.folder / "nowhere")

    on_floor(scenario)


def test_an_executor_without_keys_says_so(tmp_path: Path) -> None:
    async def run() -> None:
        await LocalExecutor(keys=tmp_path, state=tmp_path / "state", memory=1).start()

    with pytest.raises(PrivetError, match="cannot be read"):
        asyncio.run(run())
