"""Sessions of suite `ckks` as jobs: a real process of the suite beside an executor that pretends,
on one machine whose cores and memory both share."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import onnxruntime
import pytest
from tests.e2e.caller import ServiceCaller, tls
from tests.e2e.services import put_digits
from tests.python.service_control.actors import (
    GIB,
    PretendedJob,
    Pretender,
    Scene,
    eventually,
    scene,
)

from privet.compiler.compile import compile
from privet.errors import PeerBusy, PeerError, PrivetError
from privet.gateway import ServiceClient, Terms
from privet.runtime import Credentials, Result
from privet.service import sessions
from privet.service.estimates import HEADROOM
from privet.service.executor import ExecutorNode
from privet.service.limits import ServiceLimits
from privet.service.local_node import APART
from privet.service.repository import ModelConfig
from privet.service.repository.files import Source
from privet.suites import Ckks

pytestmark = pytest.mark.go

MODEL = Path(__file__).parents[3] / "zoo" / "models" / "digits-smooth" / "square.onnx"
CONFIG = 'suites = ["ckks"]\ninput_range = [0, 1]\ncores = 2\n'
TERMS = Terms(Ckks())

X = np.random.default_rng(4).uniform(0, 1, (1, 1, 8, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def smooth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compiled program with smooth activations."""
    folder = tmp_path_factory.mktemp("smooth")
    compile(MODEL, bits=50, scale=16, input_range=(0, 1), name="smooth").save(folder)
    return folder


class Stage:
    """A service of `smooth` in suite `ckks`, whose inferences take both cores of the machine, and
    of `digits` in `gmw`, whose jobs take one and last until the executor is told to end them."""

    def __init__(self, testbed: Scene, keys: Path, folder: Path) -> None:
        self.service, self.executor, self.address = (
            testbed.service,
            testbed.executor,
            testbed.address,
        )
        self._keys, self._folder = keys, folder

    def client(self) -> ServiceClient:
        """A client of the service."""
        credentials = Credentials.from_directory(self._keys, "client")
        return ServiceClient(f"https://{self.address}", credentials, state=self._folder / "state")

    def caller(self, role: str = "client") -> ServiceCaller:
        """A caller of the control plane."""
        return ServiceCaller(self.address, self._keys, self._folder / "v", role)

    async def socket(self) -> aiohttp.ClientWebSocketResponse:
        """A session in which nothing was said yet."""
        url = f"https://{self.address}/v2/models/smooth/versions/1/session"
        self._web = aiohttp.ClientSession()
        return await self._web.ws_connect(url, ssl=tls(self._keys, "client"))

    async def leave(self) -> None:
        """Lets go of what `socket` opened."""
        await self._web.close()

    async def waiting(
        self, client: ServiceClient, caller: ServiceCaller
    ) -> tuple[str, PretendedJob, asyncio.Task[Result]]:
        """A notice of `digits`, the job that holds a core for it, and a prediction that waits for
        both cores."""
        notice = await caller.notify("digits")
        job = await self.executor.granted("prepare")
        inference = asyncio.create_task(client.infer("smooth", [X], terms=TERMS))
        await eventually(lambda: self.lengths() == (0, 1))
        return notice, job, inference

    def lengths(self) -> tuple[int, int]:
        """How many jobs wait for a T_pre, and for a T_on."""
        now = self.service.snapshot()
        return now.pre.length, now.ready.length

    def taken(self) -> tuple[int, int]:
        """Cores and bytes that jobs and processes have."""
        (load,) = self.service.snapshot().machines
        return load.cores_taken, load.memory_taken

    def plan(self) -> dict[str, Any]:
        """The plan of `smooth`."""
        version = self.service.repository.version("smooth")
        assert version is not None
        assert version.plan is not None
        return version.plan


Act = Callable[[Stage], Awaitable[None]]
Play = Callable[..., None]


