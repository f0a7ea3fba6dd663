"""The REST endpoint by itself: whom it answers, what it takes in, what it tells of mistakes."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import logging
from typing import Any, cast

import numpy as np
import pytest
from aiohttp import ClientResponse
from aiohttp.test_utils import TestClient, TestServer

from privet.errors import (
    InputError,
    JobFailed,
    LinkError,
    MaterialError,
    Misuse,
    PeerBusy,
    PeerMisbehaved,
    PrivetError,
    Short,
)
from privet.gateway.calls import NotThere
from privet.gateway.endpoint import EndpointKeys, check_place
from privet.gateway.oip.exchange import Exchange, InferenceRequest, InferenceResponse
from privet.gateway.oip.faults import fault
from privet.gateway.oip.observe import Observer
from privet.gateway.oip.rest import application
from privet.logs import JsonLines

MOST_BYTES = 1 << 16

INFER = "/v2/models/m/infer"
BODY = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [0.5, 0.25]}]}


class Echo:
    """Answers with its input, or does what it is told to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.observer = Observer()
        self._error = error
        self.asked: list[InferenceRequest] = []

    async def infer(self, question: InferenceRequest) -> InferenceResponse:
        self.asked.append(question)
        if self._error is not None:
            raise self._error
        outputs = {"y": ("FP32", question.inputs["x"]), "z": ("INT64", np.array([3]))}
        return InferenceResponse(question.model, "1", question.id, outputs)


