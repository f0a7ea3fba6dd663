"""Jobs that go wrong in worker processes: over time, over memory, killed, left alone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.scene import INPUT, SOON, small_model
from tests.e2e.floor import Floor, floor

from privet import _native, zoo
from privet.compiler.compile import Compiled, compile
from privet.errors import LinkError, MaterialError, PeerError
from privet.runtime import Client, Credentials
from privet.service.executor.local import LocalExecutor

Play = Callable[..., None]


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return small_model()


@pytest.fixture
def on_floor(tmp_path: Path, key_folder: Path, compiled: Compiled) -> Play:
    """Plays a scenario on a floor with these options of its executor."""

    def play(scenario: Callable[[Floor], Awaitable[None]], **options: Any) -> None:
        async def run() -> None:
            async with floor(tmp_path, key_folder, compiled, **options) as stage:
                await scenario(stage)

        asyncio.run(run())

    return play


def workers(stage: Floor) -> list[int]:
    """Ids of the processes of the workers, in the order in which they get jobs."""
    assert isinstance(stage.executor, LocalExecutor)
    return stage.executor.workers()


async def replaced(stage: Floor, dead: int) -> None:
    """Waits until the worker with this id has a successor."""
    async with asyncio.timeout(SOON):
        while dead in workers(stage) or len(workers(stage)) < 2:
            await asyncio.sleep(0.01)


def dawdle(seconds: float) -> Callable[[Client], object]:
    """A preparation by a client that sleeps for so long before its last step."""

    def work(client: Client) -> object:
        return client.prepare(progress=lambda *_: time.sleep(seconds))

    return work


def test_a_job_over_its_time_is_killed(on_floor: Play) -> None:
    async def scenario(stage: Floor) -> None:
        victim = workers(stage)[0]
        job = await stage.executor.run(stage.grant("prepare", seconds=0.3))
        start = time.monotonic()
        client = asyncio.create_task(stage.ask(job, dawdle(4.0)))
        outcome = await job.outcome()
        assert time.monotonic() - start < 4.0
        assert (outcome.failure, outcome.message) == ("timed out", "it took more than 0.3 s")
        assert 0.3 <= outcome.seconds < 4.0
        with pytest.raises(PeerError):
            await client
        await replaced(stage, victim)
        material, _ = await stage.prepare()
        assert (await stage.infer(material)).failure is None

    on_floor(scenario)


def test_a_job_over_its_memory_dies_and_nothing_else(
    tmp_path: Path, key_folder: Path, figures: list[str]
) -> None:
    async def run() -> None:
        m2 = compile(zoo.build("m2", tmp_path))
        async with floor(tmp_path, key_folder, m2) as stage:
            victim, bound = workers(stage)[0], 8 << 20
            job = await stage.executor.run(stage.grant("prepare", memory=bound))
            with pytest.raises(PeerError):
                await stage.ask(job, lambda client: client.prepare())
            outcome = await job.outcome()
            assert (outcome.failure, outcome.cost) == ("over memory", None)
            assert outcome.memory > bound
            figures.append(
                f"a job bound to {bound >> 20} MiB died with {outcome.memory / 2**20:.1f} MiB"
            )
            await replaced(stage, victim)
            _, result = await stage.prepare()
            assert result.failure is None
            assert result.memory > bound

    asyncio.run(run())


def test_silence_ends_a_job(on_floor: Play) -> None:
    async def scenario(stage: Floor) -> None:
        job = await stage.executor.run(stage.grant("prepare"))
        client = asyncio.create_task(stage.ask(job, dawdle(5.0)))
        outcome = await job.outcome()
        assert outcome.failure == "failed"
        assert outcome.message.startswith("LinkError")
        assert outcome.seconds < 5.0
        with pytest.raises(PeerError):
            await client

    on_floor(scenario, timeout=1.0)


def test_a_client_that_connects_and_says_nothing_is_disconnected(on_floor: Play) -> None:
    async def scenario(stage: Floor) -> None:
        job = await stage.executor.run(stage.grant("prepare", grace=1.0))
        credentials = Credentials.from_directory(stage.keys, "client")

        def connect() -> object:
            return _native.Connection.connect(
                "localhost", job.port, credentials.native, "localhost", SOON
            )

        link = await asyncio.to_thread(connect)
        outcome = await job.outcome()
        assert outcome.failure == "absent"
        assert link is not None
        material, _ = await stage.prepare()
        assert (await stage.infer(material)).failure is None

    on_floor(scenario, workers=1)


def test_a_killed_worker_fails_its_own_job_alone(on_floor: Play) -> None:
    async def scenario(stage: Floor) -> None:
        material, _ = await stage.prepare()
        shutil.copytree(stage.folder / "client", stage.folder / "before")
        cores = stage.executor.machines()[0].cores
        victim = workers(stage)[0]
        doomed = await stage.executor.run(stage.grant("infer", material=material, cores=cores[:1]))
        other = await stage.executor.run(stage.grant("prepare", cores=cores[-1:]))
        assert doomed.port != other.port

        def infer(client: Client) -> object:
            def kill(*_step: object) -> None:
                os.kill(victim, signal.SIGKILL)

            return client.infer([INPUT], material=material, progress=kill)

        killed = asyncio.create_task(stage.ask(doomed, infer))
        (entry,) = await stage.ask(other, lambda client: client.prepare())
        assert (await other.outcome()).material == entry
        outcome = await doomed.outcome()
        assert (outcome.failure, outcome.keeps_material) == ("crashed", False)
        assert "SIGKILL" in outcome.message
        with pytest.raises(PeerError):
            await killed

        # A client from before the kill still has its half, but nobody has the other one.
        assert [record.id for record in await stage.executor.material("local")] == [entry]
        job = await stage.executor.run(stage.grant("infer", material=material))

        def infer_again() -> object:
            with stage.client(job.port, state="before") as client:
                return client.infer([INPUT], material=material)

        with pytest.raises(MaterialError):
            await asyncio.to_thread(infer_again)
        assert (await job.outcome()).failure == "failed"
        assert (await stage.infer(entry)).failure is None

    on_floor(scenario)


def test_a_job_is_taken_back_unless_its_client_has_come(on_floor: Play) -> None:
    async def scenario(stage: Floor) -> None:
        material, _ = await stage.prepare()
        job = await stage.executor.run(stage.grant("infer", material=material))
        await stage.executor.take_back(job.job)
        outcome = await job.outcome()
        assert (outcome.failure, outcome.keeps_material) == ("absent", True)
        assert not await job.started()
        assert (await stage.infer(material)).failure is None
        job = await stage.executor.run(stage.grant("prepare"))
        client = asyncio.create_task(stage.ask(job, dawdle(0.5)))
        assert await job.started()
        await stage.executor.take_back(job.job)
        await client
        assert (await job.outcome()).failure is None

    on_floor(scenario)


@pytest.mark.parametrize("has_begun", [False, True], ids=["waiting", "begun"])
def test_a_job_can_be_stopped(has_begun: bool, on_floor: Play) -> None:
    async def scenario(stage: Floor) -> None:
        before = workers(stage)
        material, _ = await stage.prepare()
        grant = stage.grant("prepare") if has_begun else stage.grant("infer", material=material)
        job = await stage.executor.run(grant)
        client = None
        if has_begun:
            client = asyncio.create_task(stage.ask(job, dawdle(0.5)))
            assert await job.started()
        await stage.executor.stop(job.job)
        outcome = await job.outcome()
        assert outcome.failure == "stopped"
        if client is not None:
            with pytest.raises(PeerError):
                await client
        # Nobody had to be killed for it, and material that nobody touched still serves.
        assert workers(stage) == before
        assert outcome.keeps_material != has_begun
        assert (await stage.infer(material)).failure is None

    on_floor(scenario)


def open_files(pid: int) -> int:
    """How many file descriptors a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def children() -> int:
    """How many child processes this one has, dead ones included that nobody has waited for; but
    Python's own, which a test of other processes may have left, is none of the executor's."""
    parent_line = f"\nPPid:\t{os.getpid()}\n"
    count = 0
    for path in Path("/proc").glob("[0-9]*"):
        # Others' processes may end between the two lines.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            is_child = parent_line in (path / "status").read_text()
            count += is_child and b"resource_tracker" not in (path / "cmdline").read_bytes()
    return count