@pytest.fixture
def play(tmp_path: Path, key_folder: Path, smooth: Path, program: Path) -> Play:
    """Runs a test's coroutine beside such a service; `memory` is what the machine lends."""

    async def build(source: Source, config: ModelConfig) -> Path:
        return smooth if config.session is not None else program

    def run(
        act: Act, memory: int = 4 * GIB, kind: type[Pretender] = Pretender, **settings: Any
    ) -> None:
        async def main() -> None:
            folder = tmp_path / "repository" / "smooth" / "1"
            folder.mkdir(parents=True)
            shutil.copy(MODEL, folder / "model.onnx")
            (folder.parent / "config.toml").write_text(CONFIG)
            put_digits(tmp_path / "repository")
            executor = kind(nodes=[ExecutorNode("here", (0, 1), memory, "127.0.0.1")])
            async with scene(
                tmp_path, key_folder, program, executor, compiler=build, **settings
            ) as testbed:
                await act(Stage(testbed, key_folder, tmp_path))

        asyncio.run(main())

    return run


def assert_right(result: Result) -> None:
    """The prediction is that of the model in the clear."""
    session = onnxruntime.InferenceSession(MODEL)
    expected = session.run(None, {session.get_inputs()[0].name: X})[0]
    assert np.abs(next(iter(result.outputs.values())) - expected).max() < 0.05


async def failing(inference: asyncio.Task[Result]) -> PrivetError:
    """What a prediction failed with."""
    async with asyncio.timeout(20):
        with pytest.raises(PrivetError) as excinfo:
            await inference
    return excinfo.value


def test_an_inference_waits_for_cores_and_then_runs(play: Play) -> None:
    async def act(stage: Stage) -> None:
        alone = stage.taken()
        assert alone == (0, stage.plan()["memory_bytes_model"])
        async with (
            stage.client() as client,
            stage.caller() as caller,
            stage.caller("operator") as boss,
        ):
            _, job, inference = await stage.waiting(client, caller)
            state = await boss.good("GET", "/v2/state")
            resting = [run for run in state["running"] if run["suite"] == "ckks"]
            keys = int(HEADROOM * stage.plan()["memory_bytes_keys"])
            assert [(run["phase"], run["cores"], run["memory"]) for run in resting] == [
                ("pre", [], keys)
            ]
            assert [job["suite"] for job in state["queues"]["ready"]["first"]] == ["ckks"]
            await asyncio.sleep(0.3)
            assert not inference.done()
            assert stage.taken()[0] == 1
            stage.executor.finish(job.job)
            assert_right(await inference)
            await eventually(lambda: stage.taken()[1] == alone[1])
            updates = await caller.good("GET", "/v2/jobs")
            jobs = [job for job in updates["jobs"] if job["suite"] == "ckks"]
            jobs.sort(key=lambda job: job["kind"], reverse=True)
            assert [(job["kind"], job["state"], job["outcome"]) for job in jobs] == [
                ("session", "ended", "done"),
                ("request", "ended", "done"),
            ]
            assert jobs[1]["notice"] == jobs[0]["id"]
            state = await boss.good("GET", "/v2/state")
            runs = [run for run in state["timeline"] if run["suite"] == "ckks"]
            assert [(run["phase"], len(run["cores"])) for run in runs] == [("pre", 1), ("on", 2)]
            metrics = await boss.good("GET", "/metrics")
            for line in (
                'privet_submissions_total{kind="session",model="smooth/1",suite="ckks"} 1.0',
                'privet_submissions_total{kind="request",model="smooth/1",suite="ckks"} 1.0',
                'privet_job_seconds_count{model="smooth/1",phase="on",suite="ckks"} 1.0',
            ):
                assert line in metrics

    play(act)


def test_keys_wait_for_the_memory_of_another_session(play: Play, smooth: Path) -> None:
    async def act(stage: Stage) -> None:
        async with stage.client() as first, stage.client() as second, stage.caller() as caller:
            _, job, inference = await stage.waiting(first, caller)
            task = asyncio.create_task(second.infer("smooth", [X], terms=TERMS))
            await eventually(lambda: stage.lengths() == (1, 1))
            stage.executor.finish(job.job)
            assert_right(await inference)
            assert_right(await task)

    # The process, one client, and the job of the other model: no second set of keys.
    sizes = measure(smooth)
    digits = 80 * 2**20
    play(act, memory=int(sizes["model"] + HEADROOM * (sizes["keys"] + sizes["working"])) + digits)


