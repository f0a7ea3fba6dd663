"""Traces of predictions: one trace from a client, through gateway and service, to the worker.

A trace is a tree of spans: a name, when it began and ended, and a few facts. Its id and the id of
the span that a call comes from go along as a `traceparent` (W3C Trace Context): in HTTP headers and
in grants of jobs. Spans are written in the JSON encoding of OpenTelemetry's protocol, either as
lines of a file, which a collector reads, or by POST to a collector (OTLP/HTTP). No library is
needed for that; `docs/decisions/traces.md` says why none is used.

Nothing is written until `configure` is called. Ids that somebody else sent are passed on and logged
all the same.

No span holds a value, an input, a weight or a secret: only facts named in `FACTS` are taken, whose
values are numbers, or words of Privet and names from the public half of a program. Of an error a
span has the type alone, since a message may quote a peer.
"""

from __future__ import annotations

import atexit
import ipaddress
import json
import logging
import os
import queue
import re
import secrets
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import unquote, urlsplit

from privet.errors import Misuse

HEADER = "traceparent"

FACTS = frozenset({
    "bytes_client", "bytes_dealer", "bytes_server", "cores", "failure", "job", "machine", "model",
    "operator", "outcome", "phase", "rounds", "samples", "status", "suite", "version", "waited",
})  # fmt: skip
"""What a span may say. In a trace each is called `privet.` and its name."""

_FACT = (str, int, float, type(None))

TEXT = 200
"""The longest text of a fact; the rest is cut off."""

Kind = Literal["internal", "server", "client"]
_KINDS = {"internal": 1, "server": 2, "client": 3}

BATCH = 512
EVERY_SECONDS = 1.0
MOST_WAITING = 10_000
"""Spans that wait for a collector; further ones are dropped, and logged."""

SEND_SECONDS = 5.0

_PARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})"
)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t -~]*")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SpanContext:
    """Where in which trace something happens: ids in hexadecimal."""

    trace: str
    span: str
    sampled: bool = True

    def __str__(self) -> str:
        return f"00-{self.trace}-{self.span}-{int(self.sampled):02d}"

    def below(self) -> SpanContext:
        """A span of the same trace."""
        return SpanContext(self.trace, secrets.token_hex(8), self.sampled)


class Cost(Protocol):
    """What a phase of a protocol took, as reports have it."""

    @property
    def seconds(self) -> float: ...
    @property
    def bytes_client(self) -> int: ...
    @property
    def bytes_server(self) -> int: ...
    @property
    def bytes_dealer(self) -> int: ...
    @property
    def rounds(self) -> int: ...


