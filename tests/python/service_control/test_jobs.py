"""Notices and requests through HTTP, over an executor that pretends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.caller import ServiceCaller
from tests.python.service_control.actors import Pretender, Scene, entry, eventually, scene

from privet.errors import Misuse
from privet.keys import fingerprint
from privet.runtime.revocation import Revoked
from privet.scheduler import Limits
from privet.service import service as module
from privet.service.driver import LEAST_GRACE
from privet.service.executor import ExecutorNode, MachineEvent

Play = Callable[[Scene, ServiceCaller], Awaitable[None]]


@pytest.fixture
def play(folder: Path, key_folder: Path, program: Path) -> Callable[..., None]:
    """Runs a test's coroutine beside a service, with a client of it."""

    def run(act: Play, **options: Any) -> None:
        async def main() -> None:
            async with (
                scene(folder, key_folder, program, **options) as testbed,
                ServiceCaller(testbed.address, key_folder, folder / "client") as caller,
            ):
                await act(testbed, caller)

        asyncio.run(main())

    return run


async def until(caller: ServiceCaller, id: str, state: str) -> dict[str, Any]:
    """Polls a job until it is in a state."""
    sequence = 0
    async with asyncio.timeout(10):
        while True:
            job: dict[str, Any] = await caller.good("GET", f"/v2/jobs/{id}?wait=5&seen={sequence}")
            if job["state"] == state:
                return job
            sequence = job["sequence"]