def measure(folder: Path) -> dict[str, int]:
    """Bytes by the plan of a compiled program."""
    from privet.compiler.compile import PUBLIC_FILE
    from privet.suites import plan_ckks

    plan = plan_ckks((folder / PUBLIC_FILE).read_bytes())
    return {name: int(plan[f"memory_bytes_{name}"]) for name in ("model", "keys", "working")}


def test_a_model_that_does_not_fit_is_refused_with_the_figure(play: Play, smooth: Path) -> None:
    sizes = measure(smooth)
    most = int(sizes["model"] + HEADROOM * (sizes["keys"] + sizes["working"]))

    async def act(stage: Stage) -> None:
        rows = {row.model: row for row in stage.service.repository.rows()}
        assert not rows["smooth"].ready
        assert f"more than the {(most - 10**6) / 1e6:.0f} MB" in str(rows["smooth"].error)
        async with stage.caller() as caller:
            status, _ = await caller.call("GET", "/v2/models/smooth")
            assert status == 404

    play(act, memory=most - 10**6)


def test_a_client_that_leaves_the_queue_gives_its_memory_back(play: Play) -> None:
    async def act(stage: Stage) -> None:
        alone = stage.taken()[1]
        async with stage.client() as client, stage.caller() as caller:
            notice, _, inference = await stage.waiting(client, caller)
            inference.cancel()
            await eventually(lambda: stage.lengths() == (0, 0))
            await caller.good("DELETE", f"/v2/jobs/{notice}")
            await eventually(lambda: stage.taken() == (0, alone))
            await asyncio.gather(inference, return_exceptions=True)

    play(act)


def test_a_process_that_dies_gives_all_back(play: Play) -> None:
    async def act(stage: Stage) -> None:
        alone = stage.taken()[1]
        async with stage.client() as client, stage.caller() as caller:
            notice, job, inference = await stage.waiting(client, caller)
            version = stage.service.repository.version("smooth")
            assert version is not None
            model_server = stage.service.model_servers.find(version)
            assert model_server is not None
            assert model_server.process is not None
            model_server.process.kill()
            await failing(inference)
            await eventually(lambda: stage.lengths() == (0, 0))
            stage.executor.finish(job.job)
            await eventually(lambda: stage.taken() == (0, alone))
            assert_right(await client.infer("smooth", [X], terms=TERMS))
            await caller.good("DELETE", f"/v2/jobs/{notice}")

    play(act)