class Step(Cost, Protocol):
    """What a step of a phase took."""

    @property
    def name(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def phase(self) -> str: ...


@dataclass
class Span:
    """A span that has begun. `links` are traces that it has to do with: names of material."""

    context: SpanContext
    parent: str | None
    name: str
    kind: Kind
    start: int
    facts: dict[str, Any] = field(default_factory=dict)
    links: list[str] = field(default_factory=list)
    error: str | None = None

    def add(self, **facts: str | float | None) -> None:
        """Says more; a fact of None is left out. Raises `Misuse` if a fact is not among `FACTS`, or
        of another type."""
        for name, value in facts.items():
            if name not in FACTS or not isinstance(value, _FACT):
                raise Misuse(f"a span says nothing of {name}")
            if value is not None:
                self.facts[name] = value[:TEXT] if isinstance(value, str) else value

    def document(self, end: int) -> dict[str, Any]:
        """As OpenTelemetry's JSON has it."""
        document: dict[str, Any] = {
            "traceId": self.context.trace,
            "spanId": self.context.span,
            "name": self.name,
            "kind": _KINDS[self.kind],
            "startTimeUnixNano": str(self.start),
            "endTimeUnixNano": str(max(self.start, end)),
            "attributes": [
                _attribute(f"privet.{name}", value) for name, value in self.facts.items()
            ],
        }
        if self.parent is not None:
            document["parentSpanId"] = self.parent
        if self.links:
            document["links"] = [
                {"traceId": link.trace, "spanId": link.span} for link in map(deal, self.links)
            ]
        if self.error is not None:
            document["status"] = {"code": 2, "message": self.error}
        return document


UNWRITTEN = SpanContext("0" * 32, "0" * 16, sampled=False)
"""Where a span is that nobody writes, below none that somebody does."""

Send = Callable[[list[dict[str, Any]]], None]

_current: ContextVar[SpanContext | None] = ContextVar("privet_trace", default=None)
_send: Send | None = None
_flush: Callable[[], None] | None = None


def configure(target: str | None, service: str) -> None:
    """From now on, this process writes its spans to `target`: a file, or the address of a collector
    (`https://HOST:PORT`; `http` on this machine only). `service` is how it calls itself in them;
    None writes nothing. A collector's header lines and authority are taken from OpenTelemetry's own
    variables, `OTEL_EXPORTER_OTLP_HEADERS` and `OTEL_EXPORTER_OTLP_CERTIFICATE`. Raises `Misuse` if
    it is no such address, or the file cannot be written."""
    global _send, _flush
    flush()
    _send, _flush = None, None
    if target is None:
        return
    attributes = [_attribute("service.name", service), _attribute("process.pid", os.getpid())]

    def encode(spans: list[dict[str, Any]]) -> bytes:
        scope = {"scope": {"name": "privet"}, "spans": spans}
        resource = {"resource": {"attributes": attributes}, "scopeSpans": [scope]}
        return json.dumps({"resourceSpans": [resource]}, separators=(",", ":")).encode()

    if re.match(r"https?://", target):
        collector = _Collector(target)
        batches = _Batches(lambda spans: collector.post(encode(spans)))
        _send, _flush = batches.add, batches.flush
    else:
        write = _file(Path(target))
        _send = lambda spans: write(encode(spans) + b"\n")  # noqa: E731


def flush() -> None:
    """Sends what waits, for as long as `SEND_SECONDS`; a process calls it by itself at its end."""
    if _flush is not None:
        _flush()


def current() -> str | None:
    """The `traceparent` of what runs now; None outside all traces."""
    context = _current.get()
    return None if context is None else str(context)


def headers() -> dict[str, str]:
    """What to send with a call, so that it belongs to what runs now."""
    context = _current.get()
    return {} if context is None else {HEADER: str(context)}


def ids(parent: str | None = None) -> dict[str, str]:
    """The ids of a `traceparent`, or of what runs now, as fields of a line of log."""
    context = _read(parent) or _current.get()
    return {} if context is None else {"trace_id": context.trace, "span_id": context.span}


@contextmanager
def span(
    name: str, *, parent: str | None = None, kind: Kind = "internal", **facts: str | float | None
) -> Iterator[Span]:
    """A span around what is done meanwhile, below `parent` (a `traceparent`, whoever sent it) or
    else what runs now; without either it begins a trace. What else is no `traceparent` counts as
    none."""
    above = _read(parent) or _current.get()
    if _send is None:
        # What is called belongs to the last span that somebody does write.
        now = above or UNWRITTEN
    elif above is None:
        now = SpanContext(secrets.token_hex(16), secrets.token_hex(8))
    else:
        now = above.below()
    new_span = Span(now, above.span if above else None, name, kind, time.time_ns())
    new_span.add(**facts)
    token = _current.set(above if _send is None else now)
    try:
        yield new_span
    except BaseException as error:
        new_span.error = type(error).__name__
        raise
    finally:
        _current.reset(token)
        if now.sampled and _send is not None:
            _write([new_span.document(time.time_ns())])


@contextmanager
def call(name: str, parent: str | None, *, begins: bool) -> Iterator[Span | None]:
    """A span around the answer to a call that came with `parent`; with none, only where such a
    call `begins` a trace of its own."""
    if (_send is None or not begins) and _read(parent) is None:
        yield None
        return
    with span(name, parent=parent, kind="server") as new_span:
        yield new_span


@contextmanager
def within(parent: str | None) -> Iterator[None]:
    """What is done meanwhile belongs to the span `parent` of another process."""
    token = _current.set(_read(parent))
    try:
        yield
    finally:
        _current.reset(token)


def steps(phase: str, cost: Cost, layers: Iterable[Step], material: str | None = None) -> None:
    """A span for a phase of a protocol that has just ended, and below it one for each step.

    Reports say how long a step took and not when it began: steps are drawn one after another.
    `material` is what was made meanwhile; if a dealer made it, the span links to the deal.
    """
    above = _current.get()
    if _send is None or above is None or not above.sampled:
        return
    end = time.time_ns()
    start = end - int(cost.seconds * 1e9)
    whole = Span(above.below(), above.span, phase, "internal", start)
    whole.add(**_traffic(cost))
    if material and cost.bytes_dealer:
        whole.links.append(material)
    documents = [whole.document(end)]
    for step in layers:
        child = Span(whole.context.below(), whole.context.span, step.name[:TEXT], "internal", start)
        child.add(operator=step.operator, phase=step.phase, **_traffic(step))
        start += int(step.seconds * 1e9)
        documents.append(child.document(start))
    _write(documents)


def dealt(material: str, seconds: float, **facts: str | float | None) -> None:
    """The span of a deal that ended just now. A dealer gets no trace: its span is a trace of its
    own, with the material's name as its id, to which both parties' spans link."""
    if _send is not None:
        end = time.time_ns()
        span_of_deal = Span(deal(material), None, "deal", "server", end - int(seconds * 1e9))
        span_of_deal.add(**facts)
        _write([span_of_deal.document(end)])


def deal(material: str) -> SpanContext:
    """The trace of the deal that made `material` (32 hexadecimal digits)."""
    return SpanContext(material, material[:16])


def _traffic(cost: Cost) -> dict[str, int]:
    traffic = {"bytes_client": cost.bytes_client, "bytes_server": cost.bytes_server}
    return {**traffic, "bytes_dealer": cost.bytes_dealer, "rounds": cost.rounds}


def _read(parent: str | None) -> SpanContext | None:
    match = _PARENT.fullmatch(parent or "")
    return None if match is None else SpanContext(match[1], match[2], bool(int(match[3], 16) & 1))


def _attribute(name: str, value: str | float) -> dict[str, Any]:
    if isinstance(value, int):
        return {"key": name, "value": {"intValue": str(value)}}
    kind = "stringValue" if isinstance(value, str) else "doubleValue"
    return {"key": name, "value": {kind: value}}


def _write(spans: list[dict[str, Any]]) -> None:
    if _send is None:
        return
    try:
        _send(spans)
    except OSError as error:  # a full disk ends no prediction
        _log.warning("spans not written", extra={"error": type(error).__name__})


def _file(path: Path) -> Callable[[bytes], None]:
    """Appends to a file that any number of processes may share: a line is one write."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Misuse(f"{path} cannot be written: {error.strerror}") from error

    def write(line: bytes) -> None:
        os.write(handle, line)

    return write


class _Collector:
    """Where a collector takes spans. Redirections are not followed."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            self._port = parts.port
        except ValueError:  # half a pair of brackets, or a port that is no number or too large
            parts = urlsplit("")
        if parts.hostname is None or parts.query or parts.username:
            raise Misuse(f"{url!r} is not https://HOST:PORT of a collector")
        self._host = parts.hostname
        self._path = parts.path.rstrip("/") or "/v1/traces"
        self._tls: ssl.SSLContext | None = None
        if parts.scheme == "https":
            authority = os.environ.get("OTEL_EXPORTER_OTLP_CERTIFICATE")
            self._tls = ssl.create_default_context(cafile=authority)
        elif not _is_here(parts.hostname):
            raise Misuse(f"{url} is not this machine: spans go to others over https alone")
        text = os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")
        self._headers = {"Content-Type": "application/json", **_header_lines(text)}

    def post(self, body: bytes) -> None:
        """Sends a body; `OSError` if it does not come through."""
        import http.client  # It takes long to load, and most processes have no collector.

        link: http.client.HTTPConnection
        if self._tls is None:
            link = http.client.HTTPConnection(self._host, self._port, timeout=SEND_SECONDS)
        else:
            link = http.client.HTTPSConnection(
                self._host, self._port, timeout=SEND_SECONDS, context=self._tls
            )
        try:
            link.request("POST", self._path, body, self._headers)
            status = link.getresponse().status
        except http.client.HTTPException as error:
            raise OSError("the collector does not speak HTTP") from error
        finally:
            link.close()
        if status >= 300:
            raise OSError(f"the collector answered {status}")


def _header_lines(text: str) -> dict[str, str]:
    """Header lines as OpenTelemetry writes them: `NAME=VALUE,NAME=VALUE`, values percent-encoded.
    Raises `Misuse`, which quotes no value, if they are anything else."""
    lines: dict[str, str] = {}
    for place, pair in enumerate(filter(str.strip, text.split(",")), 1):
        name, equals, value = pair.partition("=")
        name, value = name.strip(), unquote(value.strip())
        if not equals or not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise Misuse(
                f"number {place} in OTEL_EXPORTER_OTLP_HEADERS is no NAME=VALUE that a header line "
                "may hold"
            )
        lines[name] = value
    return lines


class _Batches:
    """Gives spans to `send` on a thread of its own, so that nobody waits for a collector."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._queue: queue.Queue[dict[str, Any]] = queue.Queue(MOST_WAITING)
        self._dropped = 0
        self._failing = False
        self._hurry = threading.Event()
        self._idle = threading.Condition()
        self._busy = 0
        threading.Thread(target=self._run, name="privet-traces", daemon=True).start()
        atexit.register(self.flush)

    def add(self, spans: list[dict[str, Any]]) -> None:
        """Takes spans; what is too much is dropped."""
        for span in spans:
            try:
                with self._idle:
                    self._queue.put_nowait(span)
                    self._busy += 1
            except queue.Full:
                self._dropped += 1

    def flush(self) -> None:
        """Waits until all is sent, or for `SEND_SECONDS`."""
        self._hurry.set()
        with self._idle:
            self._idle.wait_for(lambda: not self._busy, SEND_SECONDS)

    def _run(self) -> None:
        while True:
            batch = [self._queue.get()]
            self._hurry.wait(EVERY_SECONDS)
            self._hurry.clear()
            while len(batch) < BATCH and not self._queue.empty():
                batch.append(self._queue.get())
            try:
                self._send(batch)
                self._failing = False
            except OSError as error:
                self._dropped += len(batch)
                if not self._failing:
                    extra = {"error": type(error).__name__, "lost": self._dropped}
                    _log.warning("a collector does not take spans; they are dropped", extra=extra)
                self._failing = True
            with self._idle:
                self._busy -= len(batch)
                self._idle.notify_all()
            if not self._queue.empty():
                self._hurry.set()


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