def ask(exchange: Echo, **request: Any) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of what the endpoint answers to a POST."""

    async def call() -> tuple[int, dict[str, str], bytes]:
        app = application(cast(Exchange, exchange), MOST_BYTES)
        async with TestClient(TestServer(app)) as client:
            answer: ClientResponse = await client.post(INFER, **request)
            return answer.status, dict(answer.headers), await answer.read()

    return asyncio.run(call())


def test_pages_in_a_browser_are_refused() -> None:
    exchange = Echo()
    status, _, body = ask(exchange, json=BODY, headers={"Origin": "http://127.0.0.1:8000"})
    assert (status, "browser" in json.loads(body)["error"]) == (403, True)
    assert not exchange.asked


def test_a_call_is_logged_and_counted_with_its_trace() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    log = logging.getLogger("privet.gateway.oip.observe")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    exchange = Echo()
    trace = f"00-{'a1' * 16}-{'b2' * 8}-01"
    try:
        status, headers, _ = ask(exchange, json=BODY, headers={"traceparent": trace})
        assert (status, headers["traceparent"]) == (200, trace)
        assert "traceparent" not in ask(exchange, json=BODY, headers={"traceparent": "secret"})[1]
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["route"], first["status"]) == ("/v2/models/{model}/infer", 200)
    assert first["trace_id"] == "a1" * 16
    assert "trace_id" not in second
    assert "secret" not in stream.getvalue()
    ask(Echo(), json=BODY)
    exchange.observer.models["m"].add(0.5, is_done=True)
    text = exchange.observer.metrics()
    calls = 'privet_gateway_calls_total{route="/v2/models/{model}/infer",status="200"} 2'
    assert calls in text
    assert 'privet_gateway_requests_total{model="m",outcome="done"} 1' in text
    assert 'privet_gateway_request_seconds_total{model="m",outcome="done"} 0.5' in text


def test_a_body_that_is_not_as_it_says_is_the_callers_mistake() -> None:
    whole = gzip.compress(json.dumps(BODY).encode())
    for data in (b"no gzip at all", whole[:20] + b"XXXX" + whole[24:]):
        exchange = Echo()
        status, _, body = ask(exchange, data=data, headers={"Content-Encoding": "gzip"})
        assert (status, exchange.asked) == (400, [])
        assert json.loads(body)["error"]
    assert ask(Echo(), data=whole, headers={"Content-Encoding": "gzip"})[0] == 200
    plain = json.dumps(BODY).encode()
    for encoding, data in (("br", whole), ("x-none", plain), ("gzip, gzip", gzip.compress(whole))):
        exchange = Echo()
        status, _, body = ask(exchange, data=data, headers={"Content-Encoding": encoding})
        assert (status, exchange.asked) == (400, [])
        assert "gzip or deflate" in json.loads(body)["error"]


def test_bodies_are_bounded_also_when_they_are_compressed() -> None:
    exchange = Echo()
    assert ask(exchange, data=bytes(2 * MOST_BYTES))[0] == 413
    bomb = gzip.compress(bytes(2 * MOST_BYTES))
    assert len(bomb) < MOST_BYTES
    assert ask(exchange, data=bomb, headers={"Content-Encoding": "gzip"})[0] == 413
    assert not exchange.asked


def test_outputs_come_as_each_is_asked_for() -> None:
    body = BODY | {
        "parameters": {"binary_data_output": True},
        "outputs": [{"name": "y"}, {"name": "z", "parameters": {"binary_data": False}}],
    }
    status, headers, raw = ask(Echo(), json=body)
    length = int(headers["Inference-Header-Content-Length"])
    answer = json.loads(raw[:length])
    assert status == 200
    assert answer["outputs"][0] == {
        "name": "y",
        "datatype": "FP32",
        "shape": [2],
        "parameters": {"binary_data_size": 8},
    }
    assert answer["outputs"][1]["data"] == [3]
    assert np.frombuffer(raw[length:], "<f4").tolist() == [0.5, 0.25]


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("x", "the body has"),
        ("-1", "the body has"),
        ("1000", "the body has"),
        ("2", "no JSON"),
        ("²", "the body has"),
        ("9" * 5000, "the body has"),
    ],
)
def test_lengths_of_the_header_that_cannot_be(header: str, problem: str) -> None:
    status, _, body = ask(
        Echo(), data=json.dumps(BODY), headers={"Inference-Header-Content-Length": header}
    )
    assert (status, problem in json.loads(body)["error"]) == (400, True)


def test_bytes_that_belong_to_nothing_are_refused() -> None:
    text = json.dumps(BODY).encode()
    headers = {"Inference-Header-Content-Length": str(len(text))}
    status, _, body = ask(Echo(), data=text + b"more", headers=headers)
    assert (status, "4 bytes follow" in json.loads(body)["error"]) == (400, True)


def test_mistakes_tell_nothing_of_inputs(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        status, _, body = ask(Echo(RuntimeError("the input is 0.5, 0.25")), json=BODY)
    assert status == 500
    assert "0.25" not in caplog.text + body.decode()
    (mistake,) = [record for record in caplog.records if record.getMessage() == "a call failed"]
    assert "RuntimeError" in vars(mistake)["trace"]
    assert "0.25" not in vars(mistake)["trace"]


def test_a_shortage_is_told_and_not_called_a_mistake() -> None:
    for error in (OSError(24, "Too many open files", "/secret"), PrivetError("x (os error 24)")):
        status, _, body = ask(Echo(error), json=BODY)
        message = json.loads(body)["error"]
        assert (status, "open files" in message, "secret" in message) == (503, True, False)


FAILED = JobFailed("m", job="j", outcome="failed", reason="r")
LATE = JobFailed("m", job="j", outcome="timed out", reason="r")


@pytest.mark.parametrize(
    ("error", "http", "code"),
    [
        (NotThere("m"), 404, "NOT_FOUND"),
        (Misuse("m"), 400, "INVALID_ARGUMENT"),
        (InputError("m"), 400, "INVALID_ARGUMENT"),
        (PeerBusy("m"), 503, "RESOURCE_EXHAUSTED"),
        (Short("m"), 503, "RESOURCE_EXHAUSTED"),
        (LinkError("m"), 503, "UNAVAILABLE"),
        (LATE, 504, "DEADLINE_EXCEEDED"),
        (FAILED, 502, "INTERNAL"),
        (MaterialError("m"), 502, "INTERNAL"),
        (PeerMisbehaved("m"), 502, "INTERNAL"),
    ],
)
def test_every_error_has_a_status_in_both_protocols(
    error: PrivetError, http: int, code: str
) -> None:
    mapped = fault("call", error)
    assert (mapped.http, mapped.grpc.name, mapped.message) == (http, code, "m")
    status, _, body = ask(Echo(error), json=BODY)
    assert (status, json.loads(body)) == (http, {"error": "m"})


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "10.0.0.1", "example.org", ""])
def test_other_machines_need_tls(host: str) -> None:
    with pytest.raises(Misuse, match="not this machine alone"):
        check_place(host, None)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_this_machine_needs_none(host: str) -> None:
    check_place(host, None)


def test_tls_files_that_are_none(tmp_path: Any) -> None:
    with pytest.raises(Misuse, match="cannot be used"):
        EndpointKeys(tmp_path / "gone.pem", tmp_path / "gone.key").context()