def test_a_request_is_told_to_prepare_and_then_to_infer(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        id = await caller.request("digits")
        job = await until(caller, id, "preparing")
        (go,) = job["go"]
        # What ranges rest on is written down with the job.
        assert job["calibration"] == "random"
        grant = (await testbed.executor.granted("prepare")).grant
        assert (go["job"], go["phase"], go["material"]) == (grant.job, "prepare", None)
        assert (go["host"], go["port"], go["server_name"]) == ("127.0.0.1", 7400, "localhost")
        assert (grant.suite, grant.program) == (go["suite"], job["program"])
        assert set(grant.cores) <= {0, 1}
        testbed.executor.finish(grant.job, material="a" * 32)
        job = await until(caller, id, "inferring")
        assert [(go["phase"], go["material"]) for go in job["go"]] == [("infer", "a" * 32)]
        testbed.executor.finish(job["go"][0]["job"])
        job = await until(caller, id, "ended")
        assert (job["outcome"], job["done"], job["go"]) == ("done", 1, [])

    play(act)


def test_a_notice_makes_stock_that_its_request_uses(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        notice = await caller.notify("digits", rounds="log")
        testbed.executor.finish((await testbed.executor.granted("prepare")).job, material="b" * 32)
        ready = await until(caller, notice, "prepared")
        assert (ready["outcome"], ready["done"]) == ("done", 1)
        model = await caller.good("GET", "/v2/models/digits")
        assert model["privet"]["stock"] == {told_label(testbed): 1}
        id = await caller.request("digits", notice=notice)
        job = await until(caller, id, "inferring")
        assert job["rounds"] == "log"
        assert job["go"][0]["material"] == "b" * 32
        assert (await caller.good("GET", f"/v2/jobs/{notice}"))["state"] == "ended"
        assert (await caller.good("GET", "/v2/models/digits"))["privet"]["stock"] == {}
        status, answer = await caller.call("POST", "/v2/models/digits/requests", {"notice": notice})
        assert (status, answer["reason"]) == (409, "used notice")

    play(act)


def told_label(testbed: Scene) -> str:
    """The label of the latest grant."""
    return next(reversed(testbed.executor.jobs.values())).grant.suite


def test_a_call_that_is_sent_again_finds_its_job(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        path = "/v2/models/digits/requests"
        body = {"key": "call-1", "timeout": 60.0}
        first = await caller.call("POST", path, body)
        repeat = await caller.call("POST", path, body)
        assert first[0] == repeat[0] == 202
        assert first[1]["id"] == repeat[1]["id"]
        assert len(testbed.service.jobs.live()) == 1
        other = await caller.call("POST", path, {"key": "call-2"})
        assert other[1]["id"] != first[1]["id"]
        status, answer = await caller.call("POST", "/v2/models/digits/notices", {"key": "call-1"})
        assert (status, answer["reason"]) == (409, "key")

    play(act)


def test_a_key_is_its_clients_own(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        id = await caller.request("digits", key="call-1")
        assert testbed.service.jobs.keyed("ab" * 32, "call-1") is None
        job = testbed.service.jobs.find(id)
        assert job is not None
        assert testbed.service.jobs.keyed(job.client, "call-1") is job

    play(act)


def test_a_batch_runs_as_several_jobs(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        testbed.executor.seconds = 0.01
        id = await caller.request("digits", samples=3)
        job = await until(caller, id, "ended")
        assert (job["outcome"], job["done"]) == ("done", 3)
        assert len(testbed.executor.jobs) == 6

    play(act)


def test_a_client_sees_and_cancels_its_own_jobs_only(
    play: Callable[..., None], key_folder: Path, folder: Path
) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        id = await caller.request("digits")
        async with ServiceCaller(
            testbed.address, key_folder, folder / "other", "operator"
        ) as other:
            for method in ("GET", "DELETE"):
                status, answer = await other.call(method, f"/v2/jobs/{id}")
                unknown = await other.call(method, "/v2/jobs/0000")
                assert (status, answer) == unknown
                assert status == 404
            assert (await other.good("GET", "/v2/jobs"))["jobs"] == []
            status, answer = await other.call("POST", "/v2/models/digits/requests", {"notice": id})
            assert status == 404
        await testbed.executor.granted("prepare")
        await caller.good("DELETE", f"/v2/jobs/{id}")
        job = await until(caller, id, "ended")
        assert job["outcome"] == "cancelled"

    play(act)


def test_a_job_whose_client_was_revoked_is_told_apart_from_one_that_was_cancelled(
    play: Callable[..., None], key_folder: Path, tmp_path: Path
) -> None:
    revoked = tmp_path / "revoked"
    revoked.write_text("")

    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        id = await caller.request("digits")
        await testbed.executor.granted("prepare")
        revoked.write_text(fingerprint(key_folder / "client.pem"))
        job = await until(caller, id, "ended")
        assert (job["outcome"], job["reason"]) == ("cancelled", "this certificate was revoked")

    play(act, revoked=Revoked(revoked))


@pytest.mark.parametrize(
    ("failure", "words"),
    [("absent", "did not come"), ("failed", "so it was told"), ("timed out", "longer than")],
)
def test_a_job_that_fails_for_its_client_fails_its_request(
    play: Callable[..., None], failure: str, words: str
) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        id = await caller.request("digits")
        testbed.executor.fail((await testbed.executor.granted("prepare")).job, failure)
        job = await until(caller, id, "ended")
        assert job["outcome"] == "failed"
        assert words in job["reason"]

    play(act)


@pytest.mark.parametrize("failure", ["absent", "stopped"])
def test_a_client_that_does_not_come_has_less_time_the_next_time(
    play: Callable[..., None], failure: str
) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        graces = []
        for _ in range(3):
            id = await caller.request("digits")
            job = await until(caller, id, "preparing")
            preparation = await testbed.executor.granted("prepare")
            assert job["go"][0]["grace"] == preparation.grant.grace
            graces.append(preparation.grant.grace)
            testbed.executor.fail(preparation.job, failure)
            await until(caller, id, "ended")
        assert graces == [5.0, 2.5, LEAST_GRACE]
        # Whoever comes has all the time again; also who came and failed loses none.
        id = await caller.request("digits")
        await until(caller, id, "preparing")
        testbed.executor.finish((await testbed.executor.granted("prepare")).job)
        await until(caller, id, "inferring")
        infer = await testbed.executor.granted("infer")
        assert infer.grant.grace == 5.0
        testbed.executor.fail(infer.job, failure, seconds=0.1)
        await until(caller, id, "ended")
        id = await caller.request("digits")
        await until(caller, id, "preparing")
        assert (await testbed.executor.granted("prepare")).grant.grace == 5.0

    play(act, bounds=Limits(absent_seconds=30.0))


def test_a_crash_runs_the_job_again_on_fresh_material(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        id = await caller.request("digits")
        testbed.executor.finish((await testbed.executor.granted("prepare")).job, material="c" * 32)
        first = await testbed.executor.granted("infer")
        testbed.executor.fail(first.job, "crashed")
        repeat = await testbed.executor.granted("prepare")
        testbed.executor.finish(repeat.job, material="d" * 32)
        second = await testbed.executor.granted("infer")
        assert second.grant.material == "d" * 32
        testbed.executor.finish(second.job)
        assert (await until(caller, id, "ended"))["outcome"] == "done"

    play(act)


def test_too_little_memory_is_learned_from(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        await caller.request("digits")
        first = await testbed.executor.granted("prepare")
        testbed.executor.fail(first.job, "over memory")
        second = await testbed.executor.granted("prepare")
        assert second.grant.memory >= 2 * first.grant.memory

    play(act)


def test_material_that_its_client_did_not_come_for_is_given_up(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        await caller.request("digits")
        testbed.executor.finish((await testbed.executor.granted("prepare")).job, material="e" * 32)
        testbed.executor.fail(
            (await testbed.executor.granted("infer")).job, "absent", keeps_material=True
        )
        id = await caller.request("digits")
        job = await until(caller, id, "preparing")
        assert job["go"][0]["material"] is None

    play(act)


def test_a_lost_machine_takes_its_material_along(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        notice = await caller.notify("digits")
        testbed.executor.finish((await testbed.executor.granted("prepare")).job)
        await until(caller, notice, "prepared")
        await testbed.executor.pending.put(MachineEvent("lost", testbed.executor.nodes[0]))
        job = await until(caller, notice, "ended")
        assert "machine lost" in job["reason"]
        status, answer = await caller.call("GET", "/v2/health/ready")
        assert (status, "machine" in answer["error"]) == (503, True)
        testbed.executor.store.clear()
        await testbed.executor.pending.put(
            MachineEvent("joined", ExecutorNode("b", (7,), 2**32, "127.0.0.2"))
        )
        await caller.request("digits")
        assert (await testbed.executor.granted("prepare")).grant.cores == (7,)

    play(act)


def test_material_expires_and_is_deleted(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        notice = await caller.notify("digits")
        testbed.executor.finish((await testbed.executor.granted("prepare")).job, material="f" * 32)
        await until(caller, notice, "prepared")
        assert "expired" in (await until(caller, notice, "ended"))["reason"]
        await eventually(lambda: testbed.executor.discarded == ["f" * 32])

    play(act, bounds=Limits(material_seconds=0.3))


def test_material_that_went_meanwhile_is_made_anew(
    play: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SWEEP_SECONDS", 0.1)

    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        notice = await caller.notify("digits")
        testbed.executor.finish((await testbed.executor.granted("prepare")).job, material="3" * 32)
        await until(caller, notice, "prepared")
        testbed.executor.store.clear()
        assert "deleted" in (await until(caller, notice, "ended"))["reason"]
        id = await caller.request("digits", notice=notice)
        testbed.executor.finish((await testbed.executor.granted("prepare")).job, material="4" * 32)
        job = await until(caller, id, "inferring")
        assert job["go"][0]["material"] == "4" * 32

    play(act)


def test_a_timeout_ends_a_request(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        id = await caller.request("digits", timeout=0.2)
        job = await until(caller, id, "ended")
        assert job["outcome"] == "timed out"
        assert "its timeout of 0.2 s, queues included: a longer one" in job["reason"]

    play(act)


def test_jobs_of_an_earlier_process_failed_and_profiles_are_kept(
    play: Callable[..., None],
) -> None:
    ids = []

    async def first(testbed: Scene, caller: ServiceCaller) -> None:
        ids.append(await caller.request("digits"))
        testbed.executor.finish((await testbed.executor.granted("prepare")).job, seconds=77.0)
        await testbed.executor.granted("infer")

    async def second(testbed: Scene, caller: ServiceCaller) -> None:
        job = await caller.good("GET", f"/v2/jobs/{ids[0]}")
        assert (job["state"], job["outcome"]) == ("ended", "failed")
        assert "restarted" in job["reason"]
        rows = testbed.service.profiles.rows()
        assert [row["seconds"] for row in rows if row["phase"] == "pre"] == [77.0]

    play(first)
    play(second)


def test_stock_of_an_earlier_process_is_used_and_strange_entries_are_deleted(
    play: Callable[..., None],
) -> None:
    values: dict[str, Any] = {}

    async def first(testbed: Scene, caller: ServiceCaller) -> None:
        values["notice"] = await caller.notify("digits")
        values["grant"] = (await testbed.executor.granted("prepare")).grant
        testbed.executor.finish(values["grant"].job, material="1" * 32)
        await until(caller, values["notice"], "prepared")

    async def second(testbed: Scene, caller: ServiceCaller) -> None:
        assert testbed.executor.discarded == ["2" * 32]
        id = await caller.request("digits", notice=values["notice"])
        job = await until(caller, id, "inferring")
        assert job["go"][0]["material"] == "1" * 32

    play(first)
    grant = values["grant"]
    entries = [entry("1" * 32, grant), entry("2" * 32, grant, program="0" * 64)]
    play(second, executor=Pretender(store={record.id: record for record in entries}))


def test_a_copied_store_serves_once(play: Callable[..., None]) -> None:
    """The pretender tells of the same store on both machines."""

    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        notice = await caller.notify("digits")
        testbed.executor.finish((await testbed.executor.granted("prepare")).job, material="1" * 32)
        await until(caller, notice, "prepared")
        await testbed.executor.pending.put(
            MachineEvent("joined", ExecutorNode("b", (7,), 2**32, "127.0.0.2"))
        )
        await eventually(lambda: testbed.executor.discarded == ["1" * 32])
        assert len(testbed.service.driver.scheduler.material.unused()) == 1

    play(act)


def test_two_services_do_not_share_a_state_directory(
    folder: Path, key_folder: Path, program: Path, play: Callable[..., None]
) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        with pytest.raises(Misuse, match="another service"):
            async with scene(folder, key_folder, program):
                pass

    play(act)


def test_the_list_that_an_older_version_kept_beside_the_stores_goes(
    folder: Path, play: Callable[..., None]
) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        assert not list((folder / "state").glob("ledger*"))

    (folder / "state").mkdir()
    for name in ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite.lock"):
        (folder / "state" / name).write_bytes(b"of version 0.2.0")
    play(act)


def test_a_request_that_waits_is_told_when_to_come(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        answer = await caller.good("POST", "/v2/models/digits/requests", {"wait": 10})
        assert answer["news"]["sequence"] >= answer["sequence"]
        (job,) = answer["news"]["jobs"]
        assert (job["id"], job["go"][0]["phase"]) == (answer["id"], "prepare")
        # The end of the preparation is told with what follows from it, and not by itself.
        path = f"/v2/jobs?wait=10&seen={answer['news']['sequence']}"
        task = asyncio.create_task(caller.good("GET", path))
        testbed.executor.finish(job["go"][0]["job"], material="a" * 32)
        (job,) = (await task)["jobs"]
        assert (job["state"], [go["phase"] for go in job["go"]]) == ("inferring", ["infer"])
        # A request that nobody can come to yet is answered when its time is over.
        brief = await caller.good("POST", "/v2/models/digits/requests", {"wait": 0.1, "seen": 0})
        assert {record["id"] for record in brief["news"]["jobs"]} >= {job["id"], brief["id"]}

    play(act)


def test_a_job_is_cancelled_by_the_key_of_its_call(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        id = await caller.request("digits", key="b" * 32)
        assert (await caller.call("DELETE", f"/v2/jobs/{'c' * 32}"))[0] == 404
        assert (await caller.good("DELETE", f"/v2/jobs/{'b' * 32}"))["id"] == id
        assert (await until(caller, id, "ended"))["outcome"] == "cancelled"

    play(act)


def test_calls_for_updates_wait_and_tell_each_change_once(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        quiet = await caller.good("GET", "/v2/jobs?wait=0.1")
        assert quiet == {"sequence": 0, "jobs": []}
        task = asyncio.create_task(caller.good("GET", "/v2/jobs?wait=10"))
        await asyncio.sleep(0.1)
        assert not task.done()
        id = await caller.request("digits")
        updates = await task
        assert [job["id"] for job in updates["jobs"]] == [id]
        await until(caller, id, "preparing")
        sequence = (await caller.good("GET", "/v2/jobs"))["sequence"]
        assert (await caller.good("GET", f"/v2/jobs?seen={sequence}"))["jobs"] == []
        # A count of another life of the service: all is told again.
        assert len((await caller.good("GET", "/v2/jobs?seen=999"))["jobs"]) == 1

    play(act)
