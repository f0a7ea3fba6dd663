"""One prediction, one trace: through the gateway, the service, a worker, and a dealer beside."""

from __future__ import annotations

import base64
import json
import struct
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.e2e.gateways import IMAGES, gateway
from tests.e2e.processes import listening
from tests.e2e.services import put_digits, serving
from tests.e2e.test_commands import DIGITS, key_folder

__all__ = ["key_folder"]

MARKER = 0.7361528
ID = "an-id-that-the-caller-chose"
TRACE = "a1b2c3d4" * 4
PARENT = f"00-{TRACE}-{'e5' * 8}-01"
SPANS = {
    ("privet-gateway", "POST /v2/models/{model}/infer"),
    ("privet-gateway", "predict"),
    ("privet-serve", "POST /v2/models/{model}/requests"),
    *(("privet-serve", name) for name in ("job prepare", "job infer")),
    *(("privet-worker", name) for name in ("offline", "online")),
    *(("privet-gateway", name) for name in ("offline", "online")),
}
"""The spans of each prediction, beside those of its layers."""


def ask(place: str) -> dict[str, Any]:
    """A prediction for an input that holds the marker, by a caller with a trace of its own."""
    image = IMAGES[:1].copy()
    image[0, 0, 0, 0] = MARKER
    tensor = {"name": "input", "datatype": "FP32", "shape": [1, 1, 8, 8]}
    body = {"id": ID, "inputs": [{**tensor, "data": image.ravel().tolist()}]}
    request = urllib.request.Request(
        f"http://{place}/v2/models/digits/infer",
        json.dumps(body).encode(),
        {"traceparent": PARENT, "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.headers["traceparent"] == PARENT
        report: dict[str, Any] = json.load(answer)
        return report


def secrets_of(answer: dict[str, Any], keys: Path) -> list[str]:
    """What must be in no span: input, output, weights and keys, in the ways in which they could
    be."""
    logits = answer["outputs"][0]["data"]
    weights = onnx.numpy_helper.to_array(onnx.load(DIGITS).graph.initializer[0]).ravel()[:4]
    secrets = [
        ID,
        *(line for line in (keys / "client.key").read_text().splitlines() if len(line) > 8),
    ]
    for number in (MARKER, *logits, *weights.tolist()):
        single, fixed = struct.pack("<f", number), struct.pack("<q", round(number * 4096))
        secrets += [repr(float(number)), str(np.float32(number)), single.hex(), fixed.hex()]
        secrets += [base64.b64encode(fixed).decode()[:8], str(round(number * 4096))]
    return [secret for secret in secrets if len(secret) > 5]


def leaks(text: str, secrets: list[str]) -> list[str]:
    """Which of them are in a text."""
    return [secret for secret in secrets if secret in text]


def read(path: Path) -> list[dict[str, Any]]:
    """All spans of a file, each with the name of its service."""
    return [
        {**span, "service": resource["resource"]["attributes"][0]["value"]["stringValue"]}
        for line in path.read_text().splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for span in resource["scopeSpans"][0]["spans"]
    ]


def of_the_trace(spans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of the request's own trace."""
    return [span for span in spans if span["traceId"] == TRACE]


def names_of(spans: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """The services and names of spans."""
    return {(span["service"], span["name"]) for span in spans}


def roots_of(spans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those whose parent is not there."""
    ids = {span["spanId"] for span in spans}
    return [span for span in spans if span["parentSpanId"] not in ids]


def is_complete(path: Path) -> bool:
    """Whether all spans of the trace are there, each but the first with its parent; not while one
    is written."""
    try:
        request_spans = of_the_trace(read(path))
    except json.JSONDecodeError:
        return False
    return names_of(request_spans) >= SPANS and len(roots_of(request_spans)) == 1


def test_a_prediction_is_one_trace_without_a_value(
    tmp_path: Path, key_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    put_digits(tmp_path / "repository")
    path = tmp_path / "spans"
    trace = ("--trace", path)
    with (
        listening("dealer", "--keys", key_folder, *trace) as (_, dealer),
        serving(tmp_path, key_folder, "--dealer", dealer, *trace) as scene,
        gateway(
            scene.address, key_folder, tmp_path / "own", *trace, "--correlations", "dealer"
        ) as front,
    ):
        answer = ask(front.places["rest"])
        # A job's own span ends a moment after the answer, when its worker has said so.
        deadline = time.monotonic() + 20
        while not is_complete(path) and time.monotonic() < deadline:
            time.sleep(0.05)
    log = capfd.readouterr().err
    spans = read(path)
    secrets = secrets_of(answer, key_folder)
    assert leaks(path.read_text() + log, secrets) == []
    assert leaks(json.dumps(answer), secrets), "the search finds what is there"

    deals = [span for span in spans if span["service"] == "privet-dealer"]
    request_spans = of_the_trace(spans)
    assert [span["parentSpanId"] for span in roots_of(request_spans)] == ["e5" * 8]
    assert names_of(request_spans) >= SPANS
    assert len([span for span in request_spans if span["service"] == "privet-worker"]) > 4, (
        "and layers"
    )
    assert [span["name"] for span in deals] == ["deal"]
    link = {"traceId": deals[0]["traceId"], "spanId": deals[0]["spanId"]}
    linked = [span["service"] for span in request_spans if span.get("links") == [link]]
    assert sorted(linked) == ["privet-gateway", "privet-worker"]

    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    traced = {line["source"] for line in lines if line.get("trace_id") == TRACE}
    assert traced >= {"privet.gateway.oip.observe", "privet.service.event_recorder"}
