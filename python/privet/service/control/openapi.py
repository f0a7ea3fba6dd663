"""The OpenAPI document and its page, made from the table of routes, and the other pages."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from html import escape
from importlib import resources
from typing import Any

from privet.service.control.answers import ERROR
from privet.service.control.calls import HttpRoute
from privet.service.schema import schema
from privet.suites import module_paths

COMMON = {
    400: "a parameter or the body is malformed; the answer says which and what is possible",
    401: "the service asks for a token, and none of its own was shown",
    403: "this is for operators only, or the certificate was revoked",
    429: "too many calls of this client; Retry-After tells when to come back",
    503: "the service is full, starts or shuts down; Retry-After tells when to come back",
    507: "the service's disk is full; Retry-After tells when to come back",
}

ABOUT = (
    "Private predictions. Clients authenticate by a certificate over TLS 1.3 and see their own "
    "jobs only. No input and no prediction ever comes here: they go, encrypted, between the client "
    "and the worker that a job's `go` names."
)


def document(routes: Iterable[HttpRoute], version: str) -> dict[str, Any]:
    """The OpenAPI 3.1 document."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Privet", "version": version, "description": ABOUT},
        "paths": paths,
        "components": {
            "schemas": {"Error": ERROR},
            "securitySchemes": {
                "certificate": {"type": "mutualTLS"},
                "token": {"type": "http", "scheme": "bearer"},
            },
        },
        "security": [{"certificate": []}, {"certificate": [], "token": []}],
    }


def _operation(route: HttpRoute) -> dict[str, Any]:
    refusals = {**COMMON, **route.refusals}
    good: dict[str, Any] = {"description": "Good"}
    if isinstance(route.answer, str):
        good["content"] = {route.answer: {}}
    else:
        good["content"] = {"application/json": {"schema": dict(route.answer)}}
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.role],
        "parameters": _parameters(route),
        "responses": {
            str(route.status): good,
            **{
                str(status): {"description": text, "content": error}
                for status, text in sorted(refusals.items())
            },
        },
    }
    if route.body is not None:
        operation["requestBody"] = {
            "required": False,
            "content": {"application/json": {"schema": schema(route.body)}},
        }
    return operation


def _parameters(route: HttpRoute) -> list[dict[str, Any]]:
    inside = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", route.path)
    ]
    after = [
        {"name": name, "in": "query", "required": False, "schema": property_schema}
        for name, property_schema in schema(route.parameters)["properties"].items()
    ]
    return inside + after


def page(document: dict[str, Any]) -> str:
    """The document as HTML, without a script."""
    info = document["info"]
    parts = [
        _section(path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(info['title'])} calls</title>"
        '<link rel="stylesheet" href="/assets/docs.css"></head><body><main>'
        f"<h1>{escape(info['title'])} {escape(info['version'])}: calls</h1>"
        f"<p>{_text(info['description'])}</p><table><caption>Any call may be refused</caption>"
        f"{_answers({str(status): text for status, text in COMMON.items()})}</table>"
        f"{''.join(parts)}</main></body></html>"
    )


def _section(path: str, method: str, operation: dict[str, Any]) -> str:
    body = operation.get("requestBody")
    fields = body["content"]["application/json"]["schema"]["properties"] if body else {}
    query = {
        parameter["name"]: parameter["schema"]
        for parameter in operation["parameters"]
        if parameter["in"] == "query"
    }
    common = {(str(status), text) for status, text in COMMON.items()}
    described = {status: answer["description"] for status, answer in operation["responses"].items()}
    answers = _answers(dict(item for item in described.items() if item not in common))
    role = operation["tags"][0]
    tag = f' <span class="role">{escape(role)}</span>' if role != "client" else ""
    return (
        f'<section id="{escape(operation["operationId"])}"><h2><b class="{method}">'
        f"{method.upper()}</b> <code>{escape(path)}</code>{tag}</h2>"
        f"<p>{_text(operation['summary'])}</p>{_table('Body', fields)}"
        f"{_table('Parameters', query)}<table><caption>Answers</caption>{answers}</table></section>"
    )


def _answers(described: dict[str, str]) -> str:
    return "".join(
        f"<tr><td><code>{status}</code></td><td>{_text(text)}</td></tr>"
        for status, text in described.items()
    )


def _table(title: str, fields: dict[str, Any]) -> str:
    if not fields:
        return ""
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(_kind(field))}</td>"
        f"<td>{_text(field['description'])}</td></tr>"
        for name, field in fields.items()
    )
    return f"<table><caption>{title}</caption>{rows}</table>"


def _kind(field: dict[str, Any]) -> str:
    if "enum" in field:
        return " | ".join(map(str, field["enum"]))
    limits = [f"{field[name]:g}" for name in ("minimum", "maximum") if name in field]
    return f"{field['type']} {' to '.join(limits)}".strip()


def _text(text: str) -> str:
    """Plain text with `code` in it."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


_KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}


@dataclass(frozen=True)
class Module:
    """The client of suite `ckks` for browsers: WebAssembly, plain and as gzip, and its script."""

    code: bytes
    compressed: bytes
    script: str


class Pages:
    """What is shown to browsers: files of the package `privet.service.page`, and documentation."""

    def __init__(self, routes: Iterable[HttpRoute], version: str) -> None:
        self.openapi: dict[str, Any] = document(routes, version)
        self.documentation = page(self.openapi)
        self._files = {
            entry.name: (kind, entry.read_text(encoding="utf-8"))
            for entry in resources.files("privet.service.page").iterdir()
            for suffix, kind in _KINDS.items()
            if entry.name.endswith(suffix)
        }

    def module(self) -> Module:
        """The client for browsers, read when it is first asked for. Raises `Misuse` if it is not
        installed."""
        return self._module

    @cached_property
    def _module(self) -> Module:
        module, script = module_paths()
        code = module.read_bytes()
        return Module(code, gzip.compress(code), script.read_text(encoding="utf-8"))

    def file(self, name: str) -> tuple[str, str] | None:
        """Content type and text of a file; None if there is none."""
        return self._files.get(name)