def test_fifty_jobs_leak_nothing(on_floor: Play) -> None:
    async def scenario(stage: Floor) -> None:
        async def both() -> None:
            material, _ = await stage.prepare()
            await stage.infer(material)

        def used() -> tuple[list[int], int, int, list[int], list[int]]:
            pids = workers(stage)
            threads = [len(os.listdir(f"/proc/{pid}/task")) for pid in pids]
            descriptors = len(os.listdir("/proc/self/fd"))
            return pids, descriptors, children(), list(map(open_files, pids)), threads

        for _ in range(3):
            await both()
        await asyncio.sleep(0.5)
        before, threads = used(), threading.active_count()
        for _ in range(25):
            await both()
        await asyncio.sleep(0.5)
        assert used() == before
        assert threading.active_count() <= threads + 1
        assert await stage.executor.material("local") == []

    on_floor(scenario)


def test_closing_ends_every_process_and_job(on_floor: Play) -> None:
    async def scenario(stage: Floor) -> None:
        job = await stage.executor.run(stage.grant("prepare"))
        pids = workers(stage)
        await stage.executor.close()
        assert (await job.outcome()).failure == "crashed"
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
        assert children() == 0

    on_floor(scenario)


PARENT = """
import asyncio, sys
from privet.service.executor.local import LocalExecutor

async def main():
    executor = LocalExecutor(keys=sys.argv[1], state=sys.argv[2], memory=1 << 30, workers=2)
    await executor.start()
    print(*executor.workers(), flush=True)
    await asyncio.sleep(3600)

asyncio.run(main())
"""


def test_workers_die_with_their_executor(tmp_path: Path, key_folder: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(key_folder), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2
        parent.kill()
    deadline = time.monotonic() + SOON
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < deadline, "a worker outlives its executor"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie that nobody reaps does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_a_refused_link_is_a_link_error(on_floor: Play) -> None:
    """Where a worker was, nobody listens once it is gone."""

    async def scenario(stage: Floor) -> None:
        job = await stage.executor.run(stage.grant("prepare"))
        await stage.executor.close()
        with pytest.raises(LinkError):
            await stage.ask(job, lambda client: client.prepare())

    on_floor(scenario)


def test_a_worker_that_died_idle_costs_no_job(on_floor: Play) -> None:
    async def scenario(stage: Floor) -> None:
        material, _ = await stage.prepare()
        for pid in workers(stage):
            os.kill(pid, signal.SIGKILL)
        # The executor has not heard of it yet when it chooses one of them.
        assert (await stage.infer(material)).failure is None

    on_floor(scenario)
