"""Calls of the control plane: who may, what is refused, and how it is documented."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema
import pytest
from tests.e2e.caller import ServiceCaller, tls
from tests.python.service_control.actors import GIB, Pretender, Scene, eventually, scene

from privet.errors import Misuse
from privet.keys import fingerprint
from privet.service.control.app import make_app
from privet.service.control.identity import Gate, read_tokens
from privet.service.control.routes import ROUTES
from privet.service.executor import ExecutorNode
from privet.service.limits import ServiceLimits

Play = Callable[[Scene, ServiceCaller], Awaitable[None]]


@pytest.fixture
def play(folder: Path, key_folder: Path, program: Path) -> Callable[..., None]:
    """Runs a test's coroutine beside a service, with a caller of a role."""

    def run(act: Play, role: str = "client", **options: Any) -> None:
        async def main() -> None:
            async with (
                scene(folder, key_folder, program, **options) as testbed,
                ServiceCaller(testbed.address, key_folder, folder / role, role) as caller,
            ):
                await act(testbed, caller)

        asyncio.run(main())

    return run


def test_health_and_metadata_are_those_of_the_open_inference_protocol(
    play: Callable[..., None],
) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        assert await caller.good("GET", "/v2") == {
            "name": "privet",
            "version": "0.0",
            "extensions": ["privet"],
        }
        assert await caller.good("GET", "/v2/health/live") == {"live": True}
        assert await caller.good("GET", "/v2/health/ready") == {"ready": True}
        ready = {"name": "digits", "version": "1", "ready": True}
        assert await caller.good("GET", "/v2/models/digits/ready") == ready
        assert await caller.good("GET", "/v2/models/digits/versions/1/ready") == ready
        model = await caller.good("GET", "/v2/models/digits/versions/1")
        assert model["inputs"] == [{"name": "input", "datatype": "FP64", "shape": [1, 1, 8, 8]}]
        assert model["outputs"] == [{"name": "logits", "datatype": "FP64", "shape": [1, 10]}]
        assert await caller.good("GET", "/v2/models/digits") == model
        status, raw = await caller.call("GET", "/v2/models/digits/versions/1/program")
        version = testbed.service.repository.version("digits")
        assert version is not None
        assert (status, raw) == (200, json.loads(version.program.to_public_bytes()))

    play(act)


def test_clients_learn_no_weight_no_profile_and_nothing_of_other_clients(
    play: Callable[..., None], key_folder: Path, folder: Path
) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        testbed.executor.seconds = 0.0
        await caller.notify("digits")
        await eventually(lambda: len(testbed.service.driver.scheduler.material.unused()) == 1)
        async with ServiceCaller(testbed.address, key_folder, folder / "o", "operator") as other:
            model = await other.good("GET", "/v2/models/digits")
            assert model["privet"]["stock"] == {}
            assert (await other.good("GET", "/v2/state"))["stock"] != []
        model = await caller.good("GET", "/v2/models/digits")
        assert sum(model["privet"]["stock"].values()) == 1
        assert set(model["privet"]) == {
            "version", "description", "program", "batch", "ring_bits", "scale_bits",
            "calibration", "client_side", "magnitudes", "input_range", "suites", "operations",
            "stock", "labels", "features",
        }  # fmt: skip
        assert all(set(step) == {"op", "name", "shape"} for step in model["privet"]["operations"])
        (row,) = (await caller.good("GET", "/v2/models"))["models"]
        assert "error" not in row

    play(act)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "part"),
    [
        ("GET", "/v2/models/none", None, 404, "served are digits (GET /v2/models lists them)"),
        ("GET", "/v2/models/digits/versions/7", None, 404, "it has 1"),
        ("GET", "/v2/models/digits/versions/x", None, 400, "versions are numbers"),
        ("GET", "/v2/models/digits/versions/" + "9" * 5000, None, 400, "versions are numbers"),
        ("GET", "/v2/models/digits/versions/%C2%B2", None, 400, "versions are numbers"),
        ("GET", "/nowhere", None, 404, "openapi"),
        ("POST", "/v2", {}, 405, "openapi"),
        ("POST", "/v2/models/digits/requests", {"sweet": "gmw"}, 400, "known are version"),
        ("POST", "/v2/models/digits/requests", {"suite": "x"}, 400, "one of gmw, fss"),
        ("POST", "/v2/models/digits/requests", {"suite": "fss"}, 400, "it serves gmw"),
        ("POST", "/v2/models/digits/requests", {"samples": 0}, 400, "samples is 0"),
        ("POST", "/v2/models/digits/requests", {"timeout": -1}, 400, "timeout is -1"),
        ("POST", "/v2/models/digits/requests", [1], 400, "object"),
        ("POST", "/v2/models/digits/requests", {"notice": "00"}, 404, "no such notice"),
        ("POST", "/v2/models/digits/requests", {"program": "0" * 64}, 409, "is program"),
        ("POST", "/v2/models/none/notices", {}, 404, "no model none"),
        ("GET", "/v2/jobs?wait=1e3", None, 400, "wait"),
        ("GET", "/v2/jobs?weight=1", None, 400, "known are wait, seen"),
        ("GET", "/v2/jobs/00", None, 404, "no such job of yours"),
    ],
)
def test_a_refusal_says_what_is_wrong(
    play: Callable[..., None], method: str, path: str, body: Any, status: int, part: str
) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        code, answer = await caller.call(method, path, body)
        assert (code, part in answer["error"]) == (status, True), answer
        assert set(answer) == {"error", "reason"}

    play(act)