def test_a_session_that_leaves_without_an_answer_to_its_permit_gives_all_back(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its client left while the permit was on its way: the process takes the end for the answer,
    does no work, and so tells of none that is over."""

    async def act(stage: Stage) -> None:
        alone = stage.taken()
        version = stage.service.repository.version("smooth")
        assert version is not None
        model_server = stage.service.model_servers.find(version)
        assert model_server is not None
        orders: list[dict[str, Any]] = []
        monkeypatch.setattr(model_server, "order", lambda **fields: orders.append(fields))
        table = stage.service.sessions
        session = table.open("client", model_server)
        table.on_event(model_server, {"event": "ask", "session": session.number, "work": "keys"})
        await eventually(lambda: {"session": session.number, "cores": 1} in orders)
        assert stage.taken()[0] == 1
        assert session.permit is not None
        partner = table.open("member", model_server)
        partner.partner = "member"
        table.on_event(model_server, {"event": "waits", "session": partner.number})
        partner.submission = session.permit.job.id
        table.close(session)
        table.on_event(model_server, {"event": "failed", "session": session.number})
        table.on_event(model_server, {"event": "left", "session": session.number})
        await eventually(lambda: stage.taken() == alone)
        assert partner.submission is None

    play(act)


class Elsewhere(Pretender):
    """Lends machines none of which is this one."""

    def local_machine(self) -> str | None:
        """None of them."""
        return None


def test_where_the_executor_lends_others_this_machine_is_for_sessions(play: Play) -> None:
    async def act(stage: Stage) -> None:
        async with (
            stage.client() as client,
            stage.caller() as caller,
            stage.caller("operator") as boss,
        ):
            for _ in range(3):
                await caller.notify("digits")
            assert_right(await client.infer("smooth", [X], terms=TERMS))
            state = await boss.good("GET", "/v2/state")
            assert {run["machine"] for run in state["running"] if run["suite"] != "ckks"} == {
                "here"
            }
            machines = {run["machine"] for run in state["timeline"] if run["suite"] == "ckks"}
            assert machines == {APART}
            sizes = {machine["name"]: machine["memory_taken"] for machine in state["machines"]}
            assert sizes[APART] >= stage.plan()["memory_bytes_model"]

    play(act, kind=Elsewhere)


def test_a_queue_that_is_full_refuses_and_tells(play: Play) -> None:
    async def act(stage: Stage) -> None:
        async with stage.client() as client, stage.caller() as caller:
            await caller.notify("digits")
            await stage.executor.granted("prepare")
            with pytest.raises(PeerBusy, match="the queue is full"):
                await client.infer("smooth", [X], terms=TERMS)
        assert stage.lengths() == (0, 0)

    play(act, limits=ServiceLimits(queued=1))


def test_who_left_before_the_process_asked_is_refused(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(stage: Stage) -> None:
        version = stage.service.repository.version("smooth")
        assert version is not None
        model_server = stage.service.model_servers.find(version)
        assert model_server is not None
        session = stage.service.sessions.open("client", model_server)
        stage.service.sessions.close(session)
        orders: list[dict[str, Any]] = []
        monkeypatch.setattr(model_server, "order", lambda **fields: orders.append(fields))
        ask = {"event": "ask", "session": session.number, "work": "keys"}
        stage.service.sessions.on_event(model_server, ask)
        assert orders == [{"session": session.number, "refused": sessions.OVER, "busy": True}]
        assert stage.lengths() == (0, 0)

    play(act)


def test_nobody_waits_until_the_link_seems_dead(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "QUEUE_SECONDS", 0.5)

    async def act(stage: Stage) -> None:
        async with stage.client() as client, stage.caller() as caller:
            await caller.notify("digits")
            await stage.executor.granted("prepare")
            with pytest.raises(PeerBusy, match="the service is full"):
                await client.infer("smooth", [X], terms=TERMS)
            await eventually(lambda: stage.lengths() == (0, 0))

    play(act)


def test_a_client_may_cancel_its_inference_and_nobody_elses(play: Play) -> None:
    async def act(stage: Stage) -> None:
        async with (
            stage.client() as client,
            stage.caller() as caller,
            stage.caller("operator") as other,
        ):
            _, _, inference = await stage.waiting(client, caller)
            updates = await caller.good("GET", "/v2/jobs")
            (request,) = [job["id"] for job in updates["jobs"] if job["kind"] == "request"]
            (keys,) = [job["id"] for job in updates["jobs"] if job["kind"] == "session"]
            assert (await other.call("DELETE", f"/v2/jobs/{request}"))[0] == 404
            # A session is nothing that a request could refer to.
            assert (await caller.call("POST", "/v2/models/smooth/requests", {"notice": keys}))[
                0
            ] in (400, 404)
            await caller.good("DELETE", f"/v2/jobs/{request}")
            assert "cancelled" in str(await failing(inference))
            assert stage.lengths() == (0, 0)

    play(act)


def test_a_lease_that_is_over_ends_a_session_after_its_answer(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "LEASE_SECONDS", 0.5)

    async def act(stage: Stage) -> None:
        async with stage.client() as client, stage.caller() as caller:
            _, job, inference = await stage.waiting(client, caller)
            await asyncio.sleep(1.0)
            stage.executor.finish(job.job)
            assert_right(await inference)
            await eventually(lambda: stage.taken() == (0, stage.plan()["memory_bytes_model"]))

    play(act)


def test_a_drain_lets_an_inference_end_and_takes_no_other(play: Play) -> None:
    async def act(stage: Stage) -> None:
        async with stage.client() as client, stage.caller() as caller:
            _, job, inference = await stage.waiting(client, caller)
            idle = await stage.socket()
            drained = asyncio.create_task(stage.service.drain())
            await asyncio.sleep(0.2)
            stage.executor.fail(job.job, "stopped")
            assert_right(await inference)
            with pytest.raises(PeerError):
                await client.infer("smooth", [X], terms=TERMS)
            async with asyncio.timeout(20):
                await drained
            await idle.close()
            await stage.leave()

    play(act)
