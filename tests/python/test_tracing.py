"""Spans: what is written of them, where, and what never is."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from privet import tracing
from privet.errors import Misuse
from privet.suites.costs import LayerCost, PhaseCost

GIVEN = f"00-{'a1' * 16}-{'b2' * 8}-01"
COST = PhaseCost(0.5, 10, 20, 3, 0.0, bytes_dealer=40)
LAYERS = [LayerCost(name, "Conv", "offline", 0.2, 1, 2, 1) for name in ("first", "second")]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    yield
    tracing.configure(None, "")


def spans(path: Path) -> dict[str, dict[str, Any]]:
    """What a file holds, by name."""
    by_name = {}
    for line in path.read_text().splitlines():
        for resource in json.loads(line)["resourceSpans"]:
            for span in resource["scopeSpans"][0]["spans"]:
                by_name[span["name"]] = span
    return by_name


def test_spans_are_a_tree_and_steps_lie_in_their_phase(tmp_path: Path) -> None:
    path = tmp_path / "spans"
    tracing.configure(str(path), "privet-test")
    with tracing.span("predict", parent=GIVEN, model="digits") as outer:
        tracing.steps("offline", COST, LAYERS, "c3" * 16)
        assert tracing.current() == str(outer.context)
    assert tracing.current() is None
    by_name = spans(path)
    assert {span["traceId"] for span in by_name.values()} == {"a1" * 16}
    assert by_name["predict"]["parentSpanId"] == "b2" * 8
    assert by_name["offline"]["parentSpanId"] == by_name["predict"]["spanId"]
    first, second = by_name["first"], by_name["second"]
    assert first["parentSpanId"] == second["parentSpanId"] == by_name["offline"]["spanId"]
    assert first["endTimeUnixNano"] == second["startTimeUnixNano"]
    assert int(by_name["offline"]["startTimeUnixNano"]) == int(first["startTimeUnixNano"])
    assert by_name["offline"]["links"] == [{"traceId": "c3" * 16, "spanId": "c3" * 8}]
    facts = {attribute["key"]: attribute["value"] for attribute in by_name["predict"]["attributes"]}
    assert facts == {"privet.model": {"stringValue": "digits"}}
    assert path.stat().st_mode & 0o077 == 0


def test_a_span_takes_no_fact_but_those_of_the_list(tmp_path: Path) -> None:
    path = tmp_path / "spans"
    tracing.configure(str(path), "privet-test")
    marker = "0.7361528"
    with pytest.raises(Misuse), tracing.span("predict", input=marker):
        pass
    with pytest.raises(Misuse), tracing.span("predict") as span:
        span.add(outcome=[marker])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=marker), tracing.span("failed"):
        raise ValueError(f"a message that quotes a peer: {marker}")
    assert spans(path)["failed"]["status"] == {"code": 2, "message": "ValueError"}
    assert marker not in path.read_text()
    # The control: a marker in a fact that is allowed is found by the same search.
    with tracing.span("predict", outcome=marker):
        pass
    assert marker in path.read_text()


@pytest.mark.parametrize(
    "parent",
    ["", "secret", GIVEN.replace("a1", "00"), GIVEN.replace("b2", "00"), "ff" + GIVEN[2:]],
)
def test_what_is_no_traceparent_begins_a_trace(tmp_path: Path, parent: str) -> None:
    path = tmp_path / "spans"
    tracing.configure(str(path), "privet-test")
    with tracing.span("predict", parent=parent):
        assert parent not in ("secret",) or "secret" not in str(tracing.current())
    span = spans(path)["predict"]
    assert "parentSpanId" not in span
    assert set(span["traceId"]) != {"0"}


def test_a_caller_that_samples_nothing_has_nothing_written(tmp_path: Path) -> None:
    path = tmp_path / "spans"
    tracing.configure(str(path), "privet-test")
    with tracing.span("predict", parent=GIVEN[:-2] + "00"):
        tracing.steps("offline", COST, LAYERS)
        assert str(tracing.current()).endswith("-00")
    assert path.read_text() == ""


def test_ids_are_passed_on_where_nothing_is_written() -> None:
    with tracing.span("predict", parent=GIVEN):
        assert tracing.headers() == {"traceparent": GIVEN}
        assert tracing.ids() == {"trace_id": "a1" * 16, "span_id": "b2" * 8}
    with tracing.span("predict"):
        assert tracing.headers() == {}


@contextmanager
def collector(status: int) -> Iterator[tuple[str, list[tuple[str, dict[str, str], Any]]]]:
    """A collector that answers so, and what it was sent."""
    posts: list[tuple[str, dict[str, str], Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            posts.append((self.path, dict(self.headers), body))
            self.send_response(status)
            self.send_header("Location", "http://192.0.2.1/")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", posts
        server.shutdown()


def test_a_collector_gets_what_a_process_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20x, tenant=hospital,")
    with collector(200) as (url, posts):
        tracing.configure(url, "privet-test")
        for _ in range(3):
            with tracing.span("predict"):
                pass
        tracing.flush()
        names = [
            span["name"]
            for _, _, body in posts
            for span in body["resourceSpans"][0]["scopeSpans"][0]["spans"]
        ]
        assert names == ["predict"] * 3
        path, headers, body = posts[0]
        assert (path, headers["tenant"], headers["Authorization"]) == (
            "/v1/traces",
            "hospital",
            "Bearer x",
        )
        resource = body["resourceSpans"][0]["resource"]["attributes"]
        assert resource[0] == {"key": "service.name", "value": {"stringValue": "privet-test"}}
        assert resource[1]["value"] == {"intValue": str(os.getpid())}


@pytest.mark.parametrize(
    ("header", "place"),
    [("a=1,secret", 2), ("a b=secret", 1), ("a=1,b=se%0Acret", 2), ("=secret", 1)],
)
def test_header_lines_that_cannot_be_sent_are_refused(
    header: str, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", header)
    with pytest.raises(Misuse, match=f"number {place} in OTEL_EXPORTER_OTLP_HEADERS") as excinfo:
        tracing.configure("http://127.0.0.1:1", "privet-test")
    assert "cret" not in str(excinfo.value)


@pytest.mark.parametrize("status", [302, 503, None])
def test_a_collector_that_takes_nothing_holds_nobody_up(status: int | None) -> None:
    with collector(status or 200) as (url, posts):
        tracing.configure("http://127.0.0.1:9" if status is None else url, "privet-test")
        start = time.monotonic()
        with tracing.span("predict"):
            pass
        assert time.monotonic() - start < 2
        tracing.flush()
        assert time.monotonic() - start < 8
        assert len(posts) == (0 if status is None else 1)


@pytest.mark.parametrize(
    "target",
    [
        "http://collector.example.org:4318",
        "https://",
        "http://192.0.2.1:4318",
        "https://a:99999",
        "https://[::1",
    ],
)
def test_spans_leave_this_machine_over_tls_alone(target: str) -> None:
    with pytest.raises(Misuse):
        tracing.configure(target, "privet-test")
    tracing.configure("https://collector.example.org:4318", "privet-test")


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="cannot be written"):
        tracing.configure(str(tmp_path / "absent" / "spans"), "privet-test")