def test_bodies_are_bounded(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        large = {"suite": "x" * 20_000}
        status, answer = await caller.call("POST", "/v2/models/digits/requests", large)
        assert (status, answer["reason"]) == (413, "too large")

    play(act)


def test_only_operators_see_what_is_theirs(
    play: Callable[..., None], key_folder: Path, folder: Path
) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        async with ServiceCaller(testbed.address, key_folder, folder / "o", "operator") as operator:
            for route in ROUTES:
                if route.role == "operator":
                    path = route.path.replace("{machine}", "here")
                    assert (await caller.call(route.method, path))[0] == 403
                    if route.name != "events":
                        status, _ = await operator.call(route.method, path)
                        # The only machine is not drained, and so not taken back.
                        assert status == (409 if "machine" in route.name else 200)

    play(act)


def test_nobody_comes_in_without_a_certificate_of_the_authority(
    play: Callable[..., None], key_folder: Path
) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        bare = ssl.create_default_context(cafile=str(key_folder / "ca.pem"))
        old = tls(key_folder, "client")
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        async with aiohttp.ClientSession() as session:
            for context in (bare, old):
                with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
                    await session.get(f"https://{testbed.address}/v2/health/live", ssl=context)

    play(act)


def test_tokens_come_on_top_of_certificates(play: Callable[..., None], tmp_path: Path) -> None:
    digest = {word: hashlib.sha256(word.encode()).hexdigest() for word in ("apple", "pear")}
    path = tmp_path / "tokens"
    path.write_text(f"# ours\n{digest['apple']} alice\n\n{digest['pear']} olga operator # boss\n")
    tokens = read_tokens(path)

    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        for authorization in ("", "Bearer plum", "Basic apple", "Bearer \u00e9\u20ac"):
            header = {"Authorization": authorization} if authorization else {}
            caller.headers = header
            status, answer = await caller.call("GET", "/v2/health/live")
            assert (status, answer["reason"]) == (401, "no token")
            # A line for each scheme: browsers read no more than one in a line.
            schemes = (await caller.ask("GET", "/v2"))[2].getall("WWW-Authenticate")
            assert [line.split(" ")[0] for line in schemes] == ["Basic", "Bearer"]
        for authorization in ("Bearer apple", "Basic " + base64.b64encode(b"me:apple").decode()):
            caller.headers = {"Authorization": authorization}
            await caller.good("GET", "/v2/models")
        caller.headers = {"Authorization": "Bearer apple"}
        await caller.good("GET", "/v2/models")
        assert (await caller.call("GET", "/metrics"))[0] == 403
        caller.headers = {"Authorization": "bearer pear"}
        assert (await caller.call("GET", "/metrics"))[0] == 200

    play(act, gate=Gate(tokens=tokens))
    path.write_text(f"{digest['apple'][:60]} alice\n")
    with pytest.raises(Misuse, match=r"line 1.*SHA-256"):
        read_tokens(path)
    path.write_text(f"# none\n{hashlib.sha256(b'').hexdigest()} everybody\n")
    with pytest.raises(Misuse, match=r"line 2.*no token"):
        read_tokens(path)


def test_calls_in_a_second_are_bounded_per_client(
    play: Callable[..., None], key_folder: Path, folder: Path
) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        async with ServiceCaller(testbed.address, key_folder, folder / "o", "operator") as other:
            calls = [caller.ask("GET", "/v2") for _ in range(30)]
            answers = await asyncio.gather(*calls)
            refusals = [answer for answer in answers if answer[0] == 429]
            assert 15 <= len(refusals) <= 25
            assert int(refusals[0][2]["Retry-After"]) >= 1
            assert (await other.call("GET", "/v2"))[0] == 200

    play(act, limits=ServiceLimits(calls_per_second=8))


def test_requests_in_a_minute_are_bounded_per_client_and_model(
    play: Callable[..., None], folder: Path
) -> None:
    path = "/v2/models/digits/requests"

    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        codes = [(await caller.call("POST", path, {}))[0] for _ in range(4)]
        assert codes == [202, 202, 202, 429]

    async def model(testbed: Scene, caller: ServiceCaller) -> None:
        answers = [await caller.ask("POST", path, {}) for _ in range(3)]
        assert [answer[0] for answer in answers] == [202, 202, 429]
        assert "of model digits/1" in answers[-1][1]["error"]
        assert 1 <= int(answers[-1][2]["Retry-After"]) <= 6

    async def at_once(testbed: Scene, caller: ServiceCaller) -> None:
        # Ten inferences are ten, whether they come in ten requests or in one.
        assert (await caller.call("POST", path, {"samples": 10}))[0] == 202
        status, _, headers = await caller.ask("POST", path, {})
        assert (status, 20 <= int(headers["Retry-After"]) <= 30) == (429, True)

    play(act, limits=ServiceLimits(requests_per_minute=18))
    play(at_once, limits=ServiceLimits(requests_per_minute=18))
    config = "input_range = [0, 1]\n[limits]\nrequests_per_minute = 12\n"
    (folder / "repository/digits/config.toml").write_text(config)
    play(model)


def test_queues_are_bounded(play: Callable[..., None], folder: Path) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        path = "/v2/models/digits/requests"
        answers = [await caller.ask("POST", path, {}) for _ in range(4)]
        assert [answer[0] for answer in answers] == [202, 202, 202, 429]
        assert "Retry-After" in answers[-1][2]
        notices = [await caller.ask("POST", "/v2/models/digits/notices", {}) for _ in range(1)]
        assert (notices[0][0], notices[0][1]["reason"]) == (429, "notices")

    async def full(testbed: Scene, caller: ServiceCaller) -> None:
        answers = [await caller.ask("POST", "/v2/models/digits/requests", {}) for _ in range(3)]
        assert [(answer[0], answer[1].get("reason")) for answer in answers][1:] == [
            (202, None),
            (503, "full"),
        ]

    config = "input_range = [0, 1]\n[limits]\nqueued_per_client = 3\nnotices_per_client = 0\n"
    (folder / "repository/digits/config.toml").write_text(config)
    play(act)
    play(full, limits=ServiceLimits(queued=2))


def test_long_polls_are_bounded(play: Callable[..., None], key_folder: Path) -> None:
    client = fingerprint(key_folder / "client.pem")

    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        polls = [asyncio.create_task(caller.call("GET", "/v2/jobs?wait=30")) for _ in range(3)]
        async with asyncio.timeout(20):
            while testbed.service.jobs.waiting(client) < 3:
                await asyncio.sleep(0.01)
        status, answer = await caller.call("GET", "/v2/jobs?wait=30")
        assert (status, answer["reason"]) == (429, "long polls")
        for poll in polls:
            poll.cancel()

    play(act, limits=ServiceLimits(long_polls=3))


def test_requests_that_wait_leave_places_to_calls_for_updates(
    play: Callable[..., None], key_folder: Path
) -> None:
    client = fingerprint(key_folder / "client.pem")

    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        async def ask() -> tuple[int, Any]:
            return await caller.call("POST", "/v2/models/digits/requests", {"wait": 30, "seen": 0})

        # All cores are taken: the others have to wait.
        for _ in range(4):
            await caller.request("digits")
        calls = [asyncio.create_task(ask()) for _ in range(2)]
        async with asyncio.timeout(20):
            while testbed.service.jobs.waiting(client) < 2:
                await asyncio.sleep(0.01)
        status, answer = await ask()
        assert (status, "news" in answer) == (202, False)
        assert (await caller.call("GET", "/v2/jobs?wait=0.1"))[0] == 200
        for call in calls:
            call.cancel()

    play(act, limits=ServiceLimits(long_polls=4))


def test_a_drain_refuses_what_is_new_and_ends_what_was_admitted(
    play: Callable[..., None],
) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        id = await caller.request("digits")
        draining = asyncio.create_task(testbed.service.drain())
        await eventually(lambda: testbed.service.draining)
        status, answer, headers = await caller.ask("GET", "/v2/health/ready")
        assert (status, "shutting down" in answer["error"]) == (503, True)
        assert "Retry-After" in headers
        status, answer = await caller.call("POST", "/v2/models/digits/requests", {})
        assert (status, answer["reason"]) == (503, "draining")
        assert not draining.done()
        testbed.executor.finish((await testbed.executor.granted("prepare")).job)
        testbed.executor.finish((await testbed.executor.granted("infer")).job)
        await asyncio.wait_for(draining, 5)
        job = await caller.good("GET", f"/v2/jobs/{id}")
        assert job["outcome"] == "done"

    play(act)


def test_the_document_is_the_router(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        spec = await caller.good("GET", "/openapi.json")
        documented = {
            (method.upper(), path) for path, methods in spec["paths"].items() for method in methods
        }
        app = make_app(testbed.service, Gate())
        routed = {
            (route.method, route.resource.canonical)
            for route in app.router.routes()
            if route.method != "HEAD" and route.resource is not None
        }
        assert documented == routed
        names = [
            operation["operationId"]
            for path in spec["paths"].values()
            for operation in path.values()
        ]
        assert len(set(names)) == len(names)
        status, page = await caller.call("GET", "/docs")
        assert status == 200
        for path, methods in spec["paths"].items():
            for method in methods:
                assert f"{method.upper()}</b> <code>{path}</code>" in page
        assert "<script" not in page

    play(act)


def test_answers_fit_their_schemas(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        id = await caller.request("digits")
        await testbed.executor.granted("prepare")
        values = {"model": "digits", "version": "1", "id": id, "file": "page.css", "machine": "b"}
        for route in ROUTES:
            if route.name in ("events", "session"):  # a stream and a WebSocket
                continue
            path = re.sub(r"\{(\w+)\}", lambda match: values[match[1]], route.path)
            status, answer = await caller.call(route.method, path, {} if route.body else None)
            assert status == route.status, (route.name, answer)
            if isinstance(route.answer, str):
                assert isinstance(answer, str)
            else:
                jsonschema.validate(answer, dict(route.answer))

    nodes = [
        ExecutorNode(name, (core,), GIB, "127.0.0.1") for core, name in enumerate(("here", "b"))
    ]
    play(act, role="operator", executor=Pretender(nodes=nodes))


def test_answers_carry_careful_headers(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        for path in ("/v2", "/nowhere", "/", "/docs", "/assets/page.js"):
            _, _, headers = await caller.ask("GET", path)
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Cache-Control"] == "no-store"
            policy = headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'")
            assert "unsafe" not in policy

    play(act, role="operator")


def test_no_job_shows_another_clients_sequence(
    play: Callable[..., None], key_folder: Path, folder: Path
) -> None:
    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        for _ in range(3):
            await caller.request("digits")
        async with ServiceCaller(testbed.address, key_folder, folder / "o", "operator") as other:
            assert (await other.good("GET", "/v2/jobs"))["sequence"] == 0

    play(act)


def test_a_client_that_goes_while_its_call_waits_listens_no_more(
    play: Callable[..., None], key_folder: Path
) -> None:
    client = fingerprint(key_folder / "client.pem")

    async def act(testbed: Scene, caller: ServiceCaller) -> None:
        ids = [await caller.request("digits") for _ in range(4)]  # all cores are taken
        sequence = (await caller.good("GET", "/v2/jobs"))["sequence"]
        polls = (
            ("GET", f"/v2/jobs?wait=60&seen={sequence}", None),
            ("GET", f"/v2/jobs/{ids[-1]}?wait=60&seen={sequence}", None),
            ("POST", "/v2/models/digits/requests", {"wait": 60}),
        )
        for method, path, body in polls:
            call = asyncio.create_task(caller.call(method, path, body))
            async with asyncio.timeout(20):
                while not testbed.service.jobs.waiting(client):
                    await asyncio.sleep(0.01)
                call.cancel()
                while testbed.service.jobs.waiting(client):
                    await asyncio.sleep(0.01)

    play(act)
